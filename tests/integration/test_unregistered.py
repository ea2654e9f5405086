"""Brokers that die and are unregistered on a real cluster: Kafka refuses every list that names one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from drover.cluster.port import AddThrottledReplicas, AlterRequest, SetBrokerRates
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker
from drover.facts import BrokerRates, ThrottledReplicas
from drover.local import LocalCluster, local_cluster
from drover.testing.shared_process import SharedProcess
from tests.healing.live import gather_on
from tests.integration.story import read_story
from tests.integration.support import Installation, installation, wait_for
from tests.unregistering import unregister

pytestmark = [pytest.mark.cluster, pytest.mark.story, pytest.mark.timeout(1200)]

BROKERS, KILLED = 5, (1, 2)
PATIENCE_S = 300.0
TOPIC = "unregistered"
ROLLED_BACK, STUCK, DRAINED = (TopicPartition(TOPIC, number) for number in (0, 1, 2))
STEPPINGS = {"grow": TopicPartition(TOPIC, 3), "swap": TopicPartition(TOPIC, 4), "single": TopicPartition(TOPIC, 5)}
LAYOUT = {0: [1, 3, 4], 1: [1, 3, 4], 2: [3, 1, 2], 3: [3, 1, 2], 4: [3, 1, 2], 5: [3, 1, 2]}


@pytest_asyncio.fixture(loop_scope="session")
async def five(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalCluster]:
    """Five brokers, two of which die for good."""
    async with local_cluster(tmp_path_factory.mktemp("five"), BROKERS, start_nodes=SharedProcess(KILLED)) as cluster:
        yield cluster


async def sent(drover: Installation, key: TopicPartition) -> list[list[int] | None]:
    story = await read_story(drover.connection)
    return [event.get("replicas") for event in story.events[key] if event["type"] == "call-intended"]


async def _is_gone(drover: Installation, broker: int) -> None:
    async def gone() -> bool:
        return broker not in (await drover.driver.survey()).live_brokers

    await wait_for(gone, f"broker {broker} to be fenced", timeout_s=PATIENCE_S)


async def _hold_back(drover: Installation, rate: int | None) -> None:
    """Let nothing be copied to broker 2 for one partition, as another operator's throttle would; None lets go."""
    entries = ThrottledReplicas((), (f"{STUCK.partition}:2",))
    await drover.change_throttles(SetBrokerRates(2, BrokerRates(None, rate)), AddThrottledReplicas(TOPIC, entries))


async def _is_copied_to(drover: Installation, key: TopicPartition, broker: int) -> None:
    async def copied() -> bool:
        moves = (await drover.driver.list_moves()).moves
        return key in moves and broker in moves[key].adding

    await wait_for(copied, f"{key} to be copied to broker {broker}", timeout_s=PATIENCE_S)


async def test_every_way_past_unregistered_brokers_has_an_end(five: LocalCluster, tmp_path: Path) -> None:
    async with installation(five, tmp_path, "unregistered") as drover:
        await drover.create_topic(TOPIC, LAYOUT, kilobytes=2048)
        await gather_on(drover, (3, 4, 5), besides=TOPIC)
        await drover.start_worker("solo")
        await drover.wait_until_owned("solo")
        await _hold_back(drover, 1)
        assert (await drover.alter("stuck", {STUCK: [5, 2, 4]}, "--stepping", "grow")).code == 0
        assert (await drover.alter("back", {ROLLED_BACK: [5, 3, 4]}, "--throttle", "4kB")).code == 0
        await _is_copied_to(drover, STUCK, 2)
        await _is_copied_to(drover, ROLLED_BACK, 5)
        await five.kill(1)
        await _is_gone(drover, 1)
        await _others_are_not_fought(drover)
        await unregister(five.bootstrap, 1)
        await _a_rollback_ends(drover)
        await _hold_back(drover, None)
        await _what_others_moved_has_failed(drover)
        await five.kill(2)
        await _is_gone(drover, 2)
        await unregister(five.bootstrap, 2)
        await _drains_go_on(drover)
        # What was owed to broker 1 was given up.
        await drover.wait_until_settled(timeout_s=PATIENCE_S)


async def _others_are_not_fought(drover: Installation) -> None:
    """The way back waits for broker 1, dead and registered; another tool moves the partition to the plan's target."""
    cancelled = await drover.drover("cancel", "--rollback", "--plan", "stuck", "--reason", "test")
    assert cancelled.code == 0, cancelled.errors

    async def waits() -> bool:
        entry = (await drover.state()).reassignments[STUCK]
        return entry.block is not None and entry.block.why is Blocker.ORIGINALS_OUT_OF_SYNC

    await wait_for(waits, "the rollback to wait for broker 1", timeout_s=PATIENCE_S)
    calls = await sent(drover, STUCK)
    answer = await drover.driver.alter([AlterRequest(STUCK, (5, 2, 4))])
    assert answer[STUCK].accepted, answer

    async def is_theirs() -> bool:
        entry = (await drover.state()).reassignments[STUCK]
        return entry.block is not None and entry.block.why is Blocker.UNMANAGED_CHANGE

    await wait_for(is_theirs, "the move of others to be shown", timeout_s=PATIENCE_S)
    assert (await drover.driver.list_moves()).moves[STUCK].target == (5, 2, 4)
    assert await sent(drover, STUCK) == calls, "nothing was sent against it"


async def _what_others_moved_has_failed(drover: Installation) -> None:
    async def ended() -> bool:
        return (await drover.plan("stuck")).failed == 1

    await wait_for(ended, "the end of the plan whose partition others have moved", timeout_s=PATIENCE_S)
    assert await drover.replicas(STUCK) == (5, 2, 4)


async def _a_rollback_ends(drover: Installation) -> None:
    cancelled = await drover.drover("cancel", "--rollback", "--plan", "back", "--reason", "test")
    assert cancelled.code == 0, cancelled.errors

    async def ended() -> bool:
        return (await drover.plan("back")).rolled_back == 1

    await wait_for(ended, "the rollback to end", timeout_s=PATIENCE_S)
    facts = await drover.facts(ROLLED_BACK)
    assert (set(facts.replicas), facts.move) == ({1, 3, 4}, None)
    story = await read_story(drover.connection)
    (end,) = [event for event in story.events[ROLLED_BACK] if event["type"] == "reassignment-rolled-back"]
    assert end["missing"] == [1]
    rejected = [event for event in story.events[ROLLED_BACK] if event["type"] == "call-rejected"]
    assert [event["unregistered"] for event in rejected] in ([], [1])


async def _drains_go_on(drover: Installation) -> None:
    """Each stepping leaves both brokers out, at once or as Kafka's answers name them one by one."""
    done = await asyncio.gather(
        *(
            drover.alter(f"drain-{stepping}", {key: [3, 5, 4]}, "--stepping", stepping, "--follow")
            for stepping, key in STEPPINGS.items()
        )
    )
    assert [each.code for each in done] == [0, 0, 0], [each.errors for each in done]
    for stepping, key in STEPPINGS.items():
        assert await drover.replicas(key) == (3, 5, 4)
        assert (await drover.plan(f"drain-{stepping}")).completed == 1
    # Who is registered is known by now.
    refused = await drover.alter("keeps", {DRAINED: [3, 1, 5]})
    assert "broker 1 is not registered with Kafka" in refused.output + refused.errors
    assert refused.code != 0
