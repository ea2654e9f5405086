"""The gates in front of every step."""

from typing import Any

import pytest

from drover.events.plans import Stepping
from drover.events.reassignments import Blocker
from drover.events.traits import Completion
from drover.facts import Move, PartitionFacts
from drover.reconcile.moves.next_calls import NextCall, ObserveAgain, SendStep, Wait
from drover.reconcile.moves.start import start
from drover.state.phase import Phase
from drover.state.reassignment import Step
from tests.reassignment.support import LIVE, context, reassignment, sight


def begun(seen: PartitionFacts, target: tuple[int, ...] = (4, 2, 1), **fields: Any) -> SendStep | Wait | ObserveAgain:
    about = reassignment(Phase.PENDING, step=None, target=target)
    return start(about, seen, context(**fields))


def blocker(found: NextCall) -> Blocker:
    assert isinstance(found, Wait)
    return found.block.why


def planned(found: NextCall) -> Step:
    assert isinstance(found, SendStep)
    return found.step


def test_with_every_gate_open_the_step_is_planned() -> None:
    assert planned(begun(sight())) == Step(1, True, (1, 2, 3), (4, 2, 1), 1)


def test_a_prepared_step_is_kept_as_it_is() -> None:
    about = reassignment(Phase.PREPARED)
    assert planned(start(about, sight(leader=2), context())) == about.step


def test_a_step_that_is_prepared_anew_keeps_the_leader_at_which_it_holds_room() -> None:
    """Else a broker that leads since then would send more copies than its limit (seed 40,000,087)."""
    prepared = Step(1, True, (1, 2, 3), (4, 5, 3), 1)
    about = reassignment(Phase.PREPARED, target=(4, 5, 3), step=prepared)
    found = planned(start(about, sight(leader=2), context(live=LIVE - {4}, max_replicas_per_step=2)))
    assert (found.adding, found.leader) == ((5,), 1)


@pytest.mark.parametrize("target", [(4, 5, 6), (1, 4, 5)], ids=["on-its-way", "last"])
def test_what_is_back_in_sync_need_not_go_with_a_prepared_step(target: tuple[int, ...]) -> None:
    """In ZooKeeper mode two that are out of sync go at once, and two come for them (seeds 1012244, 81014853)."""
    prepared = Step(1, target == (1, 4, 5), (1, 2, 3), (1, 4, 5), 1)
    about = reassignment(Phase.PREPARED, target=target, step=prepared)
    traits = {"completion": Completion.TARGET, "stepping": Stepping.GROW, "max_replicas_per_step": 1}
    assert planned(start(about, sight(isr=(1,)), context(**traits))) == prepared
    found = planned(start(about, sight(isr=(1, 2)), context(**traits)))
    assert (found.adding, found.replicas, found.leader) == ((4,), (1, 2, 4), 1)


def test_a_list_that_differs_is_doubted_and_then_named() -> None:
    seen = sight((1, 2, 6))
    assert begun(seen) == ObserveAgain()
    assert blocker(begun(seen, persisted=True)) is Blocker.UNMANAGED_CHANGE


def test_an_unmanaged_move_is_doubted_and_then_named() -> None:
    seen = sight((6, 1, 2, 3), (1, 2, 3), move=Move((6, 1, 2, 3), (6,), ()))
    assert begun(seen) == ObserveAgain()
    assert blocker(begun(seen, persisted=True)) is Blocker.UNMANAGED_CHANGE


@pytest.mark.parametrize(
    ("seen", "fields", "expected"),
    [
        (sight(leader=None), {"live": {1}}, Blocker.NO_LEADER),
        (sight(), {"live": {1, 2, 3}}, Blocker.DEAD_DESTINATION),
    ],
)
def test_each_closed_gate_is_named(seen: PartitionFacts, fields: dict[str, Any], expected: Blocker) -> None:
    assert blocker(begun(seen, **fields)) is expected


@pytest.mark.parametrize(
    ("target", "max_replicas_per_step", "expected"),
    [
        ((4, 2, 1), 1, (1, 2, 3, 4)),
        ((1, 4, 5), 1, (1, 2, 3, 4)),
        ((1, 4, 5), 2, (1, 2, 3, 4, 5)),
        ((1, 2, 3, 4), 1, (1, 2, 3, 4)),
    ],
)
def test_below_min_isr_replicas_are_only_added(
    target: tuple[int, ...], max_replicas_per_step: int, expected: tuple[int, ...]
) -> None:
    """Adding is the repair, at the end of the list: nothing is dropped, and no leader moves."""
    seen = sight(isr=(1,))
    step = planned(begun(seen, target, min_isr=2, live={1, 4, 5}, max_replicas_per_step=max_replicas_per_step))
    assert step == Step(1, target == expected, (1, 2, 3), expected, 1)


@pytest.mark.parametrize("target", [(1, 2), (2, 1, 3)])
def test_below_min_isr_nothing_is_dropped_and_no_leader_moves(target: tuple[int, ...]) -> None:
    assert blocker(begun(sight(isr=(1,)), target, min_isr=2)) is Blocker.BELOW_MIN_ISR


@pytest.mark.parametrize(
    ("target", "prepared", "listed", "expected", "final"),
    [
        ((1, 2, 3, 5, 4), (1, 2, 3, 4, 5), (), (1, 2, 3, 5, 4), True),
        ((4, 1, 2, 3), (1, 2, 3, 4), (), (1, 2, 3, 4), False),
        ((1, 2, 3, 4), (1, 2, 3, 4), (1,), (1, 2, 3, 4), True),
    ],
    ids=["order-of-what-is-added", "another-leader", "listed-since"],
)
def test_a_repair_that_was_prepared_under_another_list_of_brokers_goes_on_appending(
    target: tuple[int, ...],
    prepared: tuple[int, ...],
    listed: tuple[int, ...],
    expected: tuple[int, ...],
    *,
    final: bool,
) -> None:
    """The last step is the target, or what the list of brokers makes of it today (seed 81022356)."""
    about = reassignment(Phase.PREPARED, target=target, step=Step(1, True, (1, 2, 3), prepared, 1))
    where = context(live={1, 4, 5}, min_isr=2, max_replicas_per_step=2, listed=frozenset(listed))
    step = planned(start(about, sight(isr=(1,)), where))
    assert (step.replicas, step.final) == (expected, final)


def test_after_the_repair_what_is_left_over_is_dropped() -> None:
    """Also where min.insync.replicas asks for more than there will be: all that stays is in sync."""
    grown = reassignment(
        Phase.CONFIRMED, target=(1, 2, 4), current=(1, 2, 3, 4), step=Step(1, False, (1, 2, 3), (1, 2, 3, 4), 1)
    )
    for min_isr in (3, 4):
        found = start(grown, sight((1, 2, 3, 4), (1, 2, 4)), context(live={1, 2, 4}, min_isr=min_isr))
        assert planned(found) == Step(2, True, (1, 2, 3, 4), (1, 2, 4), 1)


def test_a_prepared_step_that_drops_is_cut_down_to_what_it_adds() -> None:
    prepared = reassignment(Phase.PREPARED)
    cut = planned(start(prepared, sight(isr=(1, 2)), context(min_isr=3)))
    assert cut == Step(1, False, (1, 2, 3), (1, 2, 3, 4), 1)
    assert planned(start(prepared, sight(), context(min_isr=3))) == prepared.step


def test_min_isr_never_asks_for_more_than_there_are_replicas() -> None:
    assert isinstance(begun(sight(), min_isr=5), SendStep)


def test_dead_destinations_come_last_and_then_block() -> None:
    found = begun(sight(), (5, 4, 1), live={1, 2, 3, 4})
    assert planned(found) == Step(1, False, (1, 2, 3), (1, 2, 3, 4), 1)
    grown = reassignment(Phase.CONFIRMED, target=(5, 4, 1), current=(1, 2, 3, 4), step=planned(found))
    later = start(grown, sight((1, 2, 3, 4)), context(live={1, 2, 3, 4}))
    assert blocker(later) is Blocker.DEAD_DESTINATION


def test_a_shrink_waits_here_rather_than_in_kafka() -> None:
    """Kafka 4.3.1 lists a shrink whose target is not all in sync, and waits (live fact)."""
    assert blocker(begun(sight(isr=(1, 3)), (1, 2))) is Blocker.REPLICAS_OUT_OF_SYNC
    assert isinstance(begun(sight(isr=(1, 2)), (1, 2)), SendStep)


def test_a_pure_reorder_needs_nobody_in_sync() -> None:
    assert isinstance(begun(sight(isr=(1,)), (3, 2, 1)), SendStep)


def test_a_step_waits_where_only_a_listed_broker_could_follow_the_leader() -> None:
    """X8; not where the others are dead, nor where a listed broker leads already."""
    about = reassignment(Phase.CONFIRMED, step=None, target=(2, 4, 3), original=(1, 2, 3), current=(1, 2, 3))
    seen = sight((1, 2, 3), isr=(1, 3))
    found = start(about, seen, context(listed={3, 4}))
    assert blocker(found) is Blocker.REPLICAS_OUT_OF_SYNC
    assert isinstance(found, Wait)
    assert found.block.detail.startswith("broker 4 should not lead")
    assert planned(start(about, sight((1, 2, 3)), context(listed={3, 4}))).replicas == (2, 4, 3)
    assert planned(start(about, seen, context(listed={3}))).replicas == (2, 4, 3)
    assert planned(start(about, seen, context(listed={1, 3, 4}))).replicas == (2, 4, 3)
    assert planned(start(about, seen, context(listed={3, 4}, live=LIVE - {2}))).replicas == (2, 4, 3)


def test_every_step_is_sent_in_the_order_of_its_day() -> None:
    """X8: also one that only adds, and one that leads back; what was prepared is ordered anew."""
    about = reassignment(Phase.PENDING, step=None, original=(1, 2, 3), target=(4, 5, 6))
    assert planned(start(about, sight(), context(listed={1}))).replicas == (2, 3, 4, 1)
    back = reassignment(
        Phase.CONFIRMED, step=None, original=(1, 2), target=(4, 5), current=(4, 2, 1), returning_to=(1, 2)
    )
    assert planned(start(back, sight((4, 2, 1)), context(listed={1}))).replicas == (2, 1)
    step = Step(1, False, (1, 2, 3), (1, 2, 3, 4), 1)
    prepared = reassignment(Phase.PREPARED, step=step, original=(1, 2, 3), target=(4, 5, 6))
    assert planned(start(prepared, sight(), context(listed={1}))).replicas == (2, 3, 4, 1)
