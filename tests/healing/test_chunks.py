"""Chunks are persisted, begin one after the other, and only what is still to be done is done."""

from typing import Any

import pytest

from drover.events.healing import (
    HealChunkBegun,
    HealChunkEnded,
    HealChunkPlanned,
    HealChunkTakenBack,
    HealEnd,
    HealEnded,
    HealPartitionsLeft,
    HealPlanned,
    LeftReason,
)
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanOpened
from drover.events.reassignments import ReassignmentCompleted, ReassignmentCreated
from drover.reconcile.healing.heal_plan import MAX_NAMED
from tests.healing.support import INTERVAL_MS, heal_command, heal_to_the_end, healing_world, holders, told
from tests.leadership.support import demote, restore
from tests.shard.world import Death, World, alter, cancel

SLOW = {"copy_bytes_per_second": 200_000}


async def in_chunk(number: int, **limits: Any) -> World:
    """Run until this chunk is under way; a chunk is one partition, and takes a few seconds."""
    world = healing_world(model=SLOW, chunk_partitions=1, **limits)
    await world.run(1000)
    world.model.stop_broker(3)
    for _ in range(1200):
        await world.run(100)
        running = world.state.heal_running
        if running is not None and running.number == number:
            return world
    raise AssertionError("the chunk never begins")


def chunks_do_not_overlap(world: World) -> None:
    """Between two begins there is the end of the first, and nothing of it is under way any more."""
    open_chunk = False
    for event in world.events():
        if isinstance(event, HealChunkBegun) and event.plan is not None:
            assert not open_chunk
            open_chunk = True
        elif isinstance(event, HealChunkEnded):
            open_chunk = False


async def test_the_plan_is_in_the_log_before_anything_moves_and_chunks_follow_each_other() -> None:
    world = await in_chunk(2)
    (planned,) = told(world, HealPlanned)
    assert (planned.chunks, planned.partitions, planned.brokers) == (3, 3, (3,))
    assert len(told(world, HealChunkPlanned)) == 3
    assert len(told(world, ReassignmentCompleted)) == 1
    opened = told(world, PlanOpened)
    assert [event.plan for event in opened] == ["drover-heal-1-1", "drover-heal-1-2"]
    await heal_to_the_end(world, 3)
    chunks_do_not_overlap(world)


async def test_twenty_five_partitions_are_three_chunks_of_ten_at_most_one_after_the_other() -> None:
    """TV-219."""
    world = healing_world(partitions=49, chunk_partitions=10)
    assert len(holders(world, 3)) == 25
    await world.run(1000)
    world.model.stop_broker(3)
    await heal_to_the_end(world, 3)
    assert [len(event.assignments) for event in told(world, HealChunkPlanned)] == [10, 10, 5]
    assert [event.chunk for event in told(world, HealChunkBegun) if event.plan is not None] == [1, 2, 3]
    chunks_do_not_overlap(world)


async def test_the_most_endangered_partition_goes_first() -> None:
    world = healing_world(chunk_partitions=1, partitions=0)
    world.model.create_topic("large", {0: [1, 2, 3]}, partition_bytes=3_000_000)
    world.model.create_topic("small", {0: [1, 2, 3]}, partition_bytes=1000)
    world.model.create_topic("thin", {0: [4, 3]}, partition_bytes=1000)
    await world.run(1000)
    world.model.stop_broker(3)
    await heal_to_the_end(world, 3)
    order = [event.topic for event in told(world, ReassignmentCreated)]
    assert order == ["thin", "large", "small"]


async def test_the_canonical_order_survives_a_heal_while_a_broker_is_listed() -> None:
    """X9: broker 1 comes last only as long as it should not lead."""
    world = healing_world(partitions=0)
    world.model.create_topic("listed", {0: [1, 2, 3]})
    await world.send(demote(1))
    await world.run(30_000)
    assert world.replicas(TopicPartition("listed", 0)) == (2, 3, 1)
    world.model.stop_broker(3)
    await heal_to_the_end(world, 3)
    (queued,) = (event for event in told(world, ReassignmentCreated) if event.plan.startswith("drover-heal"))
    assert (queued.original, queued.current) == ((1, 2, 3), (2, 3, 1))
    assert queued.target[:2] == (1, 2)
    await world.send(restore(1))
    await world.run(30_000)
    assert world.replicas(TopicPartition("listed", 0)) == queued.target


@pytest.mark.parametrize("rolls_back", [False, True])
async def test_a_broker_that_returns_in_chunk_2_cancels_the_rest(rolls_back: bool) -> None:
    """TV-220: the chunk that runs ends, unless the settings take it back; those behind it are dropped."""
    world = await in_chunk(2, rolls_back_on_return=rolls_back)
    world.model.start_broker(3)
    await world.finish()
    await world.run(2 * INTERVAL_MS)
    (ended,) = told(world, HealEnded)
    assert (ended.why, ended.dropped) == (HealEnd.RETURNED, 1)
    assert len(told(world, ReassignmentCompleted)) == (1 if rolls_back else 2)
    assert len(told(world, HealChunkTakenBack)) == rolls_back
    assert len(holders(world, 3)) == (2 if rolls_back else 1)


async def test_a_broker_that_returns_1_s_after_its_time_keeps_all_but_what_has_begun() -> None:
    world = healing_world(model=SLOW, chunk_partitions=1)
    await world.run(1000)
    world.model.stop_broker(3)
    for _ in range(1200):
        await world.run(100)
        if told(world, HealPlanned):
            break
    await world.run(1000)
    before = len(holders(world, 3))
    world.model.start_broker(3)
    await world.finish()
    await world.run(2 * INTERVAL_MS)
    (ended,) = told(world, HealEnded)
    assert ended.why is HealEnd.RETURNED
    assert len(told(world, HealChunkBegun)) == 1
    assert len(holders(world, 3)) == before - len(told(world, ReassignmentCompleted)) > 0
    assert all(set(partition.isr) == set(partition.replicas) for _, partition in world.model.each_partition())


@pytest.mark.parametrize("die", list(Death))
@pytest.mark.parametrize("every", [1, 3])
async def test_a_takeover_at_any_turn_loses_no_chunk_and_begins_none_twice(die: Death, every: int) -> None:
    """TV-221."""
    world = healing_world(failure_interval_ms=5000, alarm_ms=-1)
    await world.run(1000)
    world.model.stop_broker(3)
    for turn in range(400):
        world.model.advance(100)
        await world.look()
        await world.turn(die if turn % every == 0 and 60 <= turn <= 200 else None)
        await world.settle()
    assert not holders(world, 3)
    assert world.is_idle
    moved = [event.key for event in told(world, ReassignmentCreated)]
    assert sorted(moved) == sorted(set(moved)), "each dead replica is replaced once"
    chunks_do_not_overlap(world)


async def test_a_broker_that_is_cordoned_during_a_heal_gets_nothing_more_of_it() -> None:
    world = await in_chunk(1)
    state = world.state
    waiting = [one for chunk in state.heal_chunks.values() for one in chunk.assignments]
    planned = {broker for one in waiting for broker in one.target if broker not in one.original}
    for broker in planned:
        world.model.directories.cordon(broker)
    await world.measure()
    for _ in range(600):
        await world.run(100)
        if len(told(world, HealChunkBegun)) > 1:
            break
    _, *begun = told(world, HealChunkBegun)
    assert [chunk.plan for chunk in begun] == [None] * len(begun)
    skipped = [one for chunk in begun for one in chunk.skipped]
    assert {one.why for one in skipped} == {LeftReason.NO_BROKER}
    assert all("is cordoned, with all of its log directories" in one.detail for one in skipped)


async def test_a_frozen_cluster_keeps_its_timers_and_begins_no_chunk() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.freeze()
    await world.run(2 * INTERVAL_MS)
    assert not told(world, HealPlanned)
    await world.unfreeze()
    await world.run(3000)
    assert told(world, HealPlanned)


async def test_a_freeze_in_the_middle_holds_the_next_chunk() -> None:
    world = await in_chunk(1)
    await world.freeze()
    await world.run(60_000)
    assert world.state.heal is not None
    assert len(told(world, HealChunkBegun)) == 1
    await world.unfreeze()
    await heal_to_the_end(world, 3)


async def test_a_manual_plan_for_a_partition_of_a_later_chunk_wins() -> None:
    world = await in_chunk(1)
    later = world.state.heal_chunks[3].assignments[0]
    key = TopicPartition(later.topic, later.partition)
    target = tuple(broker for broker in (1, 2, 4, 5, 6) if broker not in later.target)[:1] + tuple(
        broker for broker in later.original if broker != 3
    )
    await world.send(alter({key: target}, plan="mine"))
    await heal_to_the_end(world, 3)
    assert world.replicas(key) == target
    why = {one.why for event in told(world, HealChunkBegun) for one in event.skipped}
    assert why <= {LeftReason.MOVING, LeftReason.WHOLE}
    assert why


async def test_a_manual_plan_for_a_partition_that_is_being_healed_takes_its_place() -> None:
    world = await in_chunk(1)
    running = world.state.heal_running
    assert running is not None
    (key,) = running.partitions
    original = world.reassignment(key).original
    newcomer = next(one for one in (1, 2, 4, 5, 6) if one not in {*original, *world.reassignment(key).target})
    target = (*(broker for broker in original if broker != 3), newcomer)
    await world.send(alter({key: target}, plan="mine"))
    await world.run(40_000)
    assert world.replicas(key) == target


async def test_a_cancelled_chunk_ends_the_heal_and_nothing_of_it_comes_back_by_itself() -> None:
    world = await in_chunk(2)
    await world.send(cancel(mode="rollback", plan="drover-heal-1-2"))
    await world.run(4 * INTERVAL_MS)
    (ended,) = told(world, HealEnded)
    assert (ended.why, ended.dropped, ended.leaves_rest) == (HealEnd.CANCELLED, 1, True)
    assert len(holders(world, 3)) == 2
    await world.send(heal_command("start", 3))
    await heal_to_the_end(world, 3)


async def test_cancelling_everything_ends_the_heal_too() -> None:
    world = await in_chunk(1)
    await world.send(cancel(mode="rollback", all=True))
    await world.run(4 * INTERVAL_MS)
    assert len(told(world, HealPlanned)) == 1
    assert len(holders(world, 3)) == 3


async def test_a_partition_that_somebody_cancelled_is_left_alone_after_the_others_were_healed() -> None:
    world = await in_chunk(1)
    running = world.state.heal_running
    assert running is not None
    await world.send(cancel(*running.partitions, mode="rollback"))
    await world.run(4 * INTERVAL_MS)
    assert holders(world, 3) == list(running.partitions)
    assert world.state.absent_brokers[3].choice == "skip"


@pytest.mark.parametrize("limits", [{}, {"max_partitions_in_flight": 1}], ids=["moving", "untouched"])
async def test_another_target_for_a_partition_that_is_being_healed_leaves_the_rest_to_later_heals(
    limits: dict[str, Any],
) -> None:
    """A partition that waits for a second dead broker is still healed: nobody has cancelled the heal."""
    world = healing_world(model=SLOW, partitions=0, brokers=7, **limits)
    for number in range(2):
        world.model.create_topic(f"one-{number}", {0: [1, 2, 3]}, partition_bytes=4_000_000)
    world.model.create_topic("both", {0: [1, 3, 4]}, partition_bytes=100_000)
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(INTERVAL_MS // 2)
    world.model.stop_broker(4)
    await world.run(INTERVAL_MS // 2 + 6000)
    assert world.state.heal_running is not None
    key = world.state.heal_running.partitions[-1]
    known = world.reassignment(key)
    assert known.in_flight != bool(limits)
    other = 7 if known.target[2] != 7 else 6
    await world.send(alter({key: [1, 2, other]}))
    await heal_to_the_end(world, 3, within_ms=10 * INTERVAL_MS)
    await heal_to_the_end(world, 4, within_ms=10 * INTERVAL_MS)
    assert world.replicas(key) == (1, 2, other)
    assert not any(event.leaves_rest for event in told(world, HealEnded))
    assert not any(event.cancelled for event in told(world, HealChunkEnded))


@pytest.mark.parametrize("then_cancel", [False, True])
async def test_a_target_that_names_the_dead_broker_or_is_cancelled_itself_is_a_cancel(*, then_cancel: bool) -> None:
    world = await in_chunk(1)
    assert world.state.heal_running is not None
    (key,) = world.state.heal_running.partitions
    known = world.reassignment(key)
    kept = [broker for broker in known.original if broker != 3]
    other = next(one for one in (1, 2, 4, 5, 6) if one not in {*known.original, *known.target})
    await world.send(alter({key: [*kept, other] if then_cancel else known.original}))
    if then_cancel:
        await world.send(cancel(key, mode="rollback"))
    await world.run(4 * INTERVAL_MS)
    assert holders(world, 3) == [key]
    assert world.state.absent_brokers[3].choice == "skip"


async def test_stop_drops_the_chunks_and_rollback_takes_the_running_one_back() -> None:
    world = await in_chunk(2)
    outcome = await world.send(heal_command("stop", rollback=True))
    assert outcome.verdict == "accepted"
    await world.run(4 * INTERVAL_MS)
    assert len(holders(world, 3)) == 2
    assert world.state.heal is None
    again = await world.send(heal_command("stop", id="again"))
    assert again.refusals[0].code == "nothing-to-stop"


async def test_skip_leaves_a_broker_alone_until_it_is_back() -> None:
    world = healing_world()
    await world.run(1000)
    unknown = await world.send(heal_command("skip", 3))
    assert unknown.refusals[0].code == "broker-not-away"
    world.model.stop_broker(3)
    await world.run(5000)
    await world.send(heal_command("skip", 3, id="now"))
    await world.run(3 * INTERVAL_MS)
    assert not told(world, HealPlanned)
    world.model.start_broker(3)
    await world.run(2000)
    world.model.stop_broker(3)
    await heal_to_the_end(world, 3)


async def test_start_does_not_wait_for_the_time() -> None:
    world = healing_world(failure_interval_ms=-1)
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(5000)
    await world.send(heal_command("start", 3))
    await heal_to_the_end(world, 3, within_ms=10_000)


async def test_what_cannot_be_healed_is_named_once_with_the_reason() -> None:
    world = healing_world(brokers=4, partitions=0)
    world.model.create_topic("alone", {0: [3]})
    world.model.create_topic("everywhere", {0: [1, 2, 3, 4]})
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(4 * INTERVAL_MS)
    assert not told(world, HealPlanned)
    (left,) = told(world, HealPartitionsLeft)
    assert {one.topic: one.why for one in left.partitions} == {
        "alone": LeftReason.NO_LEADER,
        "everywhere": LeftReason.NO_BROKER,
    }
    assert left.count == 2 <= MAX_NAMED
    world.model.start_broker(3)
    await world.run(INTERVAL_MS)
    assert world.state.heal_left is None


async def test_the_throttle_of_the_settings_holds_for_each_chunk_and_is_put_back() -> None:
    world = await in_chunk(1, throttle_bytes_per_second=500_000)
    assert world.state.broker_throttles
    await heal_to_the_end(world, 3)
    assert not world.state.broker_throttles


async def test_a_rack_that_is_gone_with_its_broker_does_not_hold_back_the_repair() -> None:
    world = healing_world(brokers=4, partitions=0)
    racks = [world.model.brokers[broker].rack for broker in (1, 2, 3, 4)]
    assert racks.count(racks[1]) == 1
    world.model.create_topic("narrow", {0: [1, 2, 3]})
    await world.run(1000)
    world.model.stop_broker(2)
    await heal_to_the_end(world, 2)
    assert world.replicas(TopicPartition("narrow", 0)) == (1, 4, 3)


async def test_a_manual_plan_that_waits_for_its_slot_wins_too() -> None:
    world = healing_world(model=SLOW, chunk_partitions=1, max_partitions_in_flight=1)
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(INTERVAL_MS + 6000)
    later = world.state.heal_chunks[2].assignments[0]
    key = TopicPartition(later.topic, later.partition)
    target = (5, *(broker for broker in later.original if broker not in {3, 5}))[:3]
    await world.send(alter({key: target}, plan="mine", allow_replication_factor_change=True))
    assert not world.reassignment(key).in_flight
    await world.finish(within_ms=120_000)
    (skipped,) = [
        one for event in told(world, HealChunkBegun) for one in event.skipped if one.partition == key.partition
    ]
    assert skipped.why is LeftReason.MOVING
    assert "plan mine" in skipped.detail
    assert world.replicas(key) == target


async def test_the_next_chunk_begins_in_the_record_that_ends_the_one_before() -> None:
    world = healing_world(model=SLOW, chunk_partitions=1)
    await world.run(1000)
    world.model.stop_broker(3)
    await heal_to_the_end(world, 3)
    ends = [
        {type(event) for event in batch.events}
        for batch in world.batches()
        if any(isinstance(event, HealChunkEnded) for event in batch.events)
    ]
    assert [HealChunkBegun in kinds for kinds in ends] == [True, True, False]
