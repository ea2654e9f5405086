"""A move that lacks only a budget waits in that budget's line; freed broker slots are not offered to it."""

from drover.reconcile.starts.budget_lines import MAX_LEAVING
from drover.reconcile.starts.candidates import PATIENCE
from drover.reconcile.starts.resources import Budget
from drover.state.slot_share import WHOLE_SLOT
from tests.scheduling.support import LEADERS, Rooms, index, key_of, rank, tried, wake, way, ways


def test_what_lacks_only_a_budget_waits_there_and_is_not_tried_where_a_broker_has_room() -> None:
    """Each freed slot was once offered to every move that waited for the broker, only to park it for the budget."""
    candidates = index()
    rooms = Rooms(candidates, {way(1), LEADERS})
    for number in range(1, 6):
        candidates.park(key_of(number), rank(number), (way(1), LEADERS), [way(1), LEADERS])
    candidates.park(key_of(6), rank(6), (way(1),), [way(1)])
    rooms.full.discard(way(1))
    wake(candidates, rooms)
    assert tried(candidates) == [6], "another, which moves no leader, passes"
    wake(candidates, rooms)
    assert tried(candidates) == []
    rooms.full = {way(1)}
    wake(candidates, rooms)
    assert tried(candidates) == []
    rooms.full = set()
    wake(candidates, rooms)
    assert tried(candidates) == [1]
    wake(candidates, rooms)
    assert tried(candidates) == [2]


def test_the_room_of_a_budget_goes_to_the_first_that_lacks_nothing_else() -> None:
    candidates = index()
    rooms = Rooms(candidates, {LEADERS})
    for number, broker in ((4, 4), (3, 3), (2, 2), (1, 1)):
        candidates.park(key_of(number), rank(number), (way(broker), LEADERS), [LEADERS])
    candidates.park(key_of(0), rank(0, tier=0), (LEADERS,), [LEADERS])
    rooms.full = {way(1)}
    for first in (0, 2, 3, 4):
        wake(candidates, rooms)
        assert tried(candidates) == [first]
    rooms.full = set()
    wake(candidates, rooms)
    assert tried(candidates) == [1]


def test_what_comes_first_goes_first_in_a_line_that_it_joins_late() -> None:
    candidates = index()
    rooms = Rooms(candidates, {LEADERS})
    for number in (5, 7):
        candidates.park(key_of(number), rank(number), (way(number), LEADERS), [LEADERS])
    wake(candidates, rooms)
    candidates.park(key_of(2), rank(2), (way(7), LEADERS), [LEADERS])
    rooms.full = set()
    wake(candidates, rooms)
    assert tried(candidates) == [2]


def test_what_waits_for_one_budget_is_woken_by_it_where_its_like_waited_for_another() -> None:
    """Simulation seed 582: it was taken for one in a line that had ended."""
    candidates = index()
    needs = (way(1), Budget.COPIES, LEADERS)
    candidates.park(key_of(1), rank(1), needs, [LEADERS])
    rooms = Rooms(candidates)
    candidates.wake_parked(rooms)
    assert tried(candidates) == [1]
    candidates.wake_parked(rooms)
    candidates.park(key_of(2), rank(2), needs, [Budget.COPIES])
    candidates.wake_parked(rooms)
    assert tried(candidates) == [2]


def test_one_that_needs_something_else_now_is_told_from_what_it_was_in_line() -> None:
    """Simulation seeds 209 and 891: two groups with the same first one cannot be compared."""
    candidates = index()
    rooms = Rooms(candidates, {LEADERS})
    for needs in ((LEADERS, way(1)), (LEADERS, Budget.COPIES), (LEADERS,)):
        candidates.park(key_of(1), rank(1), needs, [LEADERS])
    candidates.park(key_of(2), rank(2), (way(2), LEADERS), [LEADERS])
    rooms.full = set()
    for first in (1, 2):
        wake(candidates, rooms)
        assert tried(candidates) == [first]


def test_a_long_line_of_those_that_lack_something_else_by_now_is_looked_through_in_portions() -> None:
    candidates, count = index(), MAX_LEAVING * 5 // 2
    rooms = Rooms(candidates, {LEADERS})
    for number in range(count):
        candidates.park(key_of(number), rank(number), (way(number), LEADERS), [LEADERS])
    rooms.full = set(ways(*range(count - 1)))
    for is_behind in (True, True, False):
        assert tried(candidates) == []
        candidates.wake_parked(rooms)
        assert candidates.budget_lines.is_behind is is_behind
    assert tried(candidates) == [count - 1]


def test_a_look_at_one_that_would_move_a_leader_counts_against_the_budget() -> None:
    candidates = index(max_looks=3)
    candidates.look(key_of(1), rank(1), (way(1), LEADERS), WHOLE_SLOT // 4)
    assert candidates.expected == {way(1): WHOLE_SLOT // 4, LEADERS: 1}
    candidates.seen((key_of(1),))
    assert candidates.expected.total() == 0


def test_nobody_is_passed_who_waits_for_a_budget_that_the_other_takes_nothing_of() -> None:
    candidates = index()
    candidates.park(key_of(0), rank(0), (way(1), LEADERS), [way(1), LEADERS])
    for number in range(1, PATIENCE * 2):
        candidates.pass_by(key_of(number), rank(number), ways(1))
    assert candidates.reserved == {}
    for number in range(1, PATIENCE + 1):
        candidates.pass_by(key_of(number), rank(number), (way(1), LEADERS))
    assert candidates.reserved == {way(1): key_of(0)}, "of a budget nothing is kept"


def test_no_broker_is_kept_free_for_one_that_a_budget_holds_back() -> None:
    candidates = index()
    rooms = Rooms(candidates, {LEADERS})
    candidates.park(key_of(0), rank(0), (way(1), LEADERS), [LEADERS])
    candidates.reserved[way(1)] = key_of(0)
    candidates.park(key_of(1), rank(1), (way(1),), [way(1)])
    wake(candidates, rooms)
    wake(candidates, rooms)
    assert tried(candidates) == [1]
