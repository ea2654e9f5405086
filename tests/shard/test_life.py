"""The life of reassignments on the model cluster, from command to terminal event."""

import pytest
from msgspec.structs import replace

from drover.cluster.port import SetBrokerRates
from drover.events.commands import Freeze, Unfreeze
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Call, CallIntended
from drover.events.refusals import RefusalCode
from drover.facts import BrokerRates, ThrottledReplicas
from drover.reconcile.observations import METADATA_LAG_MS
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from tests.shard.world import CLUSTER, World, alter, rollback

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)


def world(**options: object) -> World:
    made = World(**options)  # type: ignore[arg-type]  # passed on as they are
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1]}, partition_bytes=1_000_000)
    return made


async def test_a_move_that_adds_one_replica_is_one_step_and_completes() -> None:
    made = world()
    outcome = await made.send(alter({ORDERS_0: [4, 2, 1]}))
    assert outcome.verdict == "accepted"
    await made.finish()
    assert made.replicas(ORDERS_0) == (4, 2, 1)
    assert made.tags(ORDERS_0) == ["reassignment-created", "call-intended", "call-accepted", "reassignment-completed"]


async def test_a_move_that_adds_two_replicas_grows_one_at_a_time_and_then_takes_the_targets_order() -> None:
    made = World(brokers=5)
    made.model.create_topic("orders", {0: [1, 2, 3]})
    await made.send(alter({ORDERS_0: [4, 5, 1]}))
    await made.finish()
    sent = [event.replicas for event in made.events() if isinstance(event, CallIntended) and event.call is Call.STEP]
    assert sent == [(1, 2, 3, 4), (1, 2, 3, 4, 5), (4, 5, 1)]
    assert made.replicas(ORDERS_0) == (4, 5, 1)


async def test_a_larger_step_setting_moves_all_at_once() -> None:
    made = World(brokers=5, limits=Limits(max_replicas_per_step=3))
    made.model.create_topic("orders", {0: [1, 2, 3]})
    await made.send(alter({ORDERS_0: [4, 5, 1]}))
    await made.finish()
    assert made.tags(ORDERS_0) == ["reassignment-created", "call-intended", "call-accepted", "reassignment-completed"]


async def test_a_rollback_restores_the_original_replicas_in_their_original_order() -> None:
    made = world(joins_by_itself=False)
    await made.send(alter({ORDERS_0: [4, 2, 1]}))
    await made.run(1000)
    assert made.reassignment(ORDERS_0).phase is Phase.COPYING
    outcome = await made.send(rollback(ORDERS_0))
    assert outcome.verdict == "accepted"
    await made.finish()
    assert made.replicas(ORDERS_0) == (1, 2, 3)
    assert made.model.moves() == {}
    assert made.tags(ORDERS_0)[-6:] == [
        "rollback-requested",
        "call-intended",
        "call-accepted",
        "call-intended",
        "call-accepted",
        "reassignment-rolled-back",
    ]


async def test_old_metadata_after_85_does_not_pass_for_what_the_cancel_left() -> None:
    """A grow step that was done just before its cancel: the list from before it is what a cancel would leave."""
    made = World(brokers=5, joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2, 3]})
    await made.send(alter({ORDERS_0: [4, 5, 1]}))
    await made.run(300)
    made.put(rollback(ORDERS_0))
    made.hold_effects = True
    while made.reassignment(ORDERS_0).phase is not Phase.CANCEL_INTENDED:
        await made.turn()
        made.model.advance(100)
        await made.look()
    made.hold_effects = False
    made.driver.freeze_metadata()
    made.model.join_isr(ORDERS_0, 4)
    before = made.driver._frozen
    assert before is not None
    before.partitions[ORDERS_0] = replace(before.partitions[ORDERS_0], replicas=(1, 2, 3), move=None)
    await made.release_effects()
    await made.run(1000)
    made.driver.thaw_metadata()
    await made.finish()
    assert made.replicas(ORDERS_0) == (1, 2, 3)
    assert made.tags(ORDERS_0)[-1] == "reassignment-rolled-back"


async def test_a_rollback_between_grow_steps_takes_the_grown_replica_away_again() -> None:
    made = World(brokers=5, joins_by_itself=False)
    made.model.create_topic("orders", {0: [2, 1, 3]})
    await made.send(alter({ORDERS_0: [4, 5, 1]}))
    await made.run(500)
    made.model.join_isr(ORDERS_0, 4)
    await made.run(500)
    assert made.replicas(ORDERS_0) == (2, 1, 3, 4, 5)
    await made.send(rollback(ORDERS_0))
    await made.finish()
    assert made.replicas(ORDERS_0) == (2, 1, 3)


async def test_what_is_queued_is_withdrawn_without_a_call() -> None:
    made = world(limits=Limits(max_partitions_in_flight=1), joins_by_itself=False)
    await made.send(alter({ORDERS_0: [4, 2, 1], ORDERS_1: [4, 3, 1]}))
    await made.run(300)
    assert made.reassignment(ORDERS_1).phase is Phase.PENDING
    await made.send(rollback(ORDERS_1))
    assert ORDERS_1 not in made.state.reassignments
    assert "call-intended" not in made.tags(ORDERS_1)


async def test_a_rollback_is_skipped_when_no_original_is_in_sync_but_a_new_replica_is_alive() -> None:
    """TV-204, R236-8: rolling back would take the partition offline."""
    made = World(brokers=6, limits=Limits(max_replicas_per_step=3), joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2, 3]})
    await made.send(alter({ORDERS_0: [4, 5, 6]}))
    await made.run(300)
    for broker in (4, 5):
        made.model.join_isr(ORDERS_0, broker)
    for broker in (1, 2, 3):
        made.model.stop_broker(broker)
    await made.send(rollback(ORDERS_0))
    await made.run(1000)
    assert "rollback-skipped" in made.tags(ORDERS_0)
    assert made.reassignment(ORDERS_0).phase is Phase.COPYING
    assert made.replicas(ORDERS_0) == (4, 5, 6, 1, 2, 3)


async def test_the_same_target_again_has_no_effect() -> None:
    made = world(joins_by_itself=False)
    await made.send(alter({ORDERS_0: [4, 2, 1]}))
    again = await made.send(alter({ORDERS_0: [4, 2, 1]}))
    assert [reference.partition for reference in again.unchanged] == [0]


async def test_a_throttled_plan_sets_and_exactly_restores_what_was_there() -> None:
    made = world(copy_bytes_per_second=10_000_000)
    await made.driver.change_throttles([SetBrokerRates(2, BrokerRates(777, None))])
    before = {broker: dict(made.model.brokers[broker].configs) for broker in made.model.brokers}
    await made.send(alter({ORDERS_0: [4, 2, 1]}, throttle_bytes_per_second=200_000))
    await made.run(METADATA_LAG_MS + 500)
    assert made.reassignment(ORDERS_0).phase is Phase.COPYING
    lists = (await made.driver.throttled_replicas(["orders"]))["orders"]
    assert lists == ThrottledReplicas(("0:1", "0:2", "0:3"), ("0:4",))
    assert (await made.driver.broker_rates([4]))[4] == BrokerRates(200_000, 200_000)
    await made.finish()
    assert {broker: dict(made.model.brokers[broker].configs) for broker in made.model.brokers} == before
    assert (await made.driver.throttled_replicas(["orders"]))["orders"] == ThrottledReplicas((), ())


@pytest.mark.parametrize("moment", range(14))
async def test_a_successor_after_a_crash_at_any_turn_brings_the_move_to_its_target(moment: int) -> None:
    made = World(brokers=5)
    made.model.create_topic("orders", {0: [1, 2, 3]})
    made.put(alter({ORDERS_0: [4, 5, 1]}, throttle_bytes_per_second=1_000_000))
    for _ in range(moment):
        made.model.advance(100)
        await made.look()
        await made.turn()
    made.crash()
    await made.finish()
    assert made.replicas(ORDERS_0) == (4, 5, 1)
    assert made.model.moves() == {}
    cancels = [event for event in made.events() if getattr(event, "call", None) == "cancel"]
    assert cancels == []


async def test_a_partition_that_does_not_exist_says_nothing_about_the_others_of_its_topic() -> None:
    made = world()
    outcome = await made.send(alter({ORDERS_0: [4, 2, 1], TopicPartition("orders", 9): [1]}))
    assert [reference.partition for reference in outcome.accepted] == [0]
    assert [refusal.code for refusal in outcome.refusals] == [RefusalCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_what_was_queued_while_the_cluster_was_frozen_starts_after_the_unfreeze() -> None:
    made = world()
    await made.send(Freeze(id="stop", cluster=CLUSTER, by="ana", reason="test"))
    await made.send(alter({ORDERS_0: [4, 2, 1]}))
    await made.run(5000)
    assert made.reassignment(ORDERS_0).phase is Phase.PENDING
    assert made.model.moves() == {}
    await made.send(Unfreeze(id="go", cluster=CLUSTER, by="ana", reason="test"))
    await made.finish(within_ms=5000)
    assert made.replicas(ORDERS_0) == (4, 2, 1)
