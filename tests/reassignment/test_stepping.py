"""KIP-435's steps: the rows that the KIP prints, and what holds for every pair of lists."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from drover.decide.leader_order import deprioritise
from drover.events.plans import Stepping
from drover.reconcile.moves.stepping import Situation, next_list

Lists = tuple[tuple[int, ...], ...]
LISTS = st.lists(st.integers(1, 9), min_size=1, max_size=5, unique=True).map(tuple)
ALL = frozenset(range(10))


def situation(current: tuple[int, ...], target: tuple[int, ...], most: int = 1, min_isr: int = 1) -> Situation:
    return Situation(current, target, current, ALL, current, current[0], min_isr, most)


def route(now: Situation, stepping: Stepping = Stepping.SWAP) -> Lists:
    """Play the steps until the target: each brings in sync what it adds, and the head of the list is elected."""
    taken: list[tuple[int, ...]] = []
    while now.current != now.target:
        ahead = next_list(stepping, now)
        if ahead is None:
            break
        taken.append(ahead)
        isr = tuple(broker for broker in ahead if broker in now.isr or broker not in now.current)
        leader = next((broker for broker in ahead if broker in isr), None)
        short = len(isr) < min(now.min_isr, len(ahead))
        now = replace(now, current=ahead, isr=isr, leader=leader, is_short=short)
        assert len(taken) <= 24, f"no end: {taken}"
    return tuple(taken)


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, ((5, 0, 1, 2, 3, 4), (5, 1, 2, 3, 4), (5, 6, 2, 3, 4), (5, 6, 7, 3, 4), (5, 6, 7, 8, 4), (5, 6, 7, 8, 9))),
        (2, ((5, 0, 1, 2, 3, 4), (5, 6, 2, 3, 4), (5, 6, 7, 8, 4), (5, 6, 7, 8, 9))),
        (3, ((5, 0, 1, 2, 3, 4), (5, 6, 7, 3, 4), (5, 6, 7, 8, 9))),
        (5, ((5, 6, 7, 8, 9),)),
    ],
)
def test_the_kips_example_gives_its_rows(most: int, expected: Lists) -> None:
    """TV-216 is the second one."""
    assert route(situation((0, 1, 2, 3, 4), (5, 6, 7, 8, 9), most)) == expected


@pytest.mark.parametrize(
    ("original", "target", "expected"),
    [
        ((0, 1), (2, 3), ((2, 0, 1), (2, 1), (2, 3))),
        ((0, 1, 2), (3, 4, 5), ((3, 0, 1, 2), (3, 1, 2), (3, 4, 2), (3, 4, 5))),
        ((0, 1), (1, 2, 3, 4, 5), ((1, 2, 0), (1, 2, 3, 0), (1, 2, 3, 4, 0), (1, 2, 3, 4, 5))),
        ((0, 1, 2), (3,), ((3, 0, 1, 2), (3,))),
        ((0, 1), (3, 4, 5), ((3, 0, 1), (3, 4, 1), (3, 4, 5))),
    ],
)
def test_the_vectors_with_one_replica_at_a_time(
    original: tuple[int, ...], target: tuple[int, ...], expected: Lists
) -> None:
    """TV-276."""
    assert route(situation(original, target)) == expected


def test_what_min_isr_lacks_is_added_first_and_at_once() -> None:
    """TV-217, and R435-3 for every stepping: the first step fulfils min.insync.replicas, whatever its limit is."""
    now = replace(situation((0,), (0, 1, 2, 3), min_isr=3), isr=(0,))
    assert next_list(Stepping.SWAP, now) == (0, 1, 2)
    assert next_list(Stepping.GROW, now) == (0, 1, 2)
    assert next_list(Stepping.SINGLE, now) == (0, 1, 2, 3)


def test_below_min_isr_nothing_is_dropped_and_no_leader_moves() -> None:
    now = replace(situation((0, 1, 2), (3, 4, 5), min_isr=3), isr=(0,), is_short=True)
    assert next_list(Stepping.SWAP, now) == (0, 1, 2, 3, 4)
    assert next_list(Stepping.SINGLE, now) == (0, 1, 2, 3, 4, 5)
    assert next_list(Stepping.GROW, now) == (0, 1, 2, 3, 4)
    assert next_list(Stepping.GROW, replace(now, min_isr=2)) == (0, 1, 2, 3)


@pytest.mark.parametrize("stepping", Stepping)
def test_what_has_no_registration_goes_with_the_first_step_and_as_many_come(stepping: Stepping) -> None:
    now = replace(situation((6, 1, 2), (6, 5, 4)), isr=(6,), live={4, 5, 6}, unregistered={1, 2})
    assert next_list(stepping, now) == (6, 5, 4)
    assert next_list(stepping, replace(now, min_isr=2, is_short=True)) == (6, 5, 4)


@pytest.mark.parametrize("stepping", [Stepping.GROW, Stepping.SWAP])
def test_where_too_few_live_the_first_step_leaves_fewer_replicas_than_there_were(stepping: Stepping) -> None:
    """Brokers 1 and 2 hold no replica that could be lost: Kafka does not know them any more."""
    now = replace(situation((6, 1, 2), (6, 5, 4)), isr=(6,), live={5, 6}, unregistered={1, 2})
    assert next_list(stepping, now) == (6, 5)
    then = replace(now, current=(6, 5), isr=(6, 5), unregistered=())
    assert next_list(stepping, then) is None
    assert next_list(stepping, replace(then, live={4, 5, 6})) == (6, 5, 4)


def test_a_shorter_target_without_what_has_no_registration_is_one_step() -> None:
    now = replace(situation((1, 2, 3), (2, 3)), isr=(2, 3), live={2, 3}, leader=2, unregistered={1})
    assert {next_list(stepping, now) for stepping in Stepping} == {(2, 3)}


@given(
    original=LISTS,
    target=LISTS,
    most=st.integers(1, 5),
    min_isr=st.integers(1, 4),
    behind=st.sets(st.integers(1, 9)),
    dead=st.sets(st.integers(1, 9)),
    unregistered=st.sets(st.integers(1, 9), min_size=1),
    stepping=st.sampled_from(list(Stepping)),
)
def test_no_step_names_a_broker_without_a_registration(
    original: tuple[int, ...],
    target: tuple[int, ...],
    most: int,
    min_isr: int,
    behind: set[int],
    dead: set[int],
    unregistered: set[int],
    stepping: Stepping,
) -> None:
    """The list is as long as the shorter end of the way, or holds everything that could be copied by then."""
    unregistered -= {*target}
    away = dead | unregistered
    isr = tuple(broker for broker in original if broker not in behind | away)
    now = replace(situation(original, target, most, min_isr), isr=isr, live=ALL - away, leader=isr[0] if isr else None)
    now = replace(now, is_short=len(isr) < min(min_isr, len(original)), unregistered=unregistered)
    taken = route(now, stepping)
    for ahead in taken:
        assert unregistered.isdisjoint(ahead)
        could_come = {*target} - {*original} - away
        assert len(ahead) >= min(len(original), len(target)) or could_come <= {*ahead}
        assert {*ahead} >= {*original} & {*target}
    if not away - unregistered:
        assert (taken[-1] if taken else original) == target


def test_the_dead_and_the_out_of_sync_go_first_and_the_leader_last() -> None:
    now = replace(situation((3, 0, 1, 2), (3, 4, 5)), isr=(3, 0, 1), leader=0)
    assert next_list(Stepping.SWAP, now) == (3, 0, 1)
    assert next_list(Stepping.SWAP, replace(now, isr=(3, 0, 1, 2), live=ALL - {1})) == (3, 0, 2)
    assert next_list(Stepping.SWAP, replace(now, isr=(3, 0, 1, 2))) == (3, 0, 2)


def test_a_dead_member_of_the_target_does_not_hold_up_another_one() -> None:
    """Whether it was to come first, or is there already and has died since."""
    away = replace(situation((0, 1, 2), (3, 4, 5)), live=ALL - {3})
    assert next_list(Stepping.SWAP, away) == (4, 0, 2)
    died = replace(situation((3, 1, 2), (3, 4, 5), min_isr=2), live=ALL - {3}, leader=1)
    assert next_list(Stepping.SWAP, died) == (3, 4, 1)
    over = replace(situation((3, 0, 1), (3, 4), min_isr=2), isr=(0, 1), leader=0)
    assert next_list(Stepping.SWAP, over) == (3, 4, 0)


def test_no_more_is_dropped_than_min_isr_can_do_without() -> None:
    now = replace(situation((4, 1, 2, 3), (4, 5), min_isr=2), isr=(1, 2), leader=1)
    assert next_list(Stepping.SWAP, now) == (4, 1, 2)
    assert next_list(Stepping.SWAP, replace(now, min_isr=1)) == (4, 1)


def test_only_the_dead_left_to_add_is_no_step() -> None:
    now = replace(situation((3, 4, 2), (3, 4, 5)), live=ALL - {5})
    assert next_list(Stepping.SWAP, now) is None
    assert next_list(Stepping.GROW, now) is None
    assert next_list(Stepping.SINGLE, now) == (3, 4, 5)


def test_single_is_one_call_whatever_it_adds() -> None:
    assert route(situation((0, 1, 2), (3, 4, 5)), Stepping.SINGLE) == ((3, 4, 5),)


@given(
    original=LISTS,
    target=LISTS,
    most=st.integers(1, 5),
    min_isr=st.integers(1, 4),
    behind=st.sets(st.integers(1, 9)),
    dead=st.sets(st.integers(1, 9)),
    stepping=st.sampled_from(list(Stepping)),
)
def test_on_every_route_the_bounds_hold(
    original: tuple[int, ...],
    target: tuple[int, ...],
    most: int,
    min_isr: int,
    behind: set[int],
    dead: set[int],
    stepping: Stepping,
) -> None:
    """The list stays between both ends, min.insync.replicas is kept, and a step never adds what it has dropped."""
    isr = tuple(broker for broker in original if broker not in behind | dead)
    now = replace(situation(original, target, most, min_isr), isr=isr, live=ALL - dead, leader=isr[0] if isr else None)
    now = replace(now, is_short=len(isr) < min(min_isr, len(original)))
    before = now
    for ahead in route(now, stepping):
        added = {*ahead} - {*before.current}
        assert len({*ahead}) == len(ahead)
        assert {*ahead} <= {*original, *target}
        assert added <= {*target}
        assert not ({*before.current} - {*ahead}) & {*target}
        assert len(ahead) >= min(len(original), len(target))
        if stepping is not Stepping.SINGLE:
            assert ahead == target or added <= ALL - dead
        if stepping is Stepping.SWAP:
            _keeps_to_swaps_bounds(before, ahead, added, original)
        kept = tuple(broker for broker in ahead if broker in before.isr or broker in added)
        before = replace(before, current=ahead, isr=kept)
    if not dead and not behind:
        assert before.current == target
    elif stepping is not Stepping.SINGLE and not {*target} - {*original} & dead:
        assert {*before.current} >= {*target} - dead


def test_the_step_that_prepares_a_leader_takes_the_first_that_is_not_listed() -> None:
    """X8: the target is (5, 6, 7), and broker 5 should not lead."""
    now = replace(situation((0, 1, 2), (6, 7, 5)), listed={5})
    assert route(now) == ((6, 0, 1, 2), (6, 1, 2), (6, 7, 2), (6, 7, 5))


def test_the_leader_stays_until_somebody_who_may_lead_is_in_sync() -> None:
    behind = replace(situation((6, 5, 0), (6, 5)), isr=(5, 0), leader=0, listed={5})
    assert next_list(Stepping.SWAP, behind) == (6, 5), "which the gate of the step holds up"
    assert next_list(Stepping.SWAP, replace(behind, target=(6, 7, 5))) == (6, 7, 5), (
        "broker 7 is in sync before the drop"
    )
    gone = replace(behind, live=ALL - {6})
    assert next_list(Stepping.SWAP, gone) == (6, 5)


@given(
    original=LISTS,
    target=LISTS,
    most=st.integers(1, 5),
    behind=st.sets(st.integers(1, 9)),
    dead=st.sets(st.integers(1, 9)),
    listed=st.sets(st.integers(1, 9)),
    stepping=st.sampled_from(list(Stepping)),
)
def test_no_drop_hands_leadership_to_a_listed_broker(
    original: tuple[int, ...],
    target: tuple[int, ...],
    most: int,
    behind: set[int],
    dead: set[int],
    listed: set[int],
    stepping: Stepping,
) -> None:
    """X8, as Kafka elects: a leader stays while it is in the list, then the first that is in sync follows."""
    isr = tuple(broker for broker in original if broker not in behind | dead)
    now = replace(
        situation(original, deprioritise(target, listed), most),
        isr=isr,
        live=ALL - dead,
        leader=next((broker for broker in original if broker in isr), None),
        listed=listed,
    )
    for _ in range(24):
        ahead = next_list(stepping, now)
        if ahead is None or now.current == now.target:
            break
        in_sync = tuple(one for one in ahead if one in now.isr or (one not in now.current and one not in dead))
        leader = now.leader if now.leader in ahead else next((one for one in ahead if one in in_sync), None)
        is_last = {*ahead} == {*now.target}
        hands_over = now.leader is not None and now.leader not in listed and leader in listed
        if stepping is Stepping.SWAP and hands_over and not is_last:
            assert {*target} <= listed | dead, f"{now} to {ahead}"
        if stepping is Stepping.SWAP and not is_last:
            assert ahead == deprioritise(ahead, listed) or ahead[: len(now.current)] == now.current
        now = replace(now, current=ahead, isr=in_sync, leader=leader)
    if not dead and not behind:
        assert now.current == now.target
        assert now.leader not in listed or {*target} <= listed or now.leader == original[0]


def _keeps_to_swaps_bounds(
    before: Situation, ahead: tuple[int, ...], added: set[int], original: tuple[int, ...]
) -> None:
    in_sync = before.in_sync(before.current)
    lacks = before.lacks
    lagging = len(before.current) - in_sync
    assert len(added) <= max(before.max_replicas_per_step, lacks, 1)
    merged = len({*before.current, *ahead})
    assert merged <= max(len(original), len(before.target)) + max(before.max_replicas_per_step, lacks, 1) + lagging
    after = sum(broker in before.isr and broker in before.live for broker in ahead) + len(added)
    # A pure shrink is sent by the starter only when all of it is in sync.
    gated = not added and any(broker not in before.isr for broker in ahead)
    assert gated or after >= min(before.min_isr, in_sync, len(before.target))


RACKS = {broker: "abc"[broker % 3] for broker in ALL}


def test_a_swap_drops_what_is_not_alone_in_its_rack() -> None:
    """S4: brokers 1, 2 and 3 are in three racks, as are 5, 4 and 6, in another order."""
    now = replace(situation((1, 2, 3), (5, 4, 6)), racks=RACKS)
    assert [len({RACKS[broker] for broker in ahead}) for ahead in route(now)] == [3, 3, 3, 3]
    assert route(now) == ((5, 1, 2, 3), (5, 1, 3), (5, 4, 3), (5, 4, 6))
    assert route(replace(now, racks={})) == ((5, 1, 2, 3), (5, 2, 3), (5, 4, 3), (5, 4, 6))


@given(
    original=LISTS, target=LISTS, most=st.integers(1, 5), racks=st.lists(st.integers(0, 3), min_size=10, max_size=10)
)
@example((2, 4, 1, 5), (5, 3), 1, [0, 0, 1, 0, 0, 1, 0, 0, 0, 0])
def test_on_no_way_by_swaps_a_partition_is_in_fewer_racks_than_at_either_end(
    original: tuple[int, ...], target: tuple[int, ...], most: int, racks: list[int]
) -> None:
    known = {broker: str(rack) for broker, rack in enumerate(racks)}
    now = replace(situation(original, target, most), racks=known)
    least = min(len({known[broker] for broker in end}) for end in (original, target))
    for ahead in route(now):
        assert len({known[broker] for broker in ahead}) >= least
