"""The one rule for what comes next: the same for the target, for a rollback and for a stop."""

import pytest

from drover.decide import rollback_guards
from drover.events.reassignments import Blocker, CancelMode, SkipReason
from drover.events.traits import Completion
from drover.facts import Move
from drover.reconcile.moves.next_calls import Arrived, GoBySteps, HoldOff, SendCancel, SendOrder, SendStep, Wait
from drover.reconcile.moves.route import next_call
from drover.state.phase import Phase, phase_of
from drover.state.reassignment import Block, Reassignment, Step
from tests.reassignment.support import context, reassignment, sight

ADDS = Step(1, False, (1, 2, 3), (1, 2, 3, 4), 1)
SEEN_ADDING = sight((1, 2, 3, 4), (1, 2, 3), move=Move((1, 2, 3, 4), (4,), ()))
DROPPED = Step(2, False, (2, 3, 4), (2, 3, 4, 5), 2)


def rolled_back(phase: Phase, step: Step = ADDS, current: tuple[int, ...] = (1, 2, 3)) -> Reassignment:
    return reassignment(
        phase, target=(4, 5, 6), original=(1, 2, 3), current=current, step=step, cancel_mode=CancelMode.ROLLBACK
    )


@pytest.mark.parametrize("phase", list(Phase))
def test_a_phase_is_a_call_at_a_stage(phase: Phase) -> None:
    assert phase_of(phase.call, phase.stage) is phase


def test_what_kafka_lists_is_cancelled_before_anything_else() -> None:
    assert next_call(rolled_back(Phase.ROLLING_BACK), SEEN_ADDING, context()) == SendCancel()


def test_a_guard_holds_a_cancel_off() -> None:
    seen = sight((1, 2, 3, 4), (4,), move=Move((1, 2, 3, 4), (4,), ()), leader=4)
    found = next_call(rolled_back(Phase.ROLLING_BACK), seen, context())
    assert found == HoldOff(SkipReason.NO_ORIGINAL_IN_SYNC)
    assert isinstance(next_call(rolled_back(Phase.RESTORING), seen, context()), Wait)


def test_without_copies_the_destination_is_sent_in_its_order() -> None:
    assert next_call(rolled_back(Phase.CANCELLING), sight((2, 3, 1)), context()) == SendOrder((1, 2, 3))
    assert next_call(rolled_back(Phase.CANCELLING), sight((1, 2, 3)), context()) == Arrived()


def test_with_copies_steps_lead_to_it() -> None:
    about = rolled_back(Phase.CANCELLING, DROPPED, (2, 3, 4))
    assert next_call(about, sight((2, 3, 4)), context()) == GoBySteps((1, 2, 3))
    assert next_call(about, sight((2, 3, 4)), context(failed={1})) == GoBySteps((2, 3, 4))


def test_steps_back_pass_the_gates_that_steps_there_pass() -> None:
    """The same rule plans them, and a dead broker is named in the same words."""
    back = reassignment(
        Phase.CONFIRMED, target=(4, 5, 6), original=(1, 2, 3), current=(2, 3, 4), step=DROPPED,
        cancel_mode=CancelMode.ROLLBACK, returning_to=(1, 2, 3),
    )  # fmt: skip
    assert next_call(back, sight((2, 3, 4)), context()) == SendStep(Step(3, False, (2, 3, 4), (2, 3, 4, 1), 1))
    found = next_call(back, sight((2, 3, 4)), context(live={2, 3, 4}))
    assert isinstance(found, Wait)
    assert found.block.why is Blocker.DEAD_DESTINATION


def test_a_copy_back_to_a_broker_that_is_gone_is_given_up() -> None:
    copies = Step(3, False, (2, 3, 4), (2, 3, 4, 1), 2)
    back = reassignment(
        Phase.COPYING, target=(4, 5, 6), original=(1, 2, 3), current=(2, 3, 4), step=copies,
        cancel_mode=CancelMode.ROLLBACK, returning_to=(1, 2, 3), block=Block(Blocker.DEAD_DESTINATION, "d", 1),
    )  # fmt: skip
    seen = sight((2, 3, 4, 1), (2, 3, 4), move=Move((2, 3, 4, 1), (1,), ()))
    assert next_call(back, seen, context(live={2, 3, 4})) is None
    assert next_call(back, seen, context(live={2, 3, 4}, failed={1})) == SendCancel()
    assert next_call(back, seen, context(live={2, 3, 4}, at_ms=600_001)) == SendCancel()


def test_a_copy_to_a_broker_that_is_gone_goes_on_while_nothing_could_lead_without_it() -> None:
    """R236-8: Kafka refuses a cancel that would need an unclean election, and refuses it again."""
    copies = Step(1, False, (1, 2, 3), (4, 1, 2, 3), 1)
    there = reassignment(Phase.COPYING, target=(4, 5, 1), original=(1, 2, 3), current=(1, 2, 3), step=copies)
    move = Move((4, 1, 2, 3), (4,), ())
    about = context(live={1, 2, 3, 5}, failed={4})
    assert next_call(there, sight((4, 1, 2, 3), (1, 2), move=move), about) == SendCancel()
    assert next_call(there, sight((4, 1, 2, 3), (), move=move, leader=None), about) is None


def test_with_too_few_in_sync_what_is_gone_stays_in_the_list() -> None:
    """S2: seed 20,000,649 went from three replicas to two."""
    about = rolled_back(Phase.CANCELLING, DROPPED, (4, 1, 2))
    assert next_call(about, sight((4, 1, 2), (4, 1)), context(failed={2, 3})) == GoBySteps((1, 2, 4))
    back = reassignment(
        Phase.CONFIRMED, target=(4, 5, 6), original=(1, 2, 3), current=(4, 1, 2), step=DROPPED,
        cancel_mode=CancelMode.ROLLBACK, returning_to=(1, 2, 4),
    )  # fmt: skip
    found = next_call(back, sight((4, 1, 2), (4, 1)), context(failed={2, 3}))
    assert found == SendStep(Step(3, True, (4, 1, 2), (1, 2, 4), 1))


def test_an_unregistered_original_is_in_no_list_that_is_sent() -> None:
    gone = context(live={2, 3, 4}, unregistered=frozenset({1}))
    about = rolled_back(Phase.CANCELLING)
    assert next_call(about, sight((2, 3, 1), (2, 3), leader=2), gone) == Arrived((1,))
    assert next_call(about, sight((1, 2, 3), (2, 3), leader=2), gone) == Arrived((1,))
    grown = rolled_back(Phase.ROLLING_BACK, ADDS, (1, 2, 3, 4))
    seen = sight((1, 2, 3, 4), (2, 3, 4), leader=2)
    block = rollback_guards.restore_block(grown, seen, gone.guard)
    assert block is not None
    assert next_call(grown, seen, gone) == SendOrder((2, 3, 4))
    too_few = sight((1, 2, 3, 4), (2, 3), leader=2)
    assert next_call(grown, too_few, gone) == Arrived((1,))


def test_steps_back_leave_out_what_is_unregistered_even_where_too_few_are_in_sync() -> None:
    about = rolled_back(Phase.CANCELLING, DROPPED, (2, 3, 4))
    gone = context(live={2, 3, 5}, unregistered=frozenset({1, 4}))
    assert next_call(about, sight((2, 3, 4), (2, 3), leader=2), gone) == GoBySteps((2, 3))


@pytest.mark.parametrize(
    ("completion", "expected"), [(Completion.TARGET, SendCancel()), (Completion.ADDED_UNLESS_SHRINKING, None)]
)
def test_a_step_that_waits_for_an_unregistered_replica_on_its_way_out_is_cancelled(
    completion: Completion, expected: SendCancel | None
) -> None:
    """3.8 to 4.2 wait for the whole target of a step (KAFKA-15665); the next step leaves that replica out."""
    about = reassignment(Phase.COPYING, target=(4, 5, 2), step=ADDS)
    seen = sight((1, 2, 3, 4), (1, 2), move=Move((1, 2, 3, 4), (4,), ()))
    gone = context(live={1, 2, 4, 5}, completion=completion, unregistered=frozenset({3}))
    assert next_call(about, seen, gone) == expected
