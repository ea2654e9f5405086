"""What the end of an alter call means, for each call and each class of Kafka's codes."""

import pytest

from drover.events.reassignments import (
    Blocker,
    Call,
    CallOutcomeLost,
    CallRejected,
    CancelMode,
    FailureReason,
    ReassignmentBlocked,
    ReassignmentFailed,
    RollbackSkipped,
)
from drover.facts import CallResult
from drover.fold.moves import evolve
from drover.reconcile.moves import calls
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment
from tests.reassignment.support import CLUSTER, reassignment, tags

OPEN = {Phase.INTENDED: Call.STEP, Phase.CANCEL_INTENDED: Call.CANCEL, Phase.RESTORE_INTENDED: Call.RESTORE}
RUNNING = {Call.STEP: Phase.COPYING, Call.CANCEL: Phase.CANCELLING, Call.RESTORE: Phase.RESTORING}


def after(about: Reassignment, code: int) -> Reassignment | None:
    """Answer with a code and fold what follows."""
    left: Reassignment | None = about
    for event in calls.answered(about, CallResult(code, "words"), CLUSTER):
        assert left is not None
        left = evolve(left, event, 9000)
    return left


@pytest.mark.parametrize("phase", OPEN)
def test_success_lets_the_call_run(phase: Phase) -> None:
    found = after(reassignment(phase), 0)
    assert found is not None
    assert found.phase is RUNNING[OPEN[phase]]
    assert not found.outcome_unknown


@pytest.mark.parametrize("phase", OPEN)
@pytest.mark.parametrize("code", [-1, 7, 41, 60, 999])
def test_an_answer_that_judges_nothing_leaves_the_outcome_unknown(phase: Phase, code: int) -> None:
    (event,) = calls.answered(reassignment(phase), CallResult(code), CLUSTER)
    assert isinstance(event, CallOutcomeLost)
    found = after(reassignment(phase), code)
    assert found is not None
    assert found.outcome_unknown
    assert found.phase is RUNNING[OPEN[phase]]


def test_85_on_a_cancel_means_that_nothing_moves_any_more() -> None:
    found = after(reassignment(Phase.CANCEL_INTENDED, cancel_mode=CancelMode.ROLLBACK), 85)
    assert found is not None
    assert (found.phase, found.attempts) == (Phase.ROLLING_BACK, 1)


@pytest.mark.parametrize("phase", [Phase.INTENDED, Phase.RESTORE_INTENDED])
def test_85_on_anything_else_is_unknown(phase: Phase) -> None:
    assert tags(calls.answered(reassignment(phase), CallResult(85), CLUSTER)) == ["call-outcome-lost"]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (3, FailureReason.PARTITION_GONE),
        (38, FailureReason.REFUSED_BY_KAFKA),
        (39, FailureReason.REFUSED_BY_KAFKA),
    ],
)
def test_a_step_that_kafka_refuses_for_good_ends_it(code: int, why: FailureReason) -> None:
    rejected, failed = calls.answered(reassignment(Phase.INTENDED), CallResult(code, "words"), CLUSTER)
    assert isinstance(rejected, CallRejected)
    assert (rejected.code, rejected.message) == (code, "words")
    assert isinstance(failed, ReassignmentFailed)
    assert failed.why is why


@pytest.mark.parametrize("code", [3, 38, 39])
def test_a_refused_step_of_which_a_rollback_is_asked_goes_back(code: int) -> None:
    found = after(reassignment(Phase.INTENDED, cancel_mode=CancelMode.ROLLBACK), code)
    assert found is not None
    assert found.phase is Phase.ROLLING_BACK


@pytest.mark.parametrize(
    ("phase", "falls_back_to"),
    [
        (Phase.INTENDED, Phase.PREPARED),
        (Phase.CANCEL_INTENDED, Phase.ROLLING_BACK),
        (Phase.RESTORE_INTENDED, Phase.CANCELLING),
    ],
)
@pytest.mark.parametrize("code", [29, 31, 44])
def test_a_refusal_that_can_be_mended_blocks_and_is_tried_again(phase: Phase, falls_back_to: Phase, code: int) -> None:
    blocked = calls.answered(reassignment(phase), CallResult(code), CLUSTER)[-1]
    assert isinstance(blocked, ReassignmentBlocked)
    assert blocked.why is Blocker.CALL_REJECTED
    found = after(reassignment(phase), code)
    assert found is not None
    assert (found.phase, found.attempts) == (falls_back_to, 1)


def test_a_cancel_that_would_be_an_unclean_election_is_skipped() -> None:
    """R236-8 row 5: Kafka's own verdict; the move goes on."""
    about = reassignment(Phase.CANCEL_INTENDED, cancel_mode=CancelMode.ROLLBACK)
    assert isinstance(calls.answered(about, CallResult(39), CLUSTER)[-1], RollbackSkipped)
    found = after(about, 39)
    assert found is not None
    assert found.phase is Phase.COPYING
    assert not found.is_cancelled


@pytest.mark.parametrize("phase", OPEN)
def test_a_call_that_was_never_sent_may_be_intended_again(phase: Phase) -> None:
    event = calls.never_sent(reassignment(phase), "no route", CLUSTER)[0]
    found = evolve(reassignment(phase), event, 9000)
    assert found is not None
    assert found.attempts == 1
    assert not found.call_open


@pytest.mark.parametrize("phase", OPEN)
def test_a_lost_call_is_only_looked_after(phase: Phase) -> None:
    (event,) = calls.lost(reassignment(phase), "no answer", CLUSTER)
    found = evolve(reassignment(phase), event, 9000)
    assert found is not None
    assert found.outcome_unknown
    assert found.attempts == 0


NOT_REGISTERED = CallResult(39, "The manual partition assignment includes broker 3, but no such broker is registered.")


def test_a_step_that_names_an_unregistered_broker_on_its_way_out_is_planned_again() -> None:
    """The target does without it: nothing fails."""
    rejected, *others = calls.answered(reassignment(Phase.INTENDED), NOT_REGISTERED, CLUSTER)
    assert isinstance(rejected, CallRejected)
    assert (rejected.unregistered, others) == (3, [])
    found = evolve(reassignment(Phase.INTENDED), rejected, 9000)
    assert found is not None
    assert (found.phase, found.unregistered) == (Phase.PREPARED, (3,))


def test_a_step_that_names_an_unregistered_broker_of_its_target_fails() -> None:
    about = reassignment(Phase.INTENDED, target=(4, 2, 3))
    assert tags(calls.answered(about, NOT_REGISTERED, CLUSTER)) == ["call-rejected", "reassignment-failed"]


def test_an_order_that_names_an_unregistered_broker_is_not_sent_again() -> None:
    about = reassignment(Phase.RESTORE_INTENDED, cancel_mode=CancelMode.ROLLBACK)
    assert tags(calls.answered(about, NOT_REGISTERED, CLUSTER)) == ["call-rejected", "call-accepted"]


@pytest.mark.parametrize("code", [38, 44])
def test_only_the_code_of_an_invalid_list_says_that_a_broker_is_unregistered(code: int) -> None:
    assert calls.unregistered_broker(CallResult(code, NOT_REGISTERED.message)) is None
    assert calls.unregistered_broker(CallResult(39, None)) is None
    assert calls.unregistered_broker(CallResult(39, "includes the broker 2 more than once.")) is None
