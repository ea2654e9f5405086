"""The fold of reassignments: one event changes one of them; total on every log that decisions can write."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from drover.events import reassignments
from drover.events.base import Event
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, Call, CancelMode
from drover.events.records import ReassignmentEvent
from drover.fold.plans import ENDINGS, Ending, end_move, start_move, stop_waiting, wait
from drover.state.moves import ReassignmentState
from drover.state.phase import Phase, Stage, phase_of
from drover.state.reassignment import LATE_MS, Asked, Block, ExpiredCalls, Reassignment, Replacement, Step

# Bound here, because looking up an enum's member takes longer than the rest of some of these functions.
_STEP, _CANCEL = Call.STEP, Call.CANCEL
_PENDING, _ROLLING_BACK, _PREPARED = Phase.PENDING, Phase.ROLLING_BACK, Phase.PREPARED
_FAILED = reassignments.ReassignmentFailed
_IN_BOTH_LISTS = Blocker.BROKER_IN_BOTH_LISTS

_INTENDED = {call: phase_of(call, Stage.INTENDED) for call in Call}
_RUNNING = {call: phase_of(call, Stage.RUNNING) for call in Call}
# The phase after a call that did not take effect; the reassignment keeps its slot.
_BEFORE = {Call.STEP: Phase.PREPARED, Call.CANCEL: Phase.ROLLING_BACK, Call.RESTORE: Phase.CANCELLING}


# Every decoded event has its own copies of names and lists. The state shares equal ones: an active reassignment takes a
# quarter less memory, and a replay, which mostly waits for memory, a tenth less time.
def _shared_key(event: reassignments.ReassignmentCreated | reassignments.ReassignmentAdopted) -> TopicPartition:
    return TopicPartition(sys.intern(event.topic), event.partition)


def _apply_created(state: ReassignmentState, event: reassignments.ReassignmentCreated, at_ms: int) -> None:
    state.put(
        Reassignment(
            key=_shared_key(event),
            topic_id=sys.intern(event.topic_id),
            plan=state.plans[event.plan].name,
            number=state.next_number,
            original=event.original,
            target=event.target,
            created_ms=at_ms,
            phase=_PENDING,
            since_ms=at_ms,
            current=event.original if event.current is None else event.current,
        )
    )
    state.next_number += 1
    start_move(state, event.plan)


def _apply_adopted(state: ReassignmentState, event: reassignments.ReassignmentAdopted, at_ms: int) -> None:
    state.put(
        Reassignment(
            key=_shared_key(event),
            topic_id=sys.intern(event.topic_id),
            plan=state.plans[event.plan].name,
            number=state.next_number,
            original=event.original,
            target=event.original,
            created_ms=at_ms,
            phase=_ROLLING_BACK,
            since_ms=at_ms,
            current=event.expected,
            step=Step(1, False, event.expected, event.replicas, None),
            cancel_mode=CancelMode.ROLLBACK,
        )
    )
    state.next_number += 1
    start_move(state, event.plan)


def _apply_replaced(state: ReassignmentState, event: reassignments.TargetReplaced, at_ms: int) -> None:
    before = state.reassignments[event.key]
    if before.replacement is not None:
        stop_waiting(state, before.replacement.plan, at_ms)
    wait(state, event.plan)
    state.change(before, replace(before, replacement=Replacement(event.plan, event.target)))


def _apply_withdrawn(state: ReassignmentState, event: reassignments.ReplacementWithdrawn, at_ms: int) -> None:
    before = state.reassignments[event.key]
    assert before.replacement is not None, f"{event.key} has no other target waiting"
    stop_waiting(state, before.replacement.plan, at_ms, withdrawn=True)
    state.change(before, replace(before, replacement=None))


def _apply_late(state: ReassignmentState, event: reassignments.LateChangeFound, at_ms: int) -> None:
    """Forget a late effect, which is corrected only once; a second occurrence is not Drover's."""
    state.expired_calls.pop(event.key, None)
    before = state.reassignments.get(event.key)
    if before is not None:
        state.change(before, replace(before, unresolved_targets=(), since_ms=at_ms))


def _apply_ending(state: ReassignmentState, event: Ending, at_ms: int) -> None:
    """Remove a reassignment: count its end, and remember calls of unknown outcome, which may still take effect."""
    before = state.take(event.topic, event.partition)
    end_move(state, before.plan, event, at_ms)
    if before.step is not None and type(event) is not _FAILED:
        state.leave_list(before.key, event.replicas, at_ms)
    if before.replacement is not None:
        # The waiting target no longer waits; the next event says whether it is accepted.
        stop_waiting(state, before.replacement.plan, at_ms)
    if state.expired_calls or before.unresolved_targets:
        _remember(state, before, event, at_ms)


def _remember(state: ReassignmentState, before: Reassignment, event: Ending, at_ms: int) -> None:
    if state.expired_calls:
        horizon_ms = at_ms - LATE_MS
        state.expired_calls = {key: calls for key, calls in state.expired_calls.items() if calls.ended_ms > horizon_ms}
    # Calls of an earlier reassignment may still take effect, except those whose result this one has reached.
    earlier = state.expired_calls.pop(before.key, None)
    earlier_lists = () if earlier is None or earlier.topic_id != before.topic_id else earlier.sent
    lists = dict.fromkeys((*earlier_lists, *before.unresolved_targets))
    sent = tuple(replicas for replicas in lists if replicas != event.replicas)
    if sent:
        state.expired_calls[before.key] = ExpiredCalls(before.topic_id, before.plan, sent, event.replicas, at_ms)


def evolve(before: Reassignment, event: ReassignmentEvent, at_ms: int) -> Reassignment | None:
    """Fold one event into one reassignment; None when it has ended.

    A table and not a match, because a replay spends its time here; a test compares it with the union of events.
    """
    evolving = EVOLVING.get(type(event))
    if evolving is not None:
        return evolving(before, event, at_ms)
    assert type(event) in ENDINGS, f"{before.key}: {type(event).__name__} cannot follow {before.phase}"
    return None


def _prepared(before: Reassignment, event: reassignments.StepPrepared, at_ms: int) -> Reassignment:
    step = _step(before, event, event.replicas)
    return replace(before, phase=_PREPARED, step=step, since_ms=at_ms, block=None)


def _step(
    before: Reassignment, event: reassignments.StepPrepared | reassignments.CallIntended, replicas: tuple[int, ...]
) -> Step:
    leader = None if event.leader is None or event.leader < 0 else event.leader
    # Usually equal to lists that the reassignment already holds; see _shared_key.
    expected = before.current if event.expected == before.current else event.expected
    replicas = before.target if replicas == before.target else replicas
    return Step(event.step, event.final, expected, replicas, leader, event.copy_bytes)


def _postponed(before: Reassignment, event: reassignments.StepPostponed, at_ms: int) -> Reassignment:
    # With a call that may still take effect, the reassignment is not as it was before its first step.
    is_untouched = event.step == 1 and before.returning_to is None and not before.unresolved_targets
    if is_untouched:
        return replace(before, phase=_PENDING, step=None, since_ms=at_ms)
    step = Step(event.step - 1, False, before.current, before.current, None)
    return replace(before, phase=Phase.CONFIRMED, step=step, since_ms=at_ms)


def _intended(before: Reassignment, event: reassignments.CallIntended, at_ms: int) -> Reassignment:
    step = before.step
    if event.call is _STEP:
        assert event.replicas is not None, "a step sends a list"
        step = _step(before, event, event.replicas)
    # The cancel may be of the restore under way.
    restoring = before.restoring if event.call is _CANCEL else None if event.call is _STEP else event.replicas
    phase = _INTENDED[event.call]
    return replace(
        before, phase=phase, step=step, since_ms=at_ms, outcome_unknown=False, block=None, restoring=restoring
    )


def _accepted(before: Reassignment, event: reassignments.CallAccepted, at_ms: int) -> Reassignment:
    if event.call is _CANCEL and event.adopted:
        # An adopted cancel was not answered: the phase, attempts and block stay as they are.
        return replace(before, since_ms=at_ms, outcome_unknown=False, is_settled=True)
    phase = _RUNNING[event.call] if before.cancel_mode is None else _accepted_phase(before, event.call)
    restoring = None if event.call is _STEP else before.restoring
    is_settled = event.call is _CANCEL and before.is_settled
    return replace(
        before,
        phase=phase,
        since_ms=at_ms,
        outcome_unknown=False,
        attempts=0,
        block=None,
        restoring=restoring,
        is_settled=is_settled,
    )


def _outcome_lost(before: Reassignment, event: reassignments.CallOutcomeLost, at_ms: int) -> Reassignment:
    phase = _accepted_phase(before, event.call)
    if event.call is _CANCEL:
        return replace(before, phase=phase, since_ms=at_ms, outcome_unknown=True)
    sent = before.restoring if before.step is None or event.call is not _STEP else before.step.replicas
    lists = before.unresolved_targets
    if sent is not None and sent not in lists:
        lists = (*lists, sent)
    return replace(
        before, phase=phase, since_ms=at_ms, outcome_unknown=True, unresolved_targets=lists, is_settled=False
    )


def _not_taken(
    before: Reassignment, event: reassignments.CallLapsed | reassignments.CallRejected, at_ms: int
) -> Reassignment:
    # A rollback that was asked for while the step's call was open begins as soon as that call has ended.
    waits = event.call is _STEP and before.awaits_cancel
    return replace(
        before,
        phase=_ROLLING_BACK if waits else _BEFORE[event.call],
        since_ms=at_ms,
        outcome_unknown=False,
        attempts=before.attempts + 1,
    )


def _rejected(before: Reassignment, event: reassignments.CallRejected, at_ms: int) -> Reassignment:
    after = _not_taken(before, event, at_ms)
    if event.unregistered is None or event.unregistered in before.unregistered:
        return after
    return replace(after, unregistered=(*before.unregistered, event.unregistered))


def _confirmed(before: Reassignment, event: reassignments.StepConfirmed, at_ms: int) -> Reassignment:
    return replace(
        before,
        phase=_ROLLING_BACK if before.awaits_cancel else Phase.CONFIRMED,
        since_ms=at_ms,
        current=event.replicas,
        bytes_copied=before.bytes_copied + event.bytes_copied,
        bytes_unknown=before.bytes_unknown or event.bytes_unknown,
        outcome_unknown=False,
        attempts=0,
        block=None,
    )


def _rollback_requested(before: Reassignment, event: reassignments.RollbackRequested, at_ms: int) -> Reassignment:
    return _cancelled(before, event, CancelMode.ROLLBACK, at_ms)


def _stop_requested(before: Reassignment, event: reassignments.StopRequested, at_ms: int) -> Reassignment:
    return _cancelled(before, event, CancelMode.STOP, at_ms)


def _cancelled(
    before: Reassignment,
    event: reassignments.RollbackRequested | reassignments.StopRequested,
    mode: CancelMode,
    at_ms: int,
) -> Reassignment:
    asked = before.asked if event.again else None
    if event.until_withdrawn and asked is None:
        asked = Asked(mode, event.by, event.reason, at_ms)
    phase = before.phase if before.call_open else _ROLLING_BACK
    return replace(
        before,
        cancel_mode=mode,
        phase=phase,
        since_ms=at_ms,
        block=None,
        repaired=before.repaired and event.again,
        asked=asked,
        deferred_by=None,
        returning_to=None,
    )


def _rollback_skipped(before: Reassignment, event: reassignments.RollbackSkipped, at_ms: int) -> Reassignment:
    is_between = before.step is None or before.current == before.step.replicas
    phase = Phase.CONFIRMED if is_between else Phase.COPYING
    deferred_by = None if before.asked is None else event.why
    return replace(before, phase=phase, cancel_mode=None, since_ms=at_ms, block=None, deferred_by=deferred_by)


def _return_begun(before: Reassignment, event: reassignments.ReturnBegun, at_ms: int) -> Reassignment:
    # As after a step: the next one starts from this list, and until then nothing is copied.
    number = 0 if before.step is None else before.step.number
    return replace(
        before,
        phase=Phase.CONFIRMED,
        since_ms=at_ms,
        current=event.replicas,
        step=Step(number, False, event.replicas, event.replicas, None),
        outcome_unknown=False,
        attempts=0,
        block=None,
        returning_to=event.destination,
    )


def _taken_back(before: Reassignment, event: reassignments.StepTakenBack, at_ms: int) -> Reassignment:
    return replace(
        before,
        phase=Phase.CONFIRMED,
        since_ms=at_ms,
        current=event.replicas,
        step=Step(event.step, False, event.replicas, event.replicas, None),
        outcome_unknown=False,
        attempts=0,
        block=None,
    )


def _cancel_withdrawn(before: Reassignment, _event: reassignments.CancelWithdrawn, _at_ms: int) -> Reassignment:
    return replace(before, asked=None, deferred_by=None)


def _blocked(before: Reassignment, event: reassignments.ReassignmentBlocked, at_ms: int) -> Reassignment:
    repaired = before.repaired or event.why is _IN_BOTH_LISTS
    return replace(before, block=Block(event.why, event.detail, at_ms), repaired=repaired)


def _unblocked(before: Reassignment, _event: reassignments.ReassignmentUnblocked, _at_ms: int) -> Reassignment:
    return replace(before, block=None)


def _accepted_phase(before: Reassignment, call: Call) -> Phase:
    # See _not_taken: the rollback waits only for the end of the call.
    return _ROLLING_BACK if call is _STEP and before.awaits_cancel else _RUNNING[call]


EVOLVING: Mapping[type[Event], Callable[[Reassignment, Any, int], Reassignment]] = {
    reassignments.StepPrepared: _prepared,
    reassignments.StepPostponed: _postponed,
    reassignments.CallIntended: _intended,
    reassignments.CallAccepted: _accepted,
    reassignments.CallRejected: _rejected,
    reassignments.CallLapsed: _not_taken,
    reassignments.CallOutcomeLost: _outcome_lost,
    reassignments.StepConfirmed: _confirmed,
    reassignments.RollbackRequested: _rollback_requested,
    reassignments.StopRequested: _stop_requested,
    reassignments.RollbackSkipped: _rollback_skipped,
    reassignments.CancelWithdrawn: _cancel_withdrawn,
    reassignments.ReturnBegun: _return_begun,
    reassignments.StepTakenBack: _taken_back,
    reassignments.ReassignmentBlocked: _blocked,
    reassignments.ReassignmentUnblocked: _unblocked,
}
# Events that affect more than their reassignment, or that have none.
APPLYING: Mapping[type[Event], Callable[[Any, Any, int], None]] = {
    reassignments.ReassignmentCreated: _apply_created,
    reassignments.ReassignmentAdopted: _apply_adopted,
    reassignments.TargetReplaced: _apply_replaced,
    reassignments.ReplacementWithdrawn: _apply_withdrawn,
    reassignments.LateChangeFound: _apply_late,
    **dict.fromkeys(ENDINGS, _apply_ending),
}
