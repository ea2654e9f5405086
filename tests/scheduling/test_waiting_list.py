"""The order among what waits: plans by turns, in each the busiest direction, the largest copy; a window of groups."""

from collections.abc import Iterator
from itertools import islice

import pytest

from drover.events.partitions import TopicPartition
from drover.events.plans import Priority
from drover.reconcile.gates import Start
from drover.reconcile.starts import waiting_list
from drover.reconcile.starts.shares import Shares
from drover.reconcile.starts.waiting_list import WaitingList
from drover.state.broker_directions import BrokerDirection, BrokerDirections, directions_of

URGENT = "urgent"


def waiting() -> WaitingList:
    return WaitingList(Shares(lambda plan: Priority.HIGH if plan == URGENT else Priority.NORMAL))


def put(
    entries: WaitingList,
    number: int,
    directions: BrokerDirections,
    *,
    size: int = 1,
    plan: str = "p",
    is_pending: bool = True,
) -> TopicPartition:
    key = TopicPartition("t", number)
    if is_pending:
        entries.backlog.put(key, directions, size)
    copies = sum(direction.way == "in" for direction in directions)
    entries.put(Start(key, plan, directions=directions, copies=copies, is_pending=is_pending), plan, number)
    return key


def starts(entries: WaitingList) -> Iterator[int]:
    """Start whatever comes next, without limits."""
    order = entries.fair_queue(entries.window(lambda _: True, ()))
    while (first := order.first()) is not None:
        _, group, item = first
        key = item[2]
        entries.shares.start(group.name.plan, 1)
        entries.remove(key)
        entries.backlog.drop(key)
        order.skip(group, item)
        yield key.partition


def test_the_busiest_port_comes_first_then_the_largest_copy_then_what_was_accepted_first() -> None:
    entries = waiting()
    put(entries, 1, directions_of((4,), 1), size=5)
    put(entries, 2, directions_of((5,), 2), size=3)
    put(entries, 3, directions_of((5,), 3), size=9)
    put(entries, 4, directions_of((6,), 2), size=3)
    put(entries, 5, directions_of((7,), 8), size=3)
    put(entries, 6, directions_of((9,), 10), size=3)
    # Broker 5 has 12 to receive; then broker 2 has 6 to send.
    assert list(starts(entries)) == [3, 2, 1, 4, 5, 6]


def test_what_is_in_flight_comes_before_all_that_is_pending() -> None:
    entries = waiting()
    put(entries, 1, directions_of((4,), 1), size=100, plan=URGENT)
    put(entries, 2, directions_of((5,), 2), is_pending=False)
    assert list(starts(entries)) == [2, 1]


def test_plans_take_turns_and_one_of_a_higher_priority_takes_more_of_them() -> None:
    entries = waiting()
    for number in range(40):
        put(entries, number, directions_of((4 + number % 3,), 1), plan=URGENT if number >= 20 else f"plan-{number % 2}")
    first = list(islice(starts(entries), 22))
    # Ten for each one of the two others.
    assert sum(number >= 20 for number in first) == 18
    assert {number % 2 for number in first if number < 20} == {0, 1}


def test_a_plan_is_expected_to_be_served_by_what_is_looked_at() -> None:
    shares = waiting().shares
    shares.expect("p", 2)
    assert (shares.served("p"), shares.served("q")) == (20, 0)
    shares.begin()
    assert shares.served("p") == 0


def test_lanes_into_full_brokers_are_passed_over() -> None:
    entries = waiting()
    put(entries, 1, directions_of((4,), 1))
    put(entries, 2, directions_of((5,), 1))
    put(entries, 3, ())
    shown = [group.name.broker for group in entries.window(lambda broker: broker != 4, ())]
    assert shown == [5, None]


def test_where_lanes_are_more_than_the_window_every_one_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_list, "WINDOW", 6)
    entries = waiting()
    kept = put(entries, 99, directions_of((3,), 1))
    for number in range(40):
        put(entries, number, directions_of((4 + number % 2,), 10 + number))
    seen: set[int] = set()
    for _ in range(20):
        groups = entries.window(lambda _: True, (kept,))
        assert len(groups) <= 7
        items = [item for group in groups if (item := group.at(0)) is not None]
        assert kept in {item[2] for item in items}
        seen |= {item[2].partition for item in items}
    assert seen == {*range(40), 99}


def test_a_move_is_in_one_lane_and_takes_its_place_there() -> None:
    entries = waiting()
    first = put(entries, 1, directions_of((4,), 1))
    put(entries, 2, directions_of((4,), 1))
    put(entries, 1, directions_of((5,), 1))
    assert len(entries) == 2
    assert {group.name.start.directions[-1] for group in entries.window(lambda _: True, ())} == {
        BrokerDirection(4, "in"),
        BrokerDirection(5, "in"),
    }
    entries.remove(first)
    entries.remove(first)
    assert (first in entries, len(entries), entries.start(first), entries.turn_of(first)) == (False, 1, None, None)
