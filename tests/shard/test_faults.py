"""Lost requests and answers, dead brokers, deleted topics, old metadata, and clusters that are gone or others."""

import pytest

from drover.cluster.port import AlterRequest, SetBrokerRates
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, FailureReason, ReassignmentCompleted, ReassignmentFailed
from drover.events.refusals import RefusalCode
from drover.events.topics import TopicNames
from drover.facts import BrokerRates, CallResult, ThrottledReplicas
from drover.reconcile.messages import Identified, ReadThrottles
from drover.shard.core import ShardCore
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from drover.testing.simulated import Loss
from tests.shard.world import TOPIC_IDS, World, alter, rollback

KEY = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)


def world(brokers: int = 5, **options: object) -> World:
    made = World(brokers=brokers, joins_by_itself=False, **options)  # type: ignore[arg-type]  # passed on as they are
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1]}, partition_bytes=1000)
    return made


async def copying(made: World, target: tuple[int, ...] = (4, 2, 1)) -> World:
    await made.send(alter({KEY: target}))
    await made.run(300)
    assert made.reassignment(KEY).phase is Phase.COPYING
    return made


def failed(made: World) -> ReassignmentFailed:
    (event,) = [event for event in made.events() if isinstance(event, ReassignmentFailed)]
    return event


# -- the network


@pytest.mark.parametrize("loss", list(Loss))
async def test_a_lost_step_reaches_its_target_all_the_same(loss: Loss) -> None:
    made = world()
    made.put(alter({KEY: [4, 2, 1]}))
    made.hold_effects = True
    await made.settle()
    made.hold_effects = False
    made.driver.lose_next(loss)
    await made.release_effects()
    await made.run(6000)
    made.model.join_isr(KEY, 4)
    await made.finish()
    assert made.replicas(KEY) == (4, 2, 1)


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("call", [Phase.CANCEL_INTENDED, Phase.RESTORE_INTENDED])
async def test_a_lost_call_of_the_way_back_restores_all_the_same(loss: Loss, call: Phase) -> None:
    made = await copying(world())
    made.put(rollback(KEY))
    made.hold_effects = True
    while made.reassignment(KEY).phase is not call:
        await made.turn()
        if made.held and made.reassignment(KEY).phase is not call:
            await made.release_effects()
        made.model.advance(100)
        await made.look()
    made.hold_effects = False
    made.driver.lose_next(loss)
    await made.release_effects()
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    assert made.model.moves() == {}


async def test_85_on_a_cancel_of_a_finished_move_says_that_it_was_done_before() -> None:
    made = await copying(world())
    made.put(rollback(KEY))
    made.hold_effects = True
    while made.reassignment(KEY).phase is not Phase.CANCEL_INTENDED:
        await made.turn()
        made.model.advance(100)
        await made.look()
    made.hold_effects = False
    made.model.join_isr(KEY, 4)
    await made.release_effects()
    await made.finish()
    (event,) = [event for event in made.events() if isinstance(event, ReassignmentCompleted)]
    assert event.before_cancel
    assert made.replicas(KEY) == (4, 2, 1)


async def test_a_call_that_kafka_refuses_for_now_is_tried_again_with_patience() -> None:
    made = world()
    made.driver.refuse_next(KEY, CallResult(31, "no"))
    await made.send(alter({KEY: [4, 2, 1]}))
    await made.settle()
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.CALL_REJECTED
    await made.run(3000)
    assert made.reassignment(KEY).phase is Phase.COPYING


async def test_old_metadata_right_after_a_cancel_does_not_pass_for_the_restored_order() -> None:
    """The list from before the move looks like the original; what Kafka's cancel left is another order."""
    made = world()
    made.driver.freeze_metadata()
    await made.send(alter({KEY: [4, 2, 1]}))
    await made.settle()
    await made.send(rollback(KEY))
    await made.run(1000)
    made.driver.thaw_metadata()
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)


async def test_old_metadata_right_after_completion_does_not_pass_for_a_rollback() -> None:
    made = world()
    made.driver.freeze_metadata()
    await made.send(alter({KEY: [4, 2, 1]}))
    await made.settle()
    made.model.join_isr(KEY, 4)
    await made.send(rollback(KEY))
    await made.run(1000)
    made.driver.thaw_metadata()
    await made.finish()
    assert made.replicas(KEY) == (4, 2, 1)
    assert "reassignment-rolled-back" not in made.tags(KEY)


# -- brokers


async def test_a_dead_destination_blocks_and_does_not_stop_the_cancel() -> None:
    """Live fact: the move stays listed for ever, cancel works at once."""
    made = await copying(world())
    made.model.stop_broker(4)
    await made.run(3000)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.DEAD_DESTINATION
    await made.send(rollback(KEY))
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)


async def test_a_destination_that_comes_back_goes_on_without_a_block() -> None:
    made = await copying(world())
    made.model.stop_broker(4)
    await made.run(3000)
    made.model.start_broker(4)
    await made.run(3000)
    assert made.reassignment(KEY).block is None
    made.model.join_isr(KEY, 4)
    await made.finish()
    assert made.replicas(KEY) == (4, 2, 1)


async def test_a_dead_source_leaves_the_lead_to_another_and_the_move_goes_on() -> None:
    made = await copying(world())
    made.model.stop_broker(1)
    await made.run(1000)
    made.model.join_isr(KEY, 4)
    await made.finish()
    (event,) = [event for event in made.events() if isinstance(event, ReassignmentCompleted)]
    assert event.out_of_sync == (1,)


async def test_a_kept_replica_that_is_dead_does_not_block_completion() -> None:
    """Live fact: only what is added must be in sync, unless the list shrinks."""
    made = await copying(world())
    made.model.stop_broker(2)
    made.model.join_isr(KEY, 4)
    await made.finish()
    assert made.replicas(KEY) == (4, 2, 1)


async def test_a_shrink_that_loses_a_member_on_the_way_says_what_it_waits_for() -> None:
    made = await copying(world(), (4, 2))
    made.model.stop_broker(2)
    made.model.join_isr(KEY, 4)
    await made.run(3000)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.REPLICAS_OUT_OF_SYNC
    await made.send(rollback(KEY))
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)


# -- topics


async def test_a_topic_that_is_deleted_ends_its_moves() -> None:
    made = await copying(world())
    made.model.delete_topic("orders")
    await made.finish()
    assert failed(made).why is FailureReason.PARTITION_GONE


async def test_a_topic_that_is_recreated_is_not_touched() -> None:
    """S9."""
    made = world(limits=Limits(max_partitions_in_flight=1))
    await made.send(alter({KEY: [4, 2, 1], OTHER: [4, 3, 1]}))
    await made.run(300)
    made.model.delete_topic("orders")
    made.model.create_topic("orders", {0: [3, 4, 5], 1: [3, 4, 5]})
    await made.finish()
    assert made.replicas(KEY) == made.replicas(OTHER) == (3, 4, 5)
    assert "call-intended" not in made.tags(OTHER)


async def test_a_throttled_topic_that_is_deleted_leaves_nothing_in_the_ledger() -> None:
    made = world()
    await made.send(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=1000))
    await made.run(2000)
    assert made.state.topic_throttles
    made.model.delete_topic("orders")
    await made.finish()
    assert made.state.topic_throttles == {}


# -- others


async def test_an_unmanaged_cancel_ends_the_move_and_is_not_fought() -> None:
    made = await copying(world())
    made.model.alter([AlterRequest(KEY, None)])
    await made.finish()
    assert failed(made).why is FailureReason.CANCELLED_ELSEWHERE
    assert made.model.moves() == {}


async def test_a_broker_that_shows_old_lists_for_many_seconds_is_taken_for_nobody_s_cancel() -> None:
    """In KRaft mode a broker that creates and deletes a thousand replicas answers with what was before."""
    made = world()
    made.model.remember_metadata(20_000)
    made = await copying(made)
    made.driver.lag_metadata(20_000)
    made.model.join_isr(KEY, 4)
    await made.run(19_000)
    assert made.reassignment(KEY).phase is Phase.COPYING
    await made.finish()
    assert [
        type(event) for event in made.events() if isinstance(event, ReassignmentCompleted | ReassignmentFailed)
    ] == [ReassignmentCompleted]


async def test_an_unmanaged_retarget_is_shown_and_what_it_leaves_ends_the_move() -> None:
    made = await copying(world())
    made.model.alter([AlterRequest(KEY, (5, 2, 1))])
    await made.run(5000)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.UNMANAGED_CHANGE
    made.model.join_isr(KEY, 5)
    made.model.join_isr(KEY, 4)
    await made.finish()
    assert failed(made).why is FailureReason.UNMANAGED_CHANGE


@pytest.mark.parametrize("throttle", [None, 1000])
async def test_an_unmanaged_change_between_two_steps_is_shown_after_it_has_persisted(throttle: int | None) -> None:
    made = world()
    await made.send(alter({KEY: [4, 5, 1]}, throttle_bytes_per_second=throttle))
    await made.run(1000)
    await made.freeze()
    made.model.join_isr(KEY, 4)
    await made.run(500)
    assert made.reassignment(KEY).phase is Phase.CONFIRMED
    made.model.alter([AlterRequest(KEY, (2, 1, 3, 4))])
    await made.run(3000)
    await made.unfreeze()
    await made.run(6000)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.UNMANAGED_CHANGE


async def test_an_unmanaged_rate_set_long_after_a_withdrawn_plan_is_put_back() -> None:
    """What was read for a plan that never began is no baseline later."""
    made = world()
    made.put(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=1000, id="first"))
    await made.turn()
    made.put(rollback(KEY))
    await made.settle()
    await made.finish()
    await made.run(60_000)
    await made.driver.change_throttles([SetBrokerRates(1, BrokerRates(777, 777))])
    await made.send(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=1000))
    await made.run(1000)
    made.model.join_isr(KEY, 4)
    await made.finish()
    assert (await made.driver.broker_rates([1]))[1] == BrokerRates(777, 777)
    assert (await made.driver.throttled_replicas(["orders"]))["orders"] == ThrottledReplicas((), ())


# -- the cluster as a whole


async def test_moves_go_on_when_the_cluster_is_within_reach_again() -> None:
    made = await copying(world(), (4, 5, 1))
    made.driver.unreachable = True
    made.model.join_isr(KEY, 4)
    await made.run(5000)
    made.driver.unreachable = False
    await made.run(2000)
    made.model.join_isr(KEY, 5)
    await made.finish()
    assert made.replicas(KEY) == (4, 5, 1)


async def test_to_another_cluster_under_the_same_name_nothing_is_sent() -> None:
    made = world()
    await made.send(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=1000))
    made.model.kafka_cluster_id = "another"
    await made.run(5000)
    assert made.state.mismatched_kafka_cluster_id == "another"
    refused = await made.send(alter({OTHER: [4, 3, 1]}))
    assert [refusal.code for refusal in refused.refusals] == [RefusalCode.CLUSTER_CHANGED]
    configs = {broker: dict(state.configs) for broker, state in made.model.brokers.items()}
    moves = made.model.moves()
    await made.send(rollback(all=True))
    await made.run(5000)
    assert made.model.moves() == moves
    assert {broker: dict(state.configs) for broker, state in made.model.brokers.items()} == configs
    made.model.kafka_cluster_id = "simulated-cluster"
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)


async def test_what_was_intended_in_the_moment_that_another_cluster_answers_lapses() -> None:
    made = await copying(world())
    await made.send(rollback(KEY))
    made.core.deliver(await made.driver.observe({KEY}, with_min_isr=True))
    made.core.deliver(Identified("local", "another", (1, 2), made.now.monotonic_ms))
    await made.settle()
    assert made.tags(KEY)[-2:] == ["call-intended", "call-lapsed"]
    assert KEY in made.model.moves()
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)


async def test_the_right_cluster_is_recognised_even_if_nothing_is_in_flight() -> None:
    made = world(limits=Limits(max_partitions_in_flight=1))
    await made.freeze()
    await made.send(alter({KEY: [4, 2, 1]}))
    made.model.kafka_cluster_id = "another"
    await made.send(alter({OTHER: [4, 2, 1]}))
    assert made.state.mismatched_kafka_cluster_id == "another"
    made.model.kafka_cluster_id = "simulated-cluster"
    await made.run(2000)
    assert made.state.mismatched_kafka_cluster_id is None


async def test_throttle_readings_that_nobody_needs_any_more_are_not_asked_for() -> None:
    made = world()
    made.hold_effects = True
    await made.send(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=1000))
    assert [type(effect) for effect in made.held] == [ReadThrottles]
    await made.send(rollback(KEY))
    assert made.state.reassignments == {}
    await made.release_effects()
    await made.turn()
    assert made.held == []
    assert made.core.effects(made.now) == ()


async def test_to_a_cluster_that_is_not_configured_any_more_nothing_is_sent() -> None:
    made = world()
    await made.send(alter({KEY: [4, 2, 1]}, throttle_bytes_per_second=1000))
    await made.run(2000)
    made.model.join_isr(KEY, 4)
    made.hold_effects = True
    while not any(topic.pending for topic in made.state.topic_throttles.values()):
        made.model.advance(100)
        await made.look()
        await made.turn()
    made.core = ShardCore(made.core.fold, topic_ids=TOPIC_IDS, clusters={}, topics=TopicNames())
    made.acquire()
    made.model.advance(10_000)
    assert made.core.effects(made.now) == ()


async def test_who_is_alive_in_another_cluster_says_nothing_about_this_one() -> None:
    made = await copying(world())
    made.core.deliver(Identified("local", "another", (77,), made.now.monotonic_ms))
    await made.turn()
    assert made.core._clusters.of("local").observed.live == frozenset({1, 2, 3, 4, 5})


async def test_one_partition_that_shows_a_new_topic_id_makes_every_older_sight_of_the_topic_worthless() -> None:
    """S9: the slot that the ended move frees is not given on a sight of the topic's old incarnation."""
    made = world(limits=Limits(max_moves_per_broker=1))
    await made.send(alter({KEY: [4, 2, 1], OTHER: [4, 3, 1]}))
    await made.run(300)
    await made.driver_sees({OTHER})
    made.model.delete_topic("orders")
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1]})
    await made.driver_sees({KEY})
    await made.finish()
    assert "call-intended" not in made.tags(OTHER)
    assert made.replicas(OTHER) == (2, 3, 1)
