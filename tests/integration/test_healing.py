"""A broker is killed for good on a real cluster: it is replaced, the owner dies in the middle, and it comes back."""

import signal
from pathlib import Path

import pytest

from drover.client.history import open_log, read_log
from drover.journal.reader import LogReader
from drover.local import LocalCluster
from events.healing import BrokerOutageAlarmed, BrokerOutageNoted, HealChunkBegun, HealEnd, HealEnded, HealPlanned
from events.partitions import TopicPartition
from events.reassignments import ReassignmentCompleted
from events.records import Batch
from events.topics import DEFAULT_SHARDS, shard_of
from tests.integration.support import LOOK_S, MANAGED, Installation, installation, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.long]

INTERVAL_MS, ALARM_MS = 15_000, 5000
TOPIC = "to-be-healed"
LAYOUT = {number: [(number + place) % 4 + 1 for place in range(3)] for number in range(8)}


async def survey_of(drover: Installation, broker: int) -> list[TopicPartition]:
    """List the partitions of the whole cluster whose list names a broker."""
    survey = await drover.driver.survey()
    return [key for key, facts in survey.partitions.items() if broker in facts.replicas]


async def batches(drover: Installation) -> list[Batch]:
    """Read what the owners of the managed cluster have recorded."""
    shard = shard_of(MANAGED, DEFAULT_SHARDS)
    async with LogReader(drover.connection) as reader:
        log = await open_log(reader, drover.connection)
        return [
            record.batch
            async for records in read_log(reader, drover.connection, log)
            for record in records
            if record.shard == shard
        ]


async def test_a_dead_broker_is_replaced_although_the_owner_dies_and_stays_empty_when_it_is_back(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    healing = {"failure_interval_ms": INTERVAL_MS, "alarm_ms": ALARM_MS, "chunk_partitions": 20}
    async with installation(local_cluster, tmp_path, "healing", healing=healing) as drover:
        await drover.create_topic(TOPIC, LAYOUT, kilobytes=512)
        await drover.start_worker("first")
        await drover.wait_until_owned("first")
        await drover.start_worker("second")

        async def surveyed() -> bool:
            return (await drover.managed()).limits.healing is not None

        await wait_for(surveyed, "the settings of healing to be recorded")
        await local_cluster.kill(3)
        try:
            await _is_healed_in_spite_of_a_takeover(drover)
        finally:
            await local_cluster.start(3)

        async def is_back() -> bool:
            return 3 not in (await drover.managed()).emptied_brokers

        await wait_for(is_back, "the return to be recorded", pause_s=LOOK_S)
        survey = await drover.driver.survey()
        healed = [facts for key, facts in survey.partitions.items() if key.topic == TOPIC]
        assert all(3 not in facts.replicas and len(facts.replicas) == 3 for facts in healed)
        assert all(set(facts.isr) == set(facts.replicas) for facts in healed)
        await _log_tells_it(drover)


async def _is_healed_in_spite_of_a_takeover(drover: Installation) -> None:
    async def is_away() -> bool:
        return 3 in (await drover.managed()).absent_brokers

    await wait_for(is_away, "broker 3 to be missed", timeout_s=40)
    dry = (await drover.drover("heal", "plan", "-o", "json")).document
    assert dry["brokers"] == [3]
    named = {(one["topic"], one["partition"]) for one in dry["partitions"]}
    assert {(TOPIC, number) for number, replicas in LAYOUT.items() if 3 in replicas} <= named
    status = (await drover.drover("heal", "status", "-o", "json")).document
    assert [row["broker"] for row in status["clusters"][0]["outages"]] == [3]

    async def is_under_way() -> bool:
        return (await drover.managed()).heal_running is not None

    await wait_for(is_under_way, "the first chunk to begin", timeout_s=60)
    owner = (await drover.owners())[shard_of(MANAGED, DEFAULT_SHARDS)]
    drover.signal(owner, signal.SIGKILL)
    await drover.gone(owner)

    async def is_empty() -> bool:
        return not await survey_of(drover, 3)

    await wait_for(is_empty, "every replica of broker 3 to be replaced", timeout_s=120, pause_s=LOOK_S)

    async def is_over() -> bool:
        state = await drover.managed()
        return state.heal is None and 3 in state.emptied_brokers

    await wait_for(is_over, "the heal to end", timeout_s=40, pause_s=LOOK_S)


async def _log_tells_it(drover: Installation) -> None:
    noted: int | None = None
    begun: list[tuple[str, int]] = []
    completed: list[tuple[str, int]] = []
    for batch in await batches(drover):
        for event in batch.events:
            match event:
                case BrokerOutageNoted(broker=3) if noted is None:
                    noted = batch.at_ms
                case BrokerOutageAlarmed(broker=3):
                    assert noted is not None
                    assert ALARM_MS <= batch.at_ms - noted <= ALARM_MS + 5000
                case HealPlanned() if not begun:
                    assert noted is not None
                    assert INTERVAL_MS <= batch.at_ms - noted <= INTERVAL_MS + 15_000
                case HealChunkBegun():
                    begun.append((event.heal, event.chunk))
                case ReassignmentCompleted():
                    completed.append((event.topic, event.partition))
                case HealEnded():
                    assert event.why is HealEnd.DONE
                case _:
                    pass
    assert len(begun) == len(set(begun)) >= 2
    assert len(completed) == len(set(completed)), "each dead replica is replaced once"
