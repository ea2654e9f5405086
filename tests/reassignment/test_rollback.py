"""Stop beside rollback: where the way back ends, and what changes when the one becomes the other."""

from typing import Any

import pytest
from msgspec.structs import replace

from drover.decide.rollback_guards import restore_block, skip_reason
from drover.decide.verdict import NOTHING, UNCONFIRMED
from drover.events.reassignments import (
    Blocker,
    Call,
    CallAccepted,
    CallIntended,
    CallLapsed,
    CancelMode,
    ReassignmentBlocked,
    ReassignmentCompleted,
    ReassignmentFailed,
    ReassignmentRolledBack,
    ReassignmentStopped,
    ReturnBegun,
    RollbackRequested,
    RollbackSkipped,
    SkipReason,
    StepConfirmed,
)
from drover.facts import CallResult, Move, PartitionFacts
from drover.reconcile.moves.calls import answered
from drover.reconcile.moves.reconcile import reconcile
from drover.state.phase import Phase
from drover.state.reassignment import Block, Reassignment, Step
from tests.reassignment.support import context, reassignment, sight, tags

STOP = CancelMode.STOP
# E2 of the page: [1,2,3] to [3,4,5]; 4 is in and confirmed, 5 is being copied.
SECOND = Step(2, False, (1, 2, 3, 4), (1, 2, 3, 4, 5), 1)
FIFTH = Move((1, 2, 3, 4, 5), (5,), ())


def stopping(phase: Phase, **fields: Any) -> Reassignment:
    values = {"target": (3, 4, 5), "current": (1, 2, 3, 4), "step": SECOND, "cancel_mode": STOP}
    return reassignment(phase, **(values | fields))


def only(about: Reassignment, seen: PartitionFacts, **fields: Any) -> Any:
    (event,) = reconcile(about, seen, context(**fields)).events
    return event


def test_a_blocked_way_back_records_once_that_no_call_is_under_way() -> None:
    """A list of unknown outcome may still appear for a while: that alone is no reason to record it again."""
    sent = (1, 2, 3, 4)
    about = reassignment(
        Phase.ROLLING_BACK, step=Step(1, False, (1, 2, 3), sent, 1), cancel_mode=CancelMode.ROLLBACK,
        unresolved_targets=(sent,),
    )  # fmt: skip
    seen = sight(sent, (1, 2, 4))
    settled, named = reconcile(about, seen, context(persisted=True)).events
    assert settled == CallAccepted(cluster="local", topic="orders", partition=0, call=Call.CANCEL, adopted=True)
    assert isinstance(named, ReassignmentBlocked)
    recorded = replace(about, is_settled=True, block=Block(named.why, named.detail, 1))
    assert reconcile(recorded, seen, context(persisted=True)) == NOTHING


# -- stop


def test_stop_cancels_the_running_step_only() -> None:
    """TV-214, R455-9: a null-cancel, never a re-target."""
    event = only(stopping(Phase.ROLLING_BACK), sight(FIFTH.replicas, (1, 2, 3, 4), move=FIFTH))
    assert isinstance(event, CallIntended)
    assert (event.call, event.replicas) == (Call.CANCEL, None)


def test_stop_ends_at_what_the_confirmed_steps_have_made() -> None:
    """TV-214, R455-10 E2: [1,2,3,4]."""
    event = only(stopping(Phase.CANCELLING), sight((1, 2, 3, 4)))
    assert isinstance(event, ReassignmentStopped)
    assert (event.replicas, event.started) == ((1, 2, 3, 4), True)


def test_a_step_that_was_done_before_the_cancel_is_kept() -> None:
    assert reconcile(stopping(Phase.CANCELLING), sight((1, 2, 3, 4, 5)), context()) == UNCONFIRMED
    events = reconcile(stopping(Phase.CANCELLING), sight((1, 2, 3, 4, 5)), context(persisted=True)).events
    assert [type(event) for event in events] == [StepConfirmed, ReassignmentStopped]


def test_a_step_whose_replica_does_not_show_in_the_isr_is_looked_at_once_more() -> None:
    assert reconcile(stopping(Phase.CANCELLING), sight((1, 2, 3, 4, 5), (1, 2, 3, 4)), context()) == UNCONFIRMED


def test_the_last_step_done_before_the_cancel_is_completion() -> None:
    """TV-213: nothing is left to be stopped once the target is reached."""
    final = Step(3, True, (1, 2, 3, 4, 5), (3, 4, 5), 1)
    event = only(stopping(Phase.CANCELLING, current=(1, 2, 3, 4, 5), step=final), sight((3, 4, 5)), persisted=True)
    assert isinstance(event, ReassignmentCompleted)
    assert event.before_cancel


def test_a_stop_of_the_first_step_restores_the_order_that_kafkas_cancel_loses() -> None:
    step = Step(1, True, (1, 2, 3), (4, 2, 1), 1)
    about = reassignment(Phase.CANCELLING, cancel_mode=STOP, step=step)
    event = only(about, sight((2, 1, 3)))
    assert isinstance(event, CallIntended)
    assert (event.call, event.replicas) == (Call.RESTORE, (1, 2, 3))
    done = only(reassignment(Phase.RESTORING, cancel_mode=STOP, restoring=(1, 2, 3)), sight((1, 2, 3)))
    assert isinstance(done, ReassignmentStopped)


def test_a_stop_between_two_steps_ends_at_once() -> None:
    done = Step(1, False, (1, 2, 3), (1, 2, 3, 4), 1)
    event = only(stopping(Phase.ROLLING_BACK, step=done), sight((1, 2, 3, 4)))
    assert isinstance(event, ReassignmentStopped)


def test_a_stop_does_not_take_for_its_own_what_has_lost_a_confirmed_replica() -> None:
    assert reconcile(stopping(Phase.CANCELLING), sight((1, 2, 3)), context()) == UNCONFIRMED
    event = only(stopping(Phase.CANCELLING), sight((1, 2, 3)), persisted=True)
    assert isinstance(event, ReassignmentFailed)


def test_the_guards_of_a_stop_look_at_the_list_it_ends_at() -> None:
    """R236-8 with the confirmed list in the place of the originals: 4 counts among those that stay."""
    seen = sight(FIFTH.replicas, (4, 5), move=FIFTH)
    assert skip_reason(stopping(Phase.ROLLING_BACK), seen, context(min_isr=1).guard) is None
    back = stopping(Phase.ROLLING_BACK, cancel_mode=CancelMode.ROLLBACK)
    assert skip_reason(back, seen, context(min_isr=1).guard) is SkipReason.NO_ORIGINAL_IN_SYNC
    assert restore_block(stopping(Phase.ROLLING_BACK), sight((2, 1, 3, 4), (4,)), context().guard) is None


# -- a stop that becomes a rollback


def test_a_stop_that_became_a_rollback_goes_on_to_the_original_after_its_restore() -> None:
    about = stopping(Phase.RESTORING, cancel_mode=CancelMode.ROLLBACK, restoring=(1, 2, 3, 4))
    event = only(about, sight((1, 2, 3, 4)))
    assert isinstance(event, CallIntended)
    assert (event.call, event.replicas) == (Call.RESTORE, (1, 2, 3))


def test_a_restore_that_is_held_back_is_cancelled_when_it_leads_elsewhere_by_now() -> None:
    move = Move((1, 2, 3, 4, 5), (), (5,))
    seen = sight(move.replicas, (1, 2, 3, 5), move=move)
    about = stopping(Phase.RESTORING, cancel_mode=CancelMode.ROLLBACK, restoring=(1, 2, 3, 4))
    event = only(about, seen)
    assert isinstance(event, CallIntended)
    assert event.call is Call.CANCEL
    later = only(stopping(Phase.ROLLING_BACK, cancel_mode=CancelMode.ROLLBACK, restoring=(1, 2, 3, 4)), seen)
    assert isinstance(later, CallIntended)


# -- a broker in both lists

ODD = Move((1, 2, 3, 4), (4,), (4,))
ODD_SEEN = sight(ODD.replicas, (1, 2, 3), move=ODD)
MENDING = [Phase.COPYING, Phase.CONFIRMED, Phase.ROLLING_BACK, Phase.CANCELLING, Phase.RESTORING]


@pytest.mark.parametrize("phase", MENDING)
@pytest.mark.parametrize("mode", [None, CancelMode.ROLLBACK, STOP])
def test_a_move_of_ours_that_never_ends_is_named_and_cancelled_once_it_has_persisted(
    phase: Phase, mode: CancelMode | None
) -> None:
    about = reassignment(phase, cancel_mode=mode)
    assert reconcile(about, ODD_SEEN, context()) == UNCONFIRMED
    *before, last = reconcile(about, ODD_SEEN, context(persisted=True)).events
    assert isinstance(last, CallIntended)
    assert last.call is Call.CANCEL
    asked = [event for event in before if isinstance(event, RollbackRequested)]
    assert [event.by for event in asked] == (["drover"] if mode is None else [])
    (named,) = [event for event in before if isinstance(event, ReassignmentBlocked)]
    assert named.why is Blocker.BROKER_IN_BOTH_LISTS
    assert "4" in named.detail


@pytest.mark.parametrize("phase", MENDING)
def test_the_second_time_it_is_only_shown_with_a_way_out(phase: Phase) -> None:
    verdict = reconcile(reassignment(phase, repaired=True), ODD_SEEN, context(persisted=True))
    (event,) = verdict.events
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is Blocker.BROKER_IN_BOTH_LISTS
    assert "drover repair" in event.detail
    assert verdict.unconfirmed


def test_a_cancel_of_it_that_had_no_effect_is_sent_again() -> None:
    lost = reassignment(Phase.CANCELLING, cancel_mode=CancelMode.ROLLBACK, repaired=True, outcome_unknown=True)
    assert isinstance(only(lost, ODD_SEEN, persisted=True), CallLapsed)
    lapsed = reassignment(Phase.ROLLING_BACK, cancel_mode=CancelMode.ROLLBACK, repaired=True, attempts=1)
    assert isinstance(only(lapsed, ODD_SEEN, persisted=True), CallIntended)


def test_it_waits_while_the_cancel_would_harm() -> None:
    to_newcomer = Move((1, 2, 3, 5, 4), (5, 4), (1, 2, 3, 4))
    seen = sight(to_newcomer.replicas, (5,), move=to_newcomer, leader=5)
    event = only(reassignment(Phase.COPYING), seen, persisted=True)
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is Blocker.ORIGINALS_OUT_OF_SYNC


@pytest.mark.parametrize("phase", [Phase.COPYING, Phase.ROLLING_BACK])
def test_a_broker_in_both_lists_is_no_reason_to_cancel_while_the_target_is_not_in_sync(phase: Phase) -> None:
    """Seen live on 4.2.0: the pair appeared, and ended by itself when the original returned."""
    about = reassignment(phase, cancel_mode=CancelMode.ROLLBACK if phase is Phase.ROLLING_BACK else None)
    seen = sight(ODD.replicas, (1, 2), move=ODD)
    assert not seen.is_endless
    assert Blocker.BROKER_IN_BOTH_LISTS not in {
        event.why
        for event in reconcile(about, seen, context(persisted=True)).events
        if isinstance(event, ReassignmentBlocked)
    }


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.PREPARED])
def test_what_was_there_before_the_first_call_is_somebody_elses(phase: Phase) -> None:
    assert reconcile(reassignment(phase), ODD_SEEN, context(persisted=True)) == NOTHING


def test_what_was_adopted_waits_where_another_would_go_on() -> None:
    """R236-8 skips a rollback so that the move goes on; one that was taken over to be cancelled has nowhere to go."""
    about = reassignment(
        Phase.ROLLING_BACK,
        target=(1, 2, 3),
        step=Step(1, False, (1, 2, 3), (4, 2, 1), None),
        cancel_mode=CancelMode.ROLLBACK,
    )
    move = Move((4, 2, 1, 3), (4,), (3,))
    event = only(about, sight(move.replicas, (4,), move=move, leader=4))
    assert isinstance(event, ReassignmentBlocked)
    refused = answered(
        reassignment(Phase.CANCEL_INTENDED, target=(1, 2, 3), cancel_mode=CancelMode.ROLLBACK), CallResult(39), "local"
    )
    assert tags(refused) == ["call-rejected", "reassignment-blocked"]
    other = answered(reassignment(Phase.CANCEL_INTENDED, cancel_mode=CancelMode.ROLLBACK), CallResult(39), "local")
    assert isinstance(other[1], RollbackSkipped)
    assert not isinstance(other[1], ReassignmentRolledBack)


def test_a_list_that_confirmed_steps_have_made_is_no_rollback_that_gave_up() -> None:
    """The step that dropped 2 had a lost outcome, so that its list is among the unresolved ones."""
    dropped = Step(2, False, (4, 1, 2, 3), (4, 1, 3), 1)
    about = reassignment(
        Phase.ROLLING_BACK, original=(1, 2, 3), target=(4, 5, 6), current=(4, 1, 3), step=dropped,
        cancel_mode=CancelMode.ROLLBACK, unresolved_targets=((4, 1, 3),),
    )  # fmt: skip
    event = only(about, sight((4, 1, 3)))
    assert isinstance(event, ReturnBegun)
    assert event.destination == (1, 2, 3)
