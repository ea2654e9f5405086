"""What a plan will take: steps, the least time that no schedule beats, and the time that the scheduler's rules give."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drover.events.clusters import Budgets
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.reconcile.moves.stepping import Situation
from drover.reconcile.starts.estimate import Course, copied, course_of, least_time_s
from drover.reconcile.starts.play import MOST_PLAYED, expected_time_s
from drover.state.scheduling import Limits

MB = 1_000_000
LIVE = frozenset(range(1, 11))


def course(
    before: tuple[int, ...],
    after: tuple[int, ...],
    *,
    size: int | None = 10 * MB,
    number: int = 0,
    stepping: Stepping = Stepping.GROW,
    **changed: Any,
) -> Course:
    now = Situation(
        current=before,
        target=after,
        original=before,
        live=changed.pop("live", LIVE),
        isr=before,
        leader=before[0],
        min_isr=1,
        max_replicas_per_step=changed.pop("max_replicas_per_step", 1),
    )
    return course_of(TopicPartition("orders", number), now, stepping, size)


@pytest.mark.parametrize(
    ("stepping", "lists"),
    [
        (Stepping.GROW, ((1, 2), (1, 2, 3), (1, 2, 3, 4), (3, 4))),
        (Stepping.SWAP, ((1, 2), (3, 1, 2), (3, 1), (3, 4))),
        (Stepping.SINGLE, ((1, 2), (3, 4))),
    ],
)
def test_the_steps_of_a_partition_are_those_that_it_will_go(
    stepping: Stepping, lists: tuple[tuple[int, ...], ...]
) -> None:
    found = course((1, 2), (3, 4), stepping=stepping)
    assert found.lists == lists
    assert found.steps == len(lists) - 1
    assert sum(copied(step) for step in found.copies) == 2


def test_a_step_by_order_alone_copies_nothing_and_takes_no_time() -> None:
    found = course((1, 2, 3), (3, 2, 1))
    assert (found.steps, found.copies) == (1, ())
    assert least_time_s([found], MB, Limits()) == 0
    assert expected_time_s([found], MB, Limits(), {}) == 0


def test_the_way_ends_where_the_rest_of_the_target_is_dead() -> None:
    found = course((1, 2), (3, 4), live=frozenset({1, 2, 3}))
    assert found.lists[-1] != (3, 4)


def test_one_copy_takes_its_bytes_at_the_rate() -> None:
    moves = [course((1, 2), (1, 3))]
    assert least_time_s(moves, MB, Limits()) == pytest.approx(10)
    assert expected_time_s(moves, MB, Limits(), {}) == pytest.approx(10)


def test_the_busiest_way_bounds_the_time() -> None:
    moves = [course((1 + number, 9), (1 + number, 5), number=number) for number in range(3)]
    assert least_time_s(moves, MB, Limits()) == pytest.approx(30)
    assert expected_time_s(moves, MB, Limits(), {}) == pytest.approx(30)


def test_few_copies_at_a_time_take_longer() -> None:
    moves = [course((number, 9), (number, number + 4), number=number) for number in (1, 2, 3, 4)]
    assert least_time_s(moves, MB, Limits()) == pytest.approx(10)
    one = Limits(budgets=Budgets(max_replica_copies_in_flight=1))
    assert least_time_s(moves, MB, one) == pytest.approx(40)
    assert expected_time_s(moves, MB, one, {}) == pytest.approx(40)


def test_copies_between_racks_wait_for_an_uplink_and_those_within_a_rack_do_not() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "a", 6: "a"}
    between = [course((1, 9), (1, 3), number=0), course((2, 9), (2, 4), number=1)]
    within = [course((5, 9), (5, 6), number=2)]
    bounded = Limits(budgets=Budgets(max_moves_per_rack=1))
    assert expected_time_s(between + within, MB, Limits(), racks) == pytest.approx(10)
    assert expected_time_s(between + within, MB, bounded, racks) == pytest.approx(20)
    assert expected_time_s(within, MB, bounded, racks) == pytest.approx(10)
    assert expected_time_s(between, MB, bounded, {}) == pytest.approx(10), "racks that nobody knows bound nothing"


def test_the_steps_of_one_partition_follow_each_other() -> None:
    moves = [course((1, 2), (3, 4))]
    assert least_time_s(moves, MB, Limits()) == pytest.approx(20)
    assert expected_time_s(moves, MB, Limits(), {}) == pytest.approx(20)
    single = [course((1, 2), (3, 4), stepping=Stepping.SINGLE)]
    # Both copies leave the leader, which sends no more than its rate.
    assert expected_time_s(single, MB, Limits(), {}) == pytest.approx(20)


def test_copies_of_unknown_size_count_as_none() -> None:
    moves = [course((1, 2), (1, 3), size=None), course((1, 2), (1, 3), number=1)]
    assert least_time_s(moves, MB, Limits()) == pytest.approx(10)
    assert expected_time_s(moves, MB, Limits(), {}) == pytest.approx(10)


def test_too_many_copies_are_not_played_through() -> None:
    moves = [course((1, 2), (1, 3), number=number) for number in range(MOST_PLAYED + 1)]
    assert expected_time_s(moves, MB, Limits(), {}) is None
    assert least_time_s(moves, MB, Limits()) == pytest.approx(10 * len(moves))


# No size is a multiple of it.
RATE = 999_983
BROKERS = st.permutations(range(1, 7))


@given(
    moves=st.lists(st.tuples(BROKERS, BROKERS, st.integers(1, 50)), min_size=1, max_size=12),
    stepping=st.sampled_from(list(Stepping)),
    per_broker=st.integers(1, 5),
    copies=st.none() | st.integers(1, 5),
)
def test_no_play_beats_the_least_time_and_each_ends(
    moves: list[tuple[list[int], list[int], int]], stepping: Stepping, per_broker: int, copies: int | None
) -> None:
    limits = Limits(max_moves_per_broker=per_broker, budgets=Budgets(max_replica_copies_in_flight=copies))
    courses = [
        course(tuple(before[:3]), tuple(after[:3]), size=size * MB, number=number, stepping=stepping)
        for number, (before, after, size) in enumerate(moves)
    ]
    least, expected = least_time_s(courses, RATE, limits), expected_time_s(courses, RATE, limits, {})
    assert expected is not None
    together = (
        sum(
            size * MB * sum(copied(step) for step in one.copies)
            for one, (_, _, size) in zip(courses, moves, strict=True)
        )
        / RATE
    )
    assert least <= expected, "not even by rounding"
    assert expected <= together * 1.000001 + 0.001, "at least one copy always goes at the full rate"
