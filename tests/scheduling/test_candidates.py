"""The index of what waits: who is tried, in which order, and that nobody is forgotten."""

import itertools
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from drover.events.plans import Priority
from drover.reconcile.starts.candidates import PATIENCE, Candidates
from drover.reconcile.starts.rank import Rank
from drover.reconcile.starts.resources import Budget, Needs, amount
from drover.reconcile.starts.shares import Shares
from drover.reconcile.starts.waiting_entry import Where
from drover.state.slot_share import WHOLE_SLOT, WHOLE_SLOT_BYTES, share_of
from tests.scheduling.support import LEADERS, LIMIT, Rooms, index, key_of, rank, tried, wake, way, ways


def test_what_is_ready_is_tried_in_the_order_of_acceptance_and_in_flight_first() -> None:
    candidates = index()
    for number, tier in ((3, 1), (1, 1), (7, 0), (2, 1)):
        candidates.offer(key_of(number), rank(number, tier))
    assert tried(candidates) == [7, 1, 2, 3]


def test_what_is_parked_comes_back_one_at_a_time_when_there_is_room_at_all_it_needs() -> None:
    candidates = index()
    rooms = Rooms(candidates, {way(1), way(2)})
    candidates.park(key_of(1), rank(1), ways(1, 2), ways(1, 2))
    candidates.park(key_of(2), rank(2), ways(1), ways(1))
    candidates.park(key_of(3), rank(3), ways(1), ways(1))
    rooms.full.discard(way(1))
    wake(candidates, rooms)
    assert [candidates.where(key_of(number)) for number in (1, 2, 3)] == [Where.PARKED, Where.READY, Where.PARKED]
    candidates.drop(key_of(2))
    wake(candidates, rooms)
    assert candidates.where(key_of(3)) is Where.READY
    rooms.full.discard(way(2))
    wake(candidates, rooms)
    assert tried(candidates) == [1, 3]


def test_one_that_was_woken_and_ends_before_it_is_tried_lets_the_next_one_come() -> None:
    """Simulation seed 3001006: the room that it had been woken for was offered to nobody else."""
    candidates = index()
    for number in (1, 2):
        candidates.park(key_of(number), rank(number), ways(6), ways(6))
    wake(candidates, Rooms(candidates))
    candidates.drop(key_of(1))
    wake(candidates, Rooms(candidates))
    assert tried(candidates) == [2]


def test_looks_have_an_end_and_a_line_in_front_of_it() -> None:
    candidates = index(1)
    candidates.look(key_of(2), rank(2), ways(4))
    candidates.look(key_of(3), rank(3), ways(4))
    candidates.look(key_of(1), rank(1), ways(5))
    assert set(candidates.looks) == {key_of(2)}
    assert (candidates.expected[way(4)], candidates.expected[way(5)]) == (32, 16)
    candidates.seen((key_of(2),))
    candidates.wake_line()
    assert set(candidates.looks) == {key_of(1)}
    assert tried(candidates) == [2]
    assert candidates.expected[way(4)] == 16


def test_what_is_put_off_comes_back_at_its_time_or_when_it_is_seen() -> None:
    candidates = index()
    candidates.put_off(key_of(1), rank(1), 500)
    candidates.put_off(key_of(2), rank(2), 900)
    assert candidates.next_due_ms() == 500
    candidates.wake_due(499)
    assert tried(candidates) == []
    candidates.seen((key_of(2),))
    candidates.wake_due(500)
    assert tried(candidates) == [1, 2]
    assert candidates.next_due_ms() is None


@given(
    st.lists(
        st.tuples(
            st.sets(st.integers(1, 5), min_size=1, max_size=3),
            st.integers(1, 4),
            st.sampled_from((0, WHOLE_SLOT_BYTES // 8, WHOLE_SLOT_BYTES // 2, None)),
            st.sampled_from(((), (LEADERS,), (Budget.COPIES,), (Budget.COPIES, LEADERS))),
        ),
        max_size=40,
    )
)
def test_whoever_has_room_starts_as_in_a_scan_of_all(
    moves: Sequence[tuple[set[int], int, int | None, tuple[Budget, ...]]],
) -> None:
    """Copies of all sizes arrive and end: none waits that has room at all it needs, and nothing has too many."""
    candidates, running = index(), []
    rooms = Rooms(candidates)
    needs_of: dict[int, Needs] = {
        number: (*ways(*sorted(brokers)), *budgets) for number, (brokers, _, _, budgets) in enumerate(moves)
    }
    shares = {number: share_of(size) for number, (_, _, size, _) in enumerate(moves)}

    def take(number: int, sign: int) -> None:
        for one in needs_of[number]:
            rooms.taken[one] += sign * amount(one, shares[number])
            assert 0 <= rooms.taken[one] <= (LIMIT if isinstance(one, Budget) else LIMIT * WHOLE_SLOT)

    def go() -> None:
        wake(candidates, rooms)
        for candidate in candidates.ready():
            number = candidate.key.partition
            full = rooms.lacking(needs_of[number], candidate.key, shares[number])
            if full:
                candidates.park(candidate.key, rank(number), needs_of[number], full, shares[number])
            else:
                candidates.drop(candidate.key)
                running.append(number)
                take(number, 1)
            if candidate.woken_by is not None:
                candidates.wake_next(candidate.woken_by, rooms)

    for number, (_, ends, _, _) in enumerate(moves):
        candidates.offer(key_of(number), rank(number))
        go()
        for ended in running[:ends] if number % 3 == 2 else ():
            running.remove(ended)
            take(ended, -1)
        go()
        waiting = [one for one in range(number + 1) if candidates.where(key_of(one)) is not None]
        assert not [one for one in waiting if not rooms.lacking(needs_of[one], key_of(one), shares[one])]


def served_by_one_slot(candidates: Candidates, starts: int) -> list[str]:
    """Let what waits start one after the other; name the plan of each start."""
    found: list[str] = []
    while len(found) < starts:
        candidate = next(candidates.ready())
        plan = candidates.rank(candidate.key).plan
        candidates.shares.start(plan, 1)
        candidates.drop(candidate.key)
        found.append(plan)
    return found


def test_plans_of_one_priority_take_turns_and_a_late_one_shares_at_once() -> None:
    candidates = index()
    for number in range(100):
        candidates.offer(key_of(number), rank(number, plan="old"))
    assert set(served_by_one_slot(candidates, 50)) == {"old"}
    for number in range(100, 110):
        candidates.offer(key_of(number), rank(number, plan="late"))
    assert served_by_one_slot(candidates, 20).count("late") == 10


def test_a_plan_of_low_priority_waits_for_no_more_than_a_bound() -> None:
    """Ten of normal and a hundred of high priority for one of low priority, however many wait."""
    candidates = index(high=Priority.HIGH, low=Priority.LOW)
    for plan, first, count in (("low", 0, 5), ("normal", 1000, 400), ("high", 2000, 900)):
        for number in range(first, first + count):
            candidates.offer(key_of(number), rank(number, plan=plan))
    order = served_by_one_slot(candidates, 500)
    waits = [at for at, plan in enumerate(order) if plan == "low"]
    assert len(waits) >= 4
    assert max(after - before for before, after in itertools.pairwise(waits)) <= 112
    assert 9 <= order.count("high") / order.count("normal") <= 11


def test_within_a_plan_the_busiest_port_goes_first_then_the_largest_copy() -> None:
    candidates = index()
    for number, port, size in ((1, -10, -5), (2, -30, -1), (3, -30, -9)):
        candidates.offer(key_of(number), Rank(1, port, size, number, "p"))
    assert tried(candidates) == [3, 2, 1]


def test_what_never_finds_all_it_needs_free_at_once_is_passed_a_bounded_number_of_times() -> None:
    """One needs two brokers that are free by turns: others that need one of them pass it, and then no more."""
    candidates = index()
    rooms = Rooms(candidates, set(ways(1, 2)))
    candidates.park(key_of(0), rank(0), ways(1, 2), ways(1, 2))
    for number in range(1, 200):
        candidates.park(key_of(number), rank(number), ways(1 + number % 2), ways(1 + number % 2))
    passed = 0
    for turn in range(200):
        free, other = way(1 + turn % 2), way(2 - turn % 2)
        rooms.full = {other} if free not in candidates.reserved else set()
        wake(candidates, rooms)
        started = [candidate.key for candidate in candidates.ready()]
        for key in started:
            candidates.pass_by(key, candidates.rank(key), (free,))
            candidates.drop(key)
        passed += len(started)
        if key_of(0) in started:
            break
    assert key_of(0) not in candidates
    assert passed <= PATIENCE + 3


def test_one_that_starts_passes_another_once_wherever_both_need_room() -> None:
    """A whole replacement needs four ways, and kept all of them after 25 starts of others."""
    candidates = index()
    candidates.park(key_of(0), rank(0), ways(1, 2, 3, 4), ways(1))
    for number in range(1, PATIENCE):
        candidates.pass_by(key_of(number), rank(number), ways(1, 2, 3, 4))
    assert candidates.reserved == {}
    candidates.pass_by(key_of(PATIENCE), rank(PATIENCE), ways(1, 2, 3, 4))
    assert set(candidates.reserved) == set(ways(1, 2, 3, 4))


def test_nothing_is_kept_for_what_ends_or_needs_something_else() -> None:
    candidates = index()
    candidates.park(key_of(0), rank(0), ways(1, 2), ways(1, 2))
    candidates.reserved.update(dict.fromkeys(ways(1, 2), key_of(0)))
    candidates.park(key_of(0), rank(0), ways(3), ways(3))
    assert candidates.reserved == {}
    candidates.reserved[way(3)] = key_of(0)
    candidates.put_off(key_of(0), rank(0), 100)
    candidates.give_up(key_of(0))
    assert candidates.reserved == {}
    candidates.park(key_of(0), rank(0), ways(1, 2), ways(1, 2))
    candidates.reserved.update(dict.fromkeys(ways(1, 2), key_of(0)))
    candidates.drop(key_of(0))
    assert candidates.reserved == {}


def test_plans_of_which_nothing_waits_are_forgotten() -> None:
    shares = Shares(lambda _: Priority.NORMAL)
    for number in range(50):
        shares.enter(f"p{number}")
        shares.start(f"p{number}", 1)
        shares.leave(f"p{number}")
    assert shares._served == {}


def test_what_is_parked_is_gone_through_once_however_many_limits_change_at_a_time() -> None:
    """A MiB of commands that change limits held the owner up for seconds where 100,000 moves waited."""
    candidates = index()
    candidates.park(key_of(1), rank(1), ways(1), ways(1))
    entries = candidates._entries
    candidates._entries = {}
    for _ in range(1000):
        candidates.recheck_parked()
    candidates._entries = entries
    assert candidates.wake_rechecked(1) is False
    assert candidates.where(key_of(1)) is Where.READY
