"""Throttles that an interrupted run of another tool has left, and a command that deletes them."""

from drover.cluster.throttle_lists import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from drover.events.commands import RestoreThrottles
from drover.events.leftover_throttles import LeftoverEntries, LeftoverRates
from drover.events.partitions import TopicPartition
from drover.events.refusals import RefusalCode
from drover.events.throttles import BrokerThrottleAdopted, BrokerThrottleLeft
from drover.reconcile.messages import Identified
from tests.shard.sound import sound
from tests.shard.world import CLUSTER, Death, World, alter

KEY = TopicPartition("orders", 0)
LEFT = {LEADER_RATE: "700", FOLLOWER_RATE: "700"}
LISTS = {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "0:4,1:4"}


def left_over() -> World:
    """Somebody's tool was killed: rates on brokers 1 and 4, entries on one topic."""
    made = World()
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [1, 2, 3]}, partition_bytes=1_000_000)
    for broker in (1, 4):
        made.model.brokers[broker].configs.update(LEFT)
    made.model.topics["orders"].configs.update(LISTS)
    made.core.deliver(Identified(CLUSTER, made.model.kafka_cluster_id, (1, 2, 3, 4), 0))
    return made


def restore(name: str = "r-1", **fields: object) -> RestoreThrottles:
    given = {
        "brokers": tuple(LeftoverRates(broker=broker, leader=700, follower=700) for broker in (1, 4)),
        "topics": (LeftoverEntries(topic="orders", leader=("0:1", "0:2"), follower=("0:4", "1:4")),),
        **fields,
    }
    return RestoreThrottles(id=name, cluster=CLUSTER, by="ana", reason="left over", **given)  # type: ignore[arg-type]


def rates(made: World, broker: int) -> dict[str, str]:
    return {key: value for key, value in made.model.brokers[broker].configs.items() if key in LEFT}


def lists(made: World) -> dict[str, str]:
    return {key: value for key, value in made.model.topics["orders"].configs.items() if key in LISTS and value}


async def test_what_was_seen_is_deleted_and_the_ledger_is_empty_again() -> None:
    made = left_over()
    assert (await made.send(restore())).verdict == "accepted"
    await made.run(3000)
    assert (rates(made, 1), rates(made, 4), lists(made)) == ({}, {}, {})
    assert made.is_idle
    sound(made)


async def test_a_rate_that_has_changed_since_it_was_seen_stays() -> None:
    made = left_over()
    made.model.brokers[4].configs[FOLLOWER_RATE] = "900"
    await made.send(restore(topics=()))
    await made.run(3000)
    assert rates(made, 1) == {}
    assert rates(made, 4) == {FOLLOWER_RATE: "900"}
    assert made.is_idle


async def test_both_rates_that_have_changed_stay() -> None:
    made = left_over()
    made.model.brokers[4].configs.update({FOLLOWER_RATE: "900", LEADER_RATE: "900"})
    await made.send(restore(topics=()))
    await made.run(3000)
    assert len(rates(made, 4)) == 2
    assert any(isinstance(event, BrokerThrottleLeft) and event.broker == 4 for event in made.events())
    assert made.is_idle


async def test_entries_that_were_not_named_stay() -> None:
    made = left_over()
    await made.send(restore(brokers=(), topics=(LeftoverEntries(topic="orders", follower=("0:4",)),)))
    await made.run(3000)
    assert lists(made) == {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "1:4"}


async def test_drovers_own_throttles_are_not_deleted() -> None:
    made = World(copy_bytes_per_second=100_000)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=5_000_000)
    await made.send(alter({KEY: [4, 2, 3]}, throttle_bytes_per_second=700))
    await made.run(1000)
    refused = await made.send(restore(topics=(LeftoverEntries(topic="orders", follower=("0:4",)),)))
    assert [refusal.code for refusal in refused.refusals] == [RefusalCode.DROVERS_OWN_THROTTLE]
    assert "broker 1, broker 4, topic orders: Drover's own" in refused.refusals[0].detail
    await made.run(2000)
    assert rates(made, 4) == LEFT


async def test_a_broker_that_is_away_is_left_out_and_nothing_waits_for_it() -> None:
    made = left_over()
    made.model.stop_broker(4)
    await made.run(1000)
    outcome = await made.send(restore(topics=()))
    assert outcome.remarks == ("broker 4: not alive; ask again when it is back",)
    await made.run(3000)
    assert (rates(made, 1), rates(made, 4)) == ({}, LEFT)
    assert made.is_idle
    refused = await made.send(restore("r-2", topics=(), brokers=(LeftoverRates(broker=99, leader=5),)))
    assert [refusal.code for refusal in refused.refusals] == [RefusalCode.UNKNOWN_BROKER]


async def test_a_broker_that_dies_meanwhile_loses_them_when_it_returns() -> None:
    made = left_over()
    await made.run(1000)
    made.model.stop_broker(4)
    await made.send(restore(topics=()))
    await made.run(3000)
    assert rates(made, 4) == LEFT
    made.model.start_broker(4)
    await made.run(5000)
    assert rates(made, 4) == {}
    assert made.is_idle


async def test_a_successor_goes_on_with_it() -> None:
    made = left_over()
    made.put(restore())
    await made.turn(die=Death.AFTER_APPEND)
    assert any(isinstance(event, BrokerThrottleAdopted) for event in made.events())
    await made.run(12_000)
    assert (rates(made, 1), rates(made, 4), lists(made)) == ({}, {}, {})
    assert made.is_idle
