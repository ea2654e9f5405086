"""Moves of others: seen on any cluster, shown, never fought; and those that can never end, mended when asked."""

from typing import Any

import pytest

from drover.cluster.port import AlterRequest
from drover.decide import unmanaged_moves
from drover.events.commands import PartitionName, Repair
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, ReassignmentBlocked, ReassignmentRolledBack, RollbackRequested
from drover.events.records import Outcome
from drover.events.refusals import RefusalCode
from drover.events.unmanaged import UnmanagedMoveEnded, UnmanagedMoveSeen
from drover.facts import CallResult
from drover.reconcile.contract import Urgency
from drover.state.phase import Phase
from drover.state.plans import PlanStatus
from drover.state.scheduling import Limits
from tests.shard.world import CLUSTER, World, alter, rollback

KEY = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)


def world(**options: Any) -> World:
    made = World(brokers=5, joins_by_itself=False, **options)
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1]}, partition_bytes=1000)
    return made


def somebody_moves(made: World, key: TopicPartition, replicas: tuple[int, ...] | None) -> None:
    made.model.alter([AlterRequest(key, replicas)])


def make_stuck(made: World, key: TopicPartition = KEY) -> None:
    """Live fact: a re-target of a moving partition to its original set leaves a broker in both lists, for ever."""
    somebody_moves(made, key, (4, 2, 1) if key == KEY else (4, 3, 1))
    somebody_moves(made, key, (1, 2, 3))
    assert made.model.moves()[key].never_ends == (4,)


async def mend(made: World, *keys: TopicPartition, **fields: Any) -> Outcome:
    partitions = tuple(PartitionName(*key) for key in keys) or None
    fields.setdefault("id", "mend-1")
    made.put(Repair(cluster=CLUSTER, by="ana", reason="test", partitions=partitions, **fields))
    await made.turn()
    return next(outcome for outcome in reversed(made.outcomes()) if outcome.id == fields["id"])


# -- seen


async def test_an_unmanaged_move_on_a_cluster_where_drover_does_nothing_is_seen_and_its_end_as_well() -> None:
    made = world()
    assert made.core.clusters == (CLUSTER,)
    assert made.core.cluster(CLUSTER).attention(made.now).urgency is Urgency.IDLE
    somebody_moves(made, KEY, (4, 2, 1))
    await made.run(1000)
    assert made.state.unmanaged == {}
    assert made.core.cluster(CLUSTER).attention(made.now).urgency is Urgency.WAITING
    await made.run(2000)
    assert made.state.unmanaged[KEY].replicas == (4, 2, 1, 3)
    made.model.join_isr(KEY, 4)
    await made.run(3000)
    assert made.state.unmanaged == {}
    assert made.tags(KEY) == ["unmanaged-move-seen", "unmanaged-move-ended"]
    assert made.core.cluster(CLUSTER).attention(made.now).urgency is Urgency.IDLE


async def test_an_unmanaged_move_that_changes_its_lists_is_written_again() -> None:
    made = world()
    somebody_moves(made, KEY, (4, 2, 1))
    await made.run(3000)
    since_ms = made.state.unmanaged[KEY].since_ms
    somebody_moves(made, KEY, (5, 2, 1))
    await made.run(3000)
    assert made.tags(KEY) == ["unmanaged-move-seen"] * 2
    assert made.state.unmanaged[KEY].since_ms == since_ms


async def test_what_lasts_less_than_two_seconds_is_not_recorded() -> None:
    made = world()
    for _ in range(3):
        somebody_moves(made, KEY, (4, 2, 1))
        await made.run(1500)
        somebody_moves(made, KEY, None)
        await made.run(1500)
    assert made.tags(KEY) == []


async def test_a_move_of_drovers_own_is_not_unmanaged() -> None:
    made = world()
    await made.send(alter({KEY: [4, 2, 1]}))
    await made.run(5000)
    made.model.join_isr(KEY, 4)
    await made.finish()
    assert not any(isinstance(event, UnmanagedMoveSeen) for event in made.events())


async def test_it_is_seen_beside_moves_of_drovers_own() -> None:
    made = world()
    await made.send(alter({KEY: [4, 2, 1]}))
    somebody_moves(made, OTHER, (5, 3, 1))
    await made.run(5000)
    assert set(made.state.unmanaged) == {OTHER}


async def test_a_queued_reassignment_whose_partition_others_move_waits_for_them_and_then_goes() -> None:
    made = world()
    await made.freeze()
    await made.send(alter({KEY: [4, 2, 1]}))
    somebody_moves(made, KEY, (5, 2, 1))
    await made.run(3000)
    assert set(made.state.unmanaged) == {KEY}
    somebody_moves(made, KEY, None)
    somebody_moves(made, KEY, (1, 2, 3))
    await made.unfreeze()
    await made.run(3000)
    assert made.reassignment(KEY).phase is Phase.COPYING
    assert made.state.unmanaged == {}


async def test_an_alter_right_after_it_begins_from_the_list_that_is_there() -> None:
    """A broker with old metadata still shows the merged list, which is not the original one of anything."""
    made = world()
    made.model.remember_metadata(1500)
    somebody_moves(made, KEY, (4, 2, 1))
    await made.run(12_000)
    assert set(made.state.unmanaged) == {KEY}
    made.driver.lag_metadata(1500)
    made.model.join_isr(KEY, 4)
    for _ in range(30):
        await made.send(alter({KEY: [5, 2, 1]}))
        if made.state.reassignments:
            break
        await made.run(100)
    assert made.reassignment(KEY).original == (4, 2, 1)
    made.model.joins_by_itself = True
    await made.finish()
    assert made.replicas(KEY) == (5, 2, 1)


async def test_only_so_many_are_recorded_and_those_that_never_end_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unmanaged_moves, "MAX_UNMANAGED_MOVES", 2)
    made = World(joins_by_itself=False)
    made.model.create_topic("many", {number: [1, 2] for number in range(4)})
    last = TopicPartition("many", 3)
    for number in range(4):
        somebody_moves(made, TopicPartition("many", number), (3, 2))
    somebody_moves(made, last, (1, 2))
    await made.run(5000)
    assert sorted(made.state.unmanaged) == [TopicPartition("many", 0), last]
    somebody_moves(made, TopicPartition("many", 0), None)
    await made.run(5000)
    assert sorted(made.state.unmanaged) == [TopicPartition("many", 1), last]


async def test_what_another_cluster_moves_is_not_believed() -> None:
    made = world()
    await made.run(300)
    made.model.kafka_cluster_id = "another"
    somebody_moves(made, KEY, (4, 2, 1))
    await made.run(5000)
    assert made.state.unmanaged == {}


async def test_a_successor_ends_what_its_predecessor_saw() -> None:
    made = world()
    somebody_moves(made, KEY, (4, 2, 1))
    await made.run(3000)
    made.crash()
    somebody_moves(made, KEY, None)
    await made.run(3000)
    assert made.state.unmanaged == {}


# -- mended


@pytest.mark.parametrize("named", [True, False])
async def test_a_move_that_never_ends_is_repaired_when_asked(*, named: bool) -> None:
    made = world()
    make_stuck(made)
    await made.run(3000)
    assert made.state.unmanaged[KEY].never_ends == (4,)
    outcome = await mend(made, *([KEY] if named else []))
    assert outcome.verdict == "accepted"
    assert made.state.unmanaged == {}
    await made.finish()
    assert made.model.moves() == {}
    assert set(made.replicas(KEY)) == {1, 2, 3}
    assert made.state.plans["mend-1"].status is PlanStatus.FINISHED
    assert made.state.plans["mend-1"].rolled_back == 1


async def test_one_that_was_not_recorded_yet_can_be_named() -> None:
    made = world()
    make_stuck(made)
    await mend(made, KEY)
    await made.finish()
    assert made.model.moves() == {}
    assert not any(isinstance(event, UnmanagedMoveEnded) for event in made.events())


async def test_what_is_not_stuck_is_refused_with_words() -> None:
    made = world()
    somebody_moves(made, OTHER, (5, 3, 1))
    outcome = await mend(made, KEY, OTHER, TopicPartition("orders", 9))
    assert outcome.verdict == "refused"
    assert [refusal.code for refusal in outcome.refusals] == [
        RefusalCode.NO_REASSIGNMENT_IN_PROGRESS,
        RefusalCode.UNMANAGED_MOVE,
        RefusalCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert made.state.plans == {}


async def test_nothing_to_repair_is_accepted_without_effect() -> None:
    made = world()
    outcome = await mend(made)
    assert (outcome.verdict, outcome.accepted, outcome.refusals) == ("accepted", (), ())


async def test_a_cluster_out_of_reach_or_another_one_is_said() -> None:
    made = world()
    await made.run(300)
    made.driver.unreachable = True
    outcome = await mend(made, KEY)
    assert outcome.refusals[0].code is RefusalCode.CLUSTER_UNAVAILABLE
    made.driver.unreachable = False
    made.model.kafka_cluster_id = "another"
    await made.run(300)
    outcome = await mend(made, KEY, id="mend-2")
    assert outcome.refusals[0].code is RefusalCode.CLUSTER_CHANGED


async def test_the_name_of_a_plan_that_is_there_is_not_taken() -> None:
    made = world()
    await made.send(alter({OTHER: [4, 3, 1]}, plan="mend-1"))
    make_stuck(made)
    outcome = await mend(made, KEY)
    assert outcome.refusals[0].code is RefusalCode.PLAN_CLOSED


async def test_by_setting_it_is_repaired_unasked() -> None:
    made = world(limits=Limits(repairs_by_itself=True))
    make_stuck(made)
    await made.run(unmanaged_moves.ENDLESS_AFTER_MS - 1000)
    assert KEY in made.model.moves(), "a move that ends may be listed for a moment longer"
    await made.run(15_000)
    assert made.model.moves() == {}
    (plan,) = made.state.plans.values()
    assert (plan.by, plan.status, plan.rolled_back) == ("drover", PlanStatus.FINISHED, 1)
    assert plan.name.startswith("drover-mend-")


async def test_without_the_setting_it_is_left_alone() -> None:
    made = world()
    make_stuck(made)
    await made.run(15_000)
    assert KEY in made.model.moves()


async def test_it_is_left_alone_while_a_replica_of_its_target_is_not_in_sync() -> None:
    """Seen live on 4.2.0: a move with a broker in both lists ended by itself when an original returned."""
    made = world(limits=Limits(repairs_by_itself=True))
    make_stuck(made)
    made.model.join_isr(KEY, 4)
    for broker in (1, 2, 3):
        made.model.stop_broker(broker)
    await made.run(15_000)
    refused = await mend(made, KEY)
    assert refused.refusals[0].code is RefusalCode.UNMANAGED_MOVE
    assert "which can end when 1, 2, 3 is in sync" in refused.refusals[0].detail
    assert KEY not in made.state.reassignments
    for broker in (1, 2, 3):
        made.model.start_broker(broker)
        made.model.join_isr(KEY, broker)
    await made.run(15_000)
    await made.finish()
    assert made.model.moves() == {}


async def test_a_refused_cancel_is_tried_again() -> None:
    made = world()
    make_stuck(made)
    made.driver.refuse_next(KEY, CallResult(39, "no"))
    await mend(made, KEY)
    await made.finish()
    assert made.model.moves() == {}
    assert "rollback-skipped" not in made.tags(KEY)


# -- others on the way back


async def copying(made: World) -> World:
    await made.send(alter({KEY: [4, 2, 1]}))
    await made.run(300)
    return made


async def test_ours_is_cancelled_once_and_ends_rolled_back_in_its_order() -> None:
    made = await copying(world())
    somebody_moves(made, KEY, (1, 2, 3))
    await made.run(6000)
    (asked,) = [event for event in made.events() if isinstance(event, RollbackRequested)]
    assert asked.by == "drover"
    (named,) = [event for event in made.events() if isinstance(event, ReassignmentBlocked)]
    assert named.why is Blocker.BROKER_IN_BOTH_LISTS
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    assert isinstance(
        [event for event in made.events() if getattr(event, "key", None) == KEY][-1], ReassignmentRolledBack
    )


async def test_a_rollback_that_meets_it_goes_on_to_its_end() -> None:
    made = await copying(world())
    made.driver.unreachable = True
    somebody_moves(made, KEY, (1, 2, 3))
    await made.send(rollback(KEY))
    made.driver.unreachable = False
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)


async def test_the_second_time_it_is_blocked_until_somebody_says_repair() -> None:
    made = await copying(world())
    somebody_moves(made, KEY, (1, 2, 3))
    while made.reassignment(KEY).phase is not Phase.CANCELLING:
        await made.run(100)
    make_stuck(made)
    await made.run(10_000)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.BROKER_IN_BOTH_LISTS
    assert KEY in made.model.moves()
    outcome = await mend(made)
    assert [reference.topic for reference in outcome.accepted] == ["orders"]
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)


async def test_one_of_ours_that_can_end_is_not_repaired() -> None:
    made = await copying(world())
    outcome = await mend(made, KEY)
    assert [refusal.code for refusal in outcome.refusals] == [RefusalCode.REASSIGNMENT_IN_PROGRESS]


async def test_a_queued_one_says_what_holds_it_and_repair_takes_both_away() -> None:
    made = world()
    await made.freeze()
    await made.send(alter({KEY: [5, 2, 1]}))
    make_stuck(made)
    await made.run(1000)
    await made.unfreeze()
    await made.run(6000)
    block = made.reassignment(KEY).block
    assert block is not None
    assert block.why is Blocker.BROKER_IN_BOTH_LISTS
    await mend(made)
    await made.finish()
    assert made.model.moves() == {}
    assert made.replicas(KEY) == (1, 2, 3)
