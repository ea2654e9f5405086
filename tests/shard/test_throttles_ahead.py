"""A topic's lists get the entries of moves that wait together with those of a move that begins: they change seldom."""

from drover.events.commands import Throttle
from drover.events.partitions import TopicPartition
from drover.events.records import Batch
from drover.facts import ThrottledReplicas
from drover.reconcile.throttles.ahead import KEPT_IDLE_MS, MAX_ENTRIES_AHEAD, MAX_ENTRIES_PER_TOPIC
from drover.reconcile.throttles.reconciler import REMOVAL_WAIT_MS
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from tests.shard.sound import sound
from tests.shard.test_throttle_removals import RATE, lists, moving, writes
from tests.shard.world import CLUSTER, STEP_MS, World, alter, cancel

NOTHING = ThrottledReplicas((), ())


def orders(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


async def until_begun(made: World, number: int) -> None:
    for _ in range(50):
        if made.reassignment(orders(number)).phase is Phase.COPYING:
            return
        await made.run(STEP_MS)
    raise AssertionError(f"partition {number} does not begin")


async def test_the_lists_of_a_topic_change_once_for_all_that_waits_and_once_when_all_has_ended() -> None:
    made = await moving(4, at_a_time=1)
    await made.finish(60_000)
    changes = writes(made)
    assert [len(change.add.follower) for change in changes] == [4, 0]
    assert changes[0].add.leader == tuple(f"{number}:{broker}" for number in range(4) for broker in (1, 2, 3))
    assert lists(made) == NOTHING
    sound(made)


async def test_a_move_whose_entries_are_there_begins_in_the_draft_in_which_the_one_before_it_ends() -> None:
    made = await moving(3, at_a_time=1)
    await made.finish(60_000)
    ends = [batch for batch in made.batches() if "reassignment-completed" in tags(batch)]
    assert [tags(batch)[-2:] for batch in ends[:2]] == [["step-prepared", "call-intended"]] * 2


async def test_a_waiting_move_that_is_cancelled_keeps_no_entries_for_long() -> None:
    made = await moving(3, at_a_time=1)
    await until_begun(made, 0)
    made.model.replication.write(orders(0), 100 * RATE)
    await made.run(STEP_MS)
    assert "2:4" in lists(made).follower
    await made.send(cancel(orders(2), mode="rollback"))
    await made.run(REMOVAL_WAIT_MS + STEP_MS)
    assert lists(made).follower == ("0:4", "1:4")


async def test_nothing_is_left_where_nothing_moves_any_more_although_moves_wait() -> None:
    made = await moving(3, at_a_time=1)
    await until_begun(made, 0)
    await made.freeze()
    await made.run(2000)
    assert not made.state.moves.in_flight
    await made.run(KEPT_IDLE_MS)
    assert set(made.state.moves.pending) == {orders(1), orders(2)}
    assert lists(made) == NOTHING
    await made.unfreeze()
    await made.finish(60_000)
    assert lists(made) == NOTHING


async def test_moves_of_a_plan_without_a_throttle_get_no_entries() -> None:
    made = World(copy_bytes_per_second=RATE, limits=Limits(max_partitions_in_flight=1))
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [1, 2, 3]}, partition_bytes=10 * RATE)
    await made.send(alter({orders(0): [4, 2, 1]}, plan="slow", throttle_bytes_per_second=RATE))
    await made.send(alter({orders(1): [4, 2, 1]}, plan="fast"))
    await until_begun(made, 0)
    await made.run(STEP_MS)
    assert lists(made).follower == ("0:4",)


async def test_a_plan_whose_throttle_is_taken_away_takes_the_entries_of_its_waiting_moves_along() -> None:
    made = World(copy_bytes_per_second=RATE, limits=Limits(max_partitions_in_flight=1))
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [1, 2, 3]}, partition_bytes=20 * RATE)
    await made.freeze()
    await made.send(alter({orders(0): [4, 2, 1]}, plan="first", throttle_bytes_per_second=RATE))
    await made.send(alter({orders(1): [4, 2, 1]}, plan="second", throttle_bytes_per_second=RATE))
    await made.unfreeze()
    await until_begun(made, 0)
    await made.run(STEP_MS)
    assert lists(made).follower == ("0:4", "1:4")
    await made.send(Throttle(id="t-1", cluster=CLUSTER, by="ana", reason="test", plan="second", clear=True))
    await made.run(REMOVAL_WAIT_MS + STEP_MS)
    assert lists(made).follower == ("0:4",)


async def test_a_topic_with_many_partitions_keeps_room_on_its_lists_for_what_begins() -> None:
    partitions = MAX_ENTRIES_PER_TOPIC // 3
    made = await moving(partitions, at_a_time=20, partition_bytes=RATE // 20)
    await until_begun(made, 0)
    assert MAX_ENTRIES_AHEAD <= len(lists(made).leader) <= MAX_ENTRIES_AHEAD + 3 * 20
    await made.finish(100_000)
    assert len(writes(made)) < 20
    assert all(len(change.add.leader) < MAX_ENTRIES_PER_TOPIC for change in writes(made))
    assert lists(made) == NOTHING


def tags(batch: Batch) -> list[str]:
    return [str(event.__struct_config__.tag) for event in batch.events]
