"""The stock tool's sentences, and what Drover's state means in them."""

from drover.client.stock_tool import (
    active_moves,
    cancelled_line,
    clearing_lines,
    list_lines,
    plans_moving,
    started_line,
    verify_lines,
)
from drover.events.commands import PartitionTarget
from drover.events.partitions import TopicPartition
from drover.facts import Move
from drover.state.cluster import ClusterState
from drover.state.scheduling import QueueEntry

FIRST, TENTH = TopicPartition("orders", 2), TopicPartition("orders", 10)


def test_partitions_are_sorted_by_number() -> None:
    assert started_line([TENTH, FIRST]) == "Successfully started partition reassignments for orders-2,orders-10"
    assert cancelled_line([FIRST]) == "Successfully cancelled partition reassignment for: orders-2"


def test_nothing_active_is_said_as_the_stock_tool_does() -> None:
    assert list_lines({}) == ["No partition reassignments found."]


def test_a_move_that_waits_in_drovers_queue_is_listed_like_one_that_kafka_lists() -> None:
    state = ClusterState("prod")
    state.queue[FIRST] = QueueEntry("a", "a", (4, 2), 0)
    moves = {TENTH: Move((1, 2, 3), (3,), ())}
    active = active_moves(moves, {FIRST: (1, 2), TENTH: (1, 2, 3)}, state)
    assert list_lines(active) == [
        "Current partition reassignments:",
        "orders-2: replicas: 4,2,1. adding: 4. removing: 1.",
        "orders-10: replicas: 1,2,3. adding: 3.",
    ]


def test_verify_tells_moving_completed_and_other_partitions_apart() -> None:
    third = TopicPartition("orders", 11)
    targets = [
        PartitionTarget(topic=key.topic, partition=key.partition, replicas=(4, 2)) for key in (third, TENTH, FIRST)
    ]
    assert verify_lines(targets, {FIRST}, {FIRST: (1, 2), TENTH: (4, 2), third: (2, 4)}) == [
        "Status of partition reassignment:",
        "Reassignment of partition orders-2 is still in progress.",
        "Reassignment of partition orders-10 is completed.",
        "There is no active reassignment of partition orders-11, but replica set is 2,4 rather than 4,2.",
    ]


def test_a_partition_that_does_not_exist_has_no_replicas() -> None:
    targets = [PartitionTarget(topic="gone", partition=0, replicas=(1,))]
    assert verify_lines(targets, (), {})[1:] == [
        "There is no active reassignment of partition gone-0, but replica set is  rather than 1."
    ]


def test_one_broker_and_one_topic_are_named_in_the_singular() -> None:
    assert clearing_lines({1}, {"a"}) == [
        "Clearing broker-level throttles on broker 1",
        "Clearing topic-level throttles on topic a",
    ]


def test_no_plan_moves_what_only_waits() -> None:
    state = ClusterState("prod")
    state.queue[FIRST] = QueueEntry("a", "a", (4, 2), 0)
    target = PartitionTarget(topic="orders", partition=2, replicas=(4, 2))
    assert list(plans_moving([target], state)) == []
