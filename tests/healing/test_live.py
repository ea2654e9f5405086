"""Real brokers are killed for good, come back, and die two at a time; the owner dies in the middle."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from drover.events.brokers import BrokerFailureRecorded, BrokerReturnRecorded
from drover.events.healing import BrokerOutageAlarmed, BrokerOutageNoted, HealEnd, HealEnded, HealPlanned
from drover.events.partitions import TopicPartition
from drover.events.reassignments import ReassignmentRolledBack
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.local import LocalCluster, local_cluster
from drover.projections.store import Store
from drover.projections.zookeeper import ZooKeeperStore
from drover.settings.settings import ZooKeeperOptions
from drover.testing.shared_process import SharedProcess
from tests.healing.live import OtherClient, batches, chunks_follow_each_other, gather_on, holders, is_whole
from tests.integration.support import LOOK_S, MANAGED, Installation, installation, wait_for
from tests.integration.test_projection import let_project

pytestmark = [pytest.mark.cluster, pytest.mark.story]

BROKERS, KILLED = 5, (3, 4, 5)
INTERVAL_MS, ALARM_MS = 12_000, 5000
# The rest of what is recorded waits for a look, and for a machine that has other things to do.
LATE_MS = 20_000
PATIENCE_S = 180


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def five(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalCluster]:
    """Five brokers in three racks, so that two can die and three replicas have a place."""
    async with local_cluster(tmp_path_factory.mktemp("five"), BROKERS, start_nodes=SharedProcess(KILLED)) as cluster:
        yield cluster


def layout(partitions: int, *brokers: int) -> dict[int, list[int]]:
    return {number: [brokers[(number + place) % len(brokers)] for place in range(3)] for number in range(partitions)}


async def healing_recorded(drover: Installation) -> None:
    async def recorded() -> bool:
        return (await drover.state()).limits.healing is not None

    await wait_for(recorded, "the settings of healing to be recorded")


async def until_over(drover: Installation, *brokers: int) -> None:
    """Wait until no list names these brokers and no heal goes on."""

    async def over() -> bool:
        state = await drover.state()
        if state.heal is not None or state.heal_running is not None or not set(brokers) <= set(state.emptied_brokers):
            return False
        return not await holders(drover, *brokers)

    await wait_for(over, f"every replica of {brokers} to be replaced", timeout_s=PATIENCE_S, pause_s=LOOK_S)


async def test_a_dead_broker_is_replaced_although_the_owner_dies_and_stays_empty_when_it_is_back(
    five: LocalCluster, tmp_path: Path
) -> None:
    """The log itself has replicas on the dead broker, and is healed like everything else.

    The cluster is frozen meanwhile, so that there is time to look at what would be done: the timer goes on (X12).
    """
    healing = {"failure_interval_ms": INTERVAL_MS, "alarm_ms": ALARM_MS, "chunk_partitions": 20}
    async with installation(five, tmp_path, "healing", healing=healing) as drover:
        topic = "to-be-healed"
        await drover.create_topic(topic, layout(10, 1, 2, 3, 4, 5), kilobytes=512)
        await drover.start_worker("first")
        await drover.wait_until_owned("first")
        await drover.start_worker("second")
        await healing_recorded(drover)
        await _command(drover, "freeze")
        await five.kill(3)
        try:
            await _is_shown_before_it_is_done(drover, topic)
            await _command(drover, "unfreeze")
            await _owner_dies_in_the_middle(drover)
            await until_over(drover, 3)
        finally:
            await five.start(3)

        async def is_back() -> bool:
            return 3 not in (await drover.state()).emptied_brokers

        await wait_for(is_back, "the return to be recorded", pause_s=LOOK_S)
        assert await is_whole(drover, topic, without=(3,))
        await chunks_follow_each_other(drover)
        await happens_when_it_should(drover, 3, ALARM_MS, INTERVAL_MS, is_frozen=True)


async def _command(drover: Installation, *arguments: str) -> None:
    done = await drover.drover(*arguments, "--reason", "test")
    assert done.code == 0, done.errors


async def _is_shown_before_it_is_done(drover: Installation, topic: str) -> None:
    async def is_away() -> bool:
        return 3 in (await drover.state()).absent_brokers

    await wait_for(is_away, "broker 3 to be missed")
    dry = (await drover.drover("heal", "plan", "-o", "json")).document
    assert dry["brokers"] == [3]
    named = {one["partition"] for one in dry["partitions"] if one["topic"] == topic}
    assert named == {number for number, replicas in layout(10, 1, 2, 3, 4, 5).items() if 3 in replicas}
    status = (await drover.drover("heal", "status", "-o", "json")).document
    assert [row["broker"] for row in status["clusters"][0]["outages"]] == [3]


async def _owner_dies_in_the_middle(drover: Installation) -> None:
    async def is_under_way() -> bool:
        return (await drover.state()).heal_running is not None

    await wait_for(is_under_way, "the first chunk to begin", timeout_s=PATIENCE_S)
    owner = (await drover.owners())[shard_of(MANAGED, DEFAULT_SHARDS)]
    await drover.processes[owner].kill()


async def happens_when_it_should(
    drover: Installation, broker: int, alarm_ms: int, interval_ms: int, *, is_frozen: bool
) -> None:
    """The alarm and the first plan come after their times, by the log's clock, and soon; a frozen cluster's later."""
    noted_ms: int | None = None
    ages: dict[type, int] = {}
    for batch in await batches(drover):
        for event in batch.events:
            if isinstance(event, BrokerOutageNoted) and event.broker == broker and noted_ms is None:
                noted_ms = batch.at_ms
            elif isinstance(event, BrokerOutageAlarmed | HealPlanned) and noted_ms is not None:
                ages.setdefault(type(event), batch.at_ms - noted_ms)
    assert alarm_ms <= ages[BrokerOutageAlarmed] <= alarm_ms + LATE_MS
    assert interval_ms <= ages[HealPlanned]
    assert is_frozen or ages[HealPlanned] <= interval_ms + LATE_MS


async def test_a_return_in_the_middle_stops_a_heal_and_two_dead_brokers_are_replaced_by_one_plan(
    five: LocalCluster, tmp_path: Path
) -> None:
    """All failures are reported by a client of somebody else, before the cluster shows them."""
    healing = {
        "failure_interval_ms": INTERVAL_MS // 2,
        "alarm_ms": ALARM_MS,
        "chunk_partitions": 1,
        "throttle_bytes_per_second": 150_000,
    }
    async with installation(five, tmp_path, "twice", healing=healing) as drover:
        topic, client = "twice-dead", OtherClient(drover)
        await drover.create_topic(topic, layout(10, 4, 1, 5, 2, 3), kilobytes=2048)
        await drover.start_worker("first")
        await drover.wait_until_owned("first")
        await healing_recorded(drover)
        await gather_on(drover, (1, 2, 3), besides=topic)
        await five.kill(4)
        try:
            await _returns_in_the_middle(drover, client)
            await five.kill(4)
            await client.reports(4)
            await _until_under_way(drover, 4)
            await five.kill(5)
            await client.reports(5)
            await client.send("heal", action="start", broker=5)
            await _command(drover, "limits", "set", "heal.throttle_bytes_per_second=50MB")
            await until_over(drover, 4, 5)
        finally:
            await five.start(4)
            await five.start(5)
        assert await is_whole(drover, topic, without=(4, 5))
        await chunks_follow_each_other(drover)
        await happens_when_it_should(drover, 4, ALARM_MS, INTERVAL_MS // 2, is_frozen=False)
        events = [event for batch in await batches(drover) for event in batch.events]
        ends = [event.why for event in events if isinstance(event, HealEnded)]
        assert ends[0] is HealEnd.RETURNED
        assert HealEnd.REPLANNED in ends
        assert [event.brokers for event in events if isinstance(event, HealPlanned)][-1] == (4, 5)
        assert [event.broker for event in events if isinstance(event, BrokerFailureRecorded)] == [4, 5]
        await reports_end_by_themselves(drover)


async def _until_under_way(drover: Installation, broker: int) -> None:
    async def is_under_way() -> bool:
        running = (await drover.state()).heal_running
        return running is not None and running.brokers == (broker,)

    await wait_for(is_under_way, f"a chunk of broker {broker} to begin", timeout_s=PATIENCE_S)


async def _returns_in_the_middle(drover: Installation, client: OtherClient) -> None:
    """Broker 4 is back while the first of several chunks is copied: the rest of its replicas stay where they are."""
    await client.reports(4)

    async def is_reported() -> bool:
        return 4 in (await drover.state()).absent_brokers

    await wait_for(is_reported, "the report to be decided")
    await _until_under_way(drover, 4)
    await drover.cluster.start(4)

    async def is_over() -> bool:
        state = await drover.state()
        return state.heal is None and state.heal_running is None and 4 not in state.absent_brokers

    await wait_for(is_over, "the heal to end with the return", timeout_s=PATIENCE_S, pause_s=LOOK_S)
    assert await holders(drover, 4), "what had not begun stays on the broker that is back"


async def reports_end_by_themselves(drover: Installation) -> None:
    """Every broker lives again, and nobody reports that (R46-2)."""

    async def none_is_left() -> bool:
        return not (await drover.state()).failed_brokers

    await wait_for(none_is_left, "the reports to end", timeout_s=PATIENCE_S, pause_s=LOOK_S)
    events = [event for batch in await batches(drover) for event in batch.events]
    reported = {event.broker for event in events if isinstance(event, BrokerFailureRecorded)}
    ends = {(event.broker, event.by) for event in events if isinstance(event, BrokerReturnRecorded)}
    assert ends == {(broker, "drover") for broker in reported}


@pytest_asyncio.fixture(loop_scope="session")
async def zookeeper(five: LocalCluster) -> AsyncIterator[Store]:
    store = ZooKeeperStore(ZooKeeperOptions(five.zookeeper))
    yield store
    await store.close()


async def node_of(zookeeper: Store, root: str, broker: int) -> Any:
    """Read what stands in ZooKeeper about a failed broker; None if nothing does."""
    path = f"{root}/{MANAGED}/admin/failed_brokers/{broker}"
    found = (await zookeeper.read([path])).get(path)
    return None if found is None else json.loads(found.data)


async def test_a_wrong_report_of_a_broker_that_lives_costs_no_replica_and_ends_by_itself(
    five: LocalCluster, zookeeper: Store, tmp_path: Path
) -> None:
    """Promise 2, without healing: an original was dropped by a swap, and is copied back although it is reported."""
    root, key = "/wrong-report", TopicPartition("wrongly", 0)
    async with installation(five, tmp_path, "wrong-report") as drover:
        let_project(drover, five, root, "project = true")
        await drover.create_topic("wrongly", {0: [1, 2, 3]}, kilobytes=2048)
        await drover.start_worker("first")
        await drover.wait_until_owned("first")
        options = ("--stepping", "swap", "--throttle", "150kB")
        assert (await drover.alter("swap", {key: [1, 4, 5]}, *options)).code == 0

        async def has_dropped() -> bool:
            moving = (await drover.state()).reassignments[key]
            return not {1, 2, 3} <= {*moving.current}

        await wait_for(has_dropped, "an original to be dropped", timeout_s=PATIENCE_S)
        (dropped,) = {1, 2, 3} - {*(await drover.state()).reassignments[key].current}
        reported = await drover.drover("broker", "failed", str(dropped), "--reason", "no ping")
        assert (reported.code, f"broker {dropped} is alive" in reported.output + reported.errors) == (0, True)
        cancelled = await drover.drover("cancel", "--rollback", "--plan", "swap", "--reason", "enough")
        assert cancelled.code == 0, cancelled.errors
        await drover.wait_until_settled(timeout_s=PATIENCE_S)
        assert await drover.replicas(key) == (1, 2, 3)
        (end,) = [
            event
            for batch in await batches(drover)
            for event in batch.events
            if isinstance(event, ReassignmentRolledBack)
        ]
        assert (end.replicas, end.missing) == ((1, 2, 3), ())
        await reports_end_by_themselves(drover)

        async def is_gone() -> bool:
            return await node_of(zookeeper, root, dropped) is None

        await wait_for(is_gone, "the report's node to be gone", timeout_s=PATIENCE_S)


async def test_an_outage_that_drover_notes_has_a_node_until_the_broker_is_back(
    five: LocalCluster, zookeeper: Store, tmp_path: Path
) -> None:
    """R46-1, R46-2: nobody reports anything, and nothing is healed."""
    root = "/noted"
    async with installation(five, tmp_path, "noted", healing={"failure_interval_ms": -1}) as drover:
        let_project(drover, five, root, "project = true")
        await drover.create_topic("noted", {0: [1, 2, 3]})
        await drover.start_worker("first")
        await drover.wait_until_owned("first")
        await healing_recorded(drover)
        await five.kill(3)
        try:

            async def stands() -> bool:
                return await node_of(zookeeper, root, 3) is not None

            await wait_for(stands, "the node of broker 3", timeout_s=PATIENCE_S)
            (noted_ms,) = [
                batch.at_ms
                for batch in await batches(drover)
                for event in batch.events
                if isinstance(event, BrokerOutageNoted)
            ]
            assert await node_of(zookeeper, root, 3) == {"failure_timestamp": noted_ms}
            said = await drover.drover("heal", "status")
            assert "healing is off (failure_interval_ms = -1): absent brokers are recorded" in said.output
        finally:
            await five.start(3)

        async def is_gone() -> bool:
            return await node_of(zookeeper, root, 3) is None

        await wait_for(is_gone, "the node of broker 3 to be gone", timeout_s=PATIENCE_S)
