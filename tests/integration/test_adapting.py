"""A live broker's replica lags beside moves that do not explain it: fewer slots, no new copies, and back again."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgpack
import pytest
import pytest_asyncio
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from drover.cluster.port import AddThrottledReplicas, RemoveThrottledReplicas, SetBrokerRates
from drover.cluster.sockets import DIRECT
from drover.events.partitions import TopicPartition
from drover.facts import BrokerRates, ThrottledReplicas
from tests.integration.story import read_all, read_story
from tests.integration.support import Installation, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.story, pytest.mark.kills(3)]

OWNED = "shards are owned"
WHY = ("--reason", "integration test")
LOWERED, SUSPENDED, RESUMED, CALL = KINDS = (
    "broker-allowance-changed",
    "starts-suspended",
    "starts-resumed",
    "call-intended",
)
# Broker 1 leads all of them; Drover copies from it to broker 4, and broker 3 has no part in that.
MOVED = tuple(TopicPartition("walks", number) for number in range(6))
LAGGING, WAITING = TopicPartition("lags", 0), TopicPartition("waits", 0)
# Throttled at its leader, too: a broker that starts fetches for a moment before it knows its own throttle.
AT_LEADER, AT_FOLLOWER = ThrottledReplicas(("0:1",), ()), ThrottledReplicas((), ("0:3",))
NONE = BrokerRates(None, None)
# A fetch takes a megabyte of a partition whatever the rate, and Kafka averages over eleven seconds: three minutes.
BACKLOG_KILOBYTES = 16 * 1024


@pytest_asyncio.fixture
async def beside(drover: Installation) -> AsyncIterator[Installation]:
    """The Drover of the folder, which adapts to nothing at first; nothing moves, lags or is limited afterwards."""
    await limits(drover, "set", "adapts_to_health=false", "max_moves_per_broker=2")
    yield drover
    await drover.cluster.start(3)
    await drover.driver.change_throttles([SetBrokerRates(3, NONE), RemoveThrottledReplicas("lags", AT_FOLLOWER)])
    await limits(drover, "reset", "--all")
    # A test that fails leaves moves behind, so slow that every test after it would fail as well.
    await drover.drover("cancel", "--rollback", "--plan", "walks", *WHY)
    await drover.wait_until_settled()


async def limits(drover: Installation, *arguments: str) -> None:
    finished = await drover.drover("limits", *arguments, *WHY)
    assert finished.code == 0, finished.errors


async def said(drover: Installation) -> str:
    return (await drover.drover("status")).output


async def events(drover: Installation) -> list[dict[str, Any]]:
    """Every restriction and every call for a move of the log, in order, by an independent reading."""
    records = await read_all(drover.connection, drover.connection.topics.events)
    batches = [msgpack.unpackb(stored.value) for shard in records.values() for stored in shard]
    return [event for batch in batches for event in batch.get("events", ()) if event["type"] in KINDS]


async def broker_1_leads(drover: Installation) -> bool:
    """Whether it leads what is to be moved; elects it where not, for the next time.

    A broker that stands still for three seconds, which a busy machine may cause, loses its leaders to others for good.
    """
    seen = await drover.driver.observe(MOVED)
    if {facts.leader for facts in seen.partitions.values() if facts is not None} == {1}:
        return True
    await drover.driver.elect_leaders(MOVED)
    return False


async def are_under_way(drover: Installation) -> bool:
    return bool((await drover.driver.list_moves()).moves)


async def let_broker_3_lag(drover: Installation) -> None:
    """Restart it with a backlog and a throttle: it lives, fetches, and stays out of sync."""
    await drover.create_topic("lags", {0: [1, 3]})
    lists = [AddThrottledReplicas("lags", entries) for entries in (AT_LEADER, AT_FOLLOWER)]
    await drover.change_throttles(SetBrokerRates(3, BrokerRates(None, 1000)), *lists)
    await drover.cluster.kill(3)

    async def shrunk() -> bool:
        return (await drover.facts(LAGGING)).isr == (1,)

    await wait_for(shrunk, "broker 3 to leave the ISR")
    await drover.fill("lags", {0: [1]}, kilobytes=BACKLOG_KILOBYTES)
    await drover.cluster.start(3)
    admin = KafkaAdminClient(bootstrap_servers=drover.cluster.bootstrap, proxy_url=DIRECT)
    changed = admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "lags", {"min.insync.replicas": "2"})])
    admin.close()
    assert changed == {"topic": {"lags": "OK"}}

    async def lacks_replicas() -> bool:
        seen = await drover.driver.observe([LAGGING], with_min_isr=True)
        return 3 in seen.live_brokers and seen.min_isr.get("lags") == 2

    await wait_for(lacks_replicas, "broker 3 to live and lags to need two replicas in sync")
    assert (await drover.facts(LAGGING)).isr == (1,)


async def goes_on(drover: Installation) -> None:
    """Fail if there is nothing to be noticed any more, since the replica has caught up or the moves have ended."""
    assert (await drover.facts(LAGGING)).isr == (1,), "the replica has caught up too early"
    assert (await drover.state()).reassignments, "the moves have ended already"


async def test_lagging_replicas_lower_a_broker_and_below_min_isr_only_repairs_begin(beside: Installation) -> None:
    drover = beside
    await drover.create_topic("walks", {key.partition: [1, 2] for key in MOVED}, kilobytes=4096)
    await drover.create_topic("waits", {0: [2, 1]})
    await wait_for(partial(broker_1_leads, drover), "broker 1 to lead what is to be moved")
    assert (await drover.alter("walks", dict.fromkeys(MOVED, (1, 4)), "--throttle", "50kB/s")).code == 0
    # A broker killed before that, perhaps one that leads a shard, keeps them from beginning for ten seconds or so.
    await wait_for(partial(are_under_way, drover), "the first moves to begin")
    await let_broker_3_lag(drover)
    # Switched off, nobody looks.
    assert {event["type"] for event in await events(drover)} == {CALL}
    await goes_on(drover)

    await limits(drover, "set", "adapts_to_health=true")
    await lowered_and_suspended(drover)
    await let_another_take_over(drover)
    await only_the_repair_begins(drover)

    await limits(drover, "set", "adapts_to_health=false")

    async def unrestricted() -> bool:
        state = await drover.state()
        return not state.allowances and state.suspension is None

    await wait_for(unrestricted, "every restriction to end")
    found = await events(drover)
    assert {event["type"] for event in found} == set(KINDS)
    lowered, *_, last = [event for event in found if event["type"] == LOWERED]
    assert (lowered["broker"], lowered["halvings"], lowered["why"]) == (1, 1, "losing-replicas")
    assert (last["broker"], last["halvings"], last["why"]) == (1, 0, "switched-off")
    assert (await drover.drover("cancel", "--rollback", "--plan", "walks", *WHY)).code == 0
    await drover.wait_until_settled()
    assert (await read_story(drover.connection)).faults == []


async def lowered_and_suspended(drover: Installation) -> None:
    async def told(kind: str) -> bool:
        await goes_on(drover)
        # Broker 1 may lose what it leads at any time, and only a leader that copies has slots to lose.
        await broker_1_leads(drover)
        return kind in {event["type"] for event in await events(drover)}

    await wait_for(partial(told, SUSPENDED), "starts to be suspended", pause_s=0.5)
    # Two looks, ten seconds or more apart, and more if both take long.
    await wait_for(partial(told, LOWERED), "the slots of a broker to be lowered", pause_s=0.5)
    state = await drover.state()
    # Broker 3 lags, and Drover copies nothing there: only its leader has slots to lose.
    assert set(state.allowances) == {1}
    assert state.below_min_isr == {LAGGING}
    output = await said(drover)
    assert "broker 1 may use 1/2 of its slots: replica 3 of lags:0 is not in sync, and no move explains it" in output
    assert "lags:0 has fewer replicas in sync than min.insync.replicas" in output


async def let_another_take_over(drover: Installation) -> None:
    """Kill the worker: the next one has read no min.insync.replicas yet, and ends no suspension for that."""
    owned = drover.processes["solo"].log_text().count(OWNED)
    await drover.processes["solo"].kill()
    await drover.start_worker("solo")

    async def is_taken_over() -> bool:
        return drover.processes["solo"].log_text().count(OWNED) > owned

    await wait_for(is_taken_over, "the next worker to own every shard")


async def only_the_repair_begins(drover: Installation) -> None:
    assert (await drover.alter("waits", {WAITING: [2, 4]})).code == 0

    async def withheld() -> bool:
        return "withheld, 1 partition has fewer replicas in sync than min.insync.replicas" in await said(drover)

    await wait_for(withheld, "status to say what the plan waits for", pause_s=0.5)
    await drover.change_throttles(RemoveThrottledReplicas("lags", AT_LEADER))
    assert (await drover.facts(LAGGING)).isr == (1,), "the replica has caught up too early"
    assert (await drover.alter("repair", {LAGGING: [1, 4]})).code == 0

    async def both_done() -> bool:
        plans = (await drover.state()).plans
        return plans["repair"].completed == plans["waits"].completed == 1

    await wait_for(both_done, "the repair to end, and then the other")
    assert (await drover.state()).suspension is None
    told = [(event["type"], event.get("topic")) for event in await events(drover)]
    restricted = told[told.index((SUSPENDED, None)) :]
    resumed = restricted.index((RESUMED, None))
    assert restricted.index((CALL, "lags")) < resumed < restricted.index((CALL, "waits"))
    assert (CALL, "walks") not in restricted[:resumed]
