"""Kafka refuses a topic's list, as too long: what Drover put there before is still put back (S10, R236-10, X14)."""

from collections.abc import Mapping, Sequence

import pytest

from drover.cluster.port import RemoveThrottledReplicas, ThrottleChange
from drover.cluster.throttle_lists import (
    INVALID_CONFIG,
    LEADER_REPLICAS,
    MAX_VALUE_BYTES,
    ConfigOperation,
    OperationKind,
    parse_throttled,
)
from drover.events.commands import Throttle
from drover.events.partitions import TopicPartition
from drover.events.throttles import TopicThrottleLeft
from drover.facts import CallResult, ThrottledReplicas
from drover.state.scheduling import Limits
from tests.shard.world import CLUSTER, World, alter

RATE = 1_000_000
NOTHING = ThrottledReplicas((), ())
FEW, MANY = range(1200, 1210), range(1200)


def orders(partition: int) -> TopicPartition:
    return TopicPartition("orders", partition)


def lists(made: World) -> ThrottledReplicas:
    return parse_throttled(made.model.topics["orders"].configs)


def refusals(made: World) -> list[TopicThrottleLeft]:
    return [event for event in made.events() if isinstance(event, TopicThrottleLeft)]


def append(made: World, entries: list[str]) -> None:
    more = ConfigOperation(LEADER_REPLICAS, OperationKind.APPEND, ",".join(entries))
    made.model.alter_topic_configs("orders", [more])


async def with_a_full_list() -> tuple[World, list[str]]:
    """A move has its throttle; another tool fills the list, and the entries of a second move have no room."""
    made = World(brokers=5, joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}, partition_bytes=10_000_000)
    await made.send(alter({orders(0): [4, 2, 3]}, plan="one", throttle_bytes_per_second=RATE))
    await made.run(3000)
    assert lists(made) == ThrottledReplicas(("0:1", "0:2", "0:3"), ("0:4",))
    theirs = [f"{100 + number}:{broker}" for number in range(1700) for broker in (1, 2, 3)]
    while len(",".join((*theirs, *lists(made).leader))) > MAX_VALUE_BYTES:
        theirs.pop()
    append(made, theirs)
    await made.send(alter({orders(1): [5, 3, 1]}, plan="two", throttle_bytes_per_second=RATE))
    await made.run(5000)
    (refused,) = refusals(made)
    assert refused.refused
    assert "32767" in refused.detail
    return made, theirs


async def test_entries_that_were_there_before_a_refusal_go_with_the_last_move() -> None:
    made, theirs = await with_a_full_list()
    made.model.joins_by_itself = True
    await made.finish()
    assert lists(made) == ThrottledReplicas(tuple(theirs), ())
    assert len(refusals(made)) == 1


async def test_a_successor_puts_back_what_was_there_before_the_refusal() -> None:
    made, theirs = await with_a_full_list()
    made.crash()
    made.model.joins_by_itself = True
    await made.finish()
    assert lists(made) == ThrottledReplicas(tuple(theirs), ())


async def test_a_refusal_in_the_middle_of_moves_is_not_repeated() -> None:
    made, _ = await with_a_full_list()
    await made.run(60_000)
    assert len(refusals(made)) == 1


async def with_more_than_a_list_holds() -> World:
    """Ten throttled moves; 1,200 others of the topic have begun without one when the cluster gets a throttle."""
    made = World(brokers=1030, joins_by_itself=False, limits=Limits(max_moves_per_broker=200))
    replicas = {number: [1001 + (number + place) % 10 for place in range(3)] for number in (*MANY, *FEW)}
    made.model.create_topic("orders", replicas, partition_bytes=10_000)

    def moves(numbers: range, to: int) -> dict[TopicPartition, Sequence[int] | None]:
        return {orders(number): [replicas[number][0], to + number % 10, replicas[number][2]] for number in numbers}

    await made.send(alter(moves(FEW, 1021), id="few", throttle_bytes_per_second=RATE))
    await made.run(3000)
    await made.send(alter(moves(MANY, 1011), id="many"))
    await made.run(6000)
    assert len(made.state.moves.in_flight) == len(MANY) + len(FEW)
    throttle = Throttle(id="t", cluster=CLUSTER, by="ana", reason="test", bytes_per_second=RATE // 2)
    assert (await made.send(throttle)).verdict == "accepted"
    await made.run(5000)
    (refused,) = refusals(made)
    assert refused.refused
    assert len(lists(made).leader) == 3 * len(FEW)
    return made


async def test_a_throttle_for_more_than_a_list_holds_leaves_nothing_behind() -> None:
    made = await with_more_than_a_list_holds()
    made.model.joins_by_itself = True
    await made.finish(300_000)
    assert lists(made) == NOTHING


async def test_copies_get_their_throttle_once_the_list_has_room_for_all_that_are_left() -> None:
    made = await with_more_than_a_list_holds()
    for number in MANY[:800]:
        made.model.replication.join(orders(number), 1011 + number % 10)
    await made.run(30_000)
    assert len(refusals(made)) == 1
    assert not made.state.topic_throttles["orders"].left
    moving = made.state.moves.in_flight
    assert len(moving) == len(MANY) + len(FEW) - 800
    assert {int(entry.partition(":")[0]) for entry in lists(made).leader} == {key.partition for key in moving}
    made.model.joins_by_itself = True
    await made.finish(300_000)
    assert lists(made) == NOTHING


async def test_a_removal_that_is_refused_when_nothing_moves_any_more_is_not_tried_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = World(joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=10_000_000)
    await made.send(alter({orders(0): [4, 2, 3]}, throttle_bytes_per_second=RATE))
    await made.run(3000)
    change_throttles = made.driver.change_throttles

    async def refusing(changes: Sequence[ThrottleChange]) -> Mapping[ThrottleChange, CallResult]:
        if any(isinstance(one, RemoveThrottledReplicas) for one in changes):
            return dict.fromkeys(changes, CallResult(INVALID_CONFIG))
        return await change_throttles(changes)

    monkeypatch.setattr(made.driver, "change_throttles", refusing)
    made.model.joins_by_itself = True
    await made.finish()
    (left,) = refusals(made)
    assert not left.refused
    assert made.state.topic_throttles == {}
