"""Entries that no move needs any more go with the next change of their topic's lists, or some seconds later."""

from collections.abc import Sequence

from drover.cluster.throttle_lists import parse_throttled
from drover.events.partitions import TopicPartition
from drover.events.throttles import TopicThrottleIntended
from drover.facts import ThrottledReplicas
from drover.reconcile.throttles.reconciler import REMOVAL_WAIT_MS, ThrottlingReconciler
from drover.state.scheduling import Limits
from tests.shard.world import STEP_MS, World, alter, reconciler

RATE = 100_000


def lists(made: World) -> ThrottledReplicas:
    return parse_throttled(made.model.topics["orders"].configs)


def writes(made: World) -> list[TopicThrottleIntended]:
    return [event for event in made.events() if isinstance(event, TopicThrottleIntended)]


async def moving(partitions: int, at_a_time: int, partition_bytes: int = RATE) -> World:
    """Each partition is on its way from [1,2,3] to [4,2,1]."""
    made = World(copy_bytes_per_second=RATE, limits=Limits(max_partitions_in_flight=at_a_time))
    made.model.create_topic(
        "orders", {number: [1, 2, 3] for number in range(partitions)}, partition_bytes=partition_bytes
    )
    targets: dict[TopicPartition, Sequence[int] | None] = {
        TopicPartition("orders", number): [4, 2, 1] for number in range(partitions)
    }
    await made.send(alter(targets, plan="friday", throttle_bytes_per_second=RATE))
    return made


async def test_entries_go_soon_although_no_further_move_of_the_topic_begins() -> None:
    made = await moving(2, at_a_time=2)
    small, large = TopicPartition("orders", 0), TopicPartition("orders", 1)
    made.model.replication.write(large, 200 * RATE)
    while small in made.state.reassignments:
        await made.run(STEP_MS)
    throttling = reconciler(made, ThrottlingReconciler)
    assert throttling is not None
    due_ms = throttling.attention(made.now, None).due_ms
    assert due_ms is not None, "nothing wakes the owner"
    assert 0 < due_ms - made.now.monotonic_ms <= REMOVAL_WAIT_MS
    assert "0:4" in lists(made).follower
    await made.run(REMOVAL_WAIT_MS + STEP_MS)
    assert lists(made) == ThrottledReplicas(("1:1", "1:2", "1:3"), ("1:4",))
    assert large in made.state.reassignments


async def test_entries_that_wait_wake_nobody_again_while_another_cluster_answers() -> None:
    made = await moving(2, at_a_time=2)
    made.model.replication.write(TopicPartition("orders", 1), 200 * RATE)
    while TopicPartition("orders", 0) in made.state.reassignments:
        await made.run(STEP_MS)
    made.model.kafka_cluster_id = "another"
    await made.run(10 * REMOVAL_WAIT_MS)
    assert made.state.mismatched_kafka_cluster_id == "another"
    throttling = reconciler(made, ThrottlingReconciler)
    assert throttling is not None
    due_ms = throttling.attention(made.now, None).due_ms
    assert due_ms is None or due_ms > made.now.monotonic_ms
