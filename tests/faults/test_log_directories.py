"""Real brokers whose log directories are cordoned, or fill up in the middle of a move."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from kafka.admin import KafkaAdminClient

from drover.cluster.sockets import DIRECT
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, ReassignmentBlocked, ReassignmentUnblocked
from drover.local import LocalCluster, local_cluster
from drover.state.plans import PlanStatus
from drover.testing.shared_process import SharedProcess
from tests.cluster.support import cordon_broker
from tests.faults.second_directories import second_directory
from tests.healing.live import batches, holders
from tests.integration.support import LOOK_S, Installation, installation, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.story]

HEALED, SMALL = 3, 4
PATIENCE_S = 240
CORDONED = "Broker 4 is cordoned, with all of its log directories (cordoned.log.dirs): it receives no replicas."


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def four(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalCluster]:
    """Four brokers in three racks, of which 3 and 4 can be stopped."""
    async with local_cluster(
        tmp_path_factory.mktemp("four"), 4, 3, start_nodes=SharedProcess((HEALED, SMALL))
    ) as cluster:
        yield cluster


@contextmanager
def cordoned(cluster: LocalCluster, broker: int) -> Iterator[None]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","), proxy_url=DIRECT)
    try:
        cordon_broker(admin, broker, cordoned=True)
        yield
        cordon_broker(admin, broker, cordoned=False)
    finally:
        admin.close()


async def test_a_cordoned_broker_gets_nothing_from_plans_and_heals_and_an_explicit_alter_with_a_remark(
    four: LocalCluster, tmp_path: Path
) -> None:
    healing = {"failure_interval_ms": 3000, "alarm_ms": 1000}
    async with installation(four, tmp_path, "cordons", healing=healing) as drover:
        await drover.create_topic("plain", dict.fromkeys(range(6), (1, 2)), kilobytes=64)
        await drover.create_topic("mourning", {number: (HEALED, 1 + number % 2) for number in range(4)}, kilobytes=64)
        assert SMALL in await _receivers_of_a_drain(drover)
        with cordoned(four, SMALL):
            await _is_described(drover)
            assert await _receivers_of_a_drain(drover) == {HEALED}
            assert CORDONED in (await drover.drover("plan", "drain", "1")).output
            await drover.start_worker("solo")
            await drover.wait_until_owned("solo")
            moved = await _is_altered_with_a_remark(drover)
            before = set(await holders(drover, SMALL))
            assert moved in before
            await four.kill(HEALED)
            try:
                await _is_healed_elsewhere(drover)
                assert set(await holders(drover, SMALL)) == before
            finally:
                await four.start(HEALED)


async def _receivers_of_a_drain(drover: Installation) -> set[int]:
    planned = await drover.drover("plan", "drain", "1", "--partial", "-o", "json")
    moves = [move for move in planned.document["moves"] if move["topic"] == "plain"]
    assert len(moves) == 6
    return {broker for move in moves for broker in move["adding"]}


async def _is_described(drover: Installation) -> None:
    """A dynamic config reaches the broker a moment after it was taken."""

    async def shown() -> bool:
        described = await drover.drover("describe", "-o", "jsonl")
        states = {row["broker"]: row["state"] for row in map(json.loads, described.output.splitlines())}
        return states == {1: "alive", 2: "alive", 3: "alive", 4: "cordoned"}

    await wait_for(shown, "the cordon to be described", pause_s=LOOK_S)
    assert CORDONED in (await drover.drover("describe")).output


async def _is_altered_with_a_remark(drover: Installation) -> TopicPartition:
    """The worker has looked at the directories when it says so; until then another partition is tried."""
    for number in range(6):
        key = TopicPartition("plain", number)
        done = await drover.alter(f"explicit-{number}", {key: (SMALL, 2)})
        assert done.code == 0, done.errors
        await drover.wait_until_settled()
        assert await drover.replicas(key) == (SMALL, 2)
        if "broker 4 is cordoned, with all of its log directories (cordoned.log.dirs): Kafka 4.3 copies" in done.output:
            return key
    raise AssertionError("no alter was remarked on")


async def _is_healed_elsewhere(drover: Installation) -> None:
    """Partitions of two replicas go to the broker that has none; those of three would need the cordoned one."""

    async def healed() -> bool:
        state = await drover.state()
        whole = not any(key.topic == "mourning" for key in await holders(drover, HEALED))
        return whole and state.heal is None and state.heal_left is not None

    await wait_for(healed, "the partitions of broker 3 to be healed", timeout_s=PATIENCE_S, pause_s=LOOK_S)
    left = (await drover.state()).heal_left
    assert left is not None
    assert any("broker 4 is cordoned" in one.detail for one in left.partitions)
    assert CORDONED in (await drover.drover("heal", "plan")).errors


async def test_a_directory_that_fills_during_a_move_blocks_it_with_the_path_until_it_is_repaired(
    four: LocalCluster, tmp_path: Path
) -> None:
    async with installation(four, tmp_path, "full") as drover:
        kept, taken_back = TopicPartition("large", 0), TopicPartition("large", 1)
        await drover.create_topic("large", dict.fromkeys(range(2), (1, 2, 3)), kilobytes=40 * 1024)
        await four.stop(SMALL)
        with second_directory(four, SMALL, tmp_path / "second") as second:
            try:
                await four.start(SMALL)
                await drover.start_worker("solo")
                await drover.wait_until_owned("solo")
                second.spoil()
                assert (await drover.alter("friday", {kept: (4, 2, 3), taken_back: (4, 2, 3)})).code == 0
                await _is_blocked(drover, second.path, kept, taken_back)
                cancelled = await drover.drover(
                    "cancel", "--rollback", "--partition", str(taken_back), "--reason", "it is full"
                )
                assert cancelled.code == 0, cancelled.errors
                await _ends_at(drover, taken_back, (1, 2, 3))
                await four.stop(SMALL)
                second.repair()
                await four.start(SMALL)
                await _ends_at(drover, kept, (4, 2, 3))
                assert (await drover.plan("friday")).status is PlanStatus.FINISHED
                await _is_recorded(drover, kept)
            finally:
                await four.kill(SMALL)
        await four.start(SMALL)


async def _is_blocked(drover: Installation, path: Path, *keys: TopicPartition) -> None:
    said = f"log directory {path} has failed (Kafka error 56, KAFKA_STORAGE_ERROR) on broker 4"

    async def blocked() -> bool:
        moving = (await drover.state()).reassignments
        blocks = [moving[key].block for key in keys]
        return all(block is not None and block.why is Blocker.FAILED_LOG_DIRECTORY for block in blocks)

    await wait_for(blocked, "the moves to be blocked", timeout_s=PATIENCE_S)
    status = await drover.status()
    assert all(row["waiting"].startswith(f"failed-log-directory: {said}") for row in status["reassignments"])
    described = (await drover.drover("describe")).output
    assert f"Log directory {path} of broker 4 has failed (Kafka error 56)" in described


async def _ends_at(drover: Installation, key: TopicPartition, replicas: tuple[int, ...]) -> None:
    async def ended() -> bool:
        return key not in (await drover.state()).reassignments

    await wait_for(ended, f"{key} to end", timeout_s=PATIENCE_S)
    facts = await drover.facts(key)
    assert (facts.replicas, facts.move) == (replicas, None)


async def _is_recorded(drover: Installation, key: TopicPartition) -> None:
    """That it went on is in the log, too, after the restart of the broker that repairs it."""
    events = [event for batch in await batches(drover) for event in batch.events]
    said = [event for event in events if isinstance(event, ReassignmentBlocked | ReassignmentUnblocked)]
    of_it = [event for event in said if event.key == key]
    assert isinstance(of_it[0], ReassignmentBlocked)
    assert of_it[0].why is Blocker.FAILED_LOG_DIRECTORY
