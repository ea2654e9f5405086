"""Judging observations of a cancelled reassignment, one function per phase; rollback and stop share them.

Each judges whether Drover's own calls explain the observation, and whether it is new enough. The rule in
`drover.reconcile.moves.route` then chooses the next call on the way to `Reassignment.destination`: the original list
(KIP-236), or for a stop the list that the confirmed steps have made (KIP-455).
"""

from typing import assert_never

from msgspec.structs import replace

from drover.decide import replica_sets, rollback_guards
from drover.decide.verdict import (
    NOTHING,
    UNCONFIRMED,
    Context,
    Verdict,
    blocked,
    event_name,
    failed,
    others_move,
    reached,
)
from drover.events.reassignments import (
    Call,
    CallAccepted,
    CallIntended,
    CallLapsed,
    CancelMode,
    FailureReason,
    ReassignmentRolledBack,
    ReassignmentStopped,
    ReturnBegun,
    RollbackRequested,
    RollbackSkipped,
    StepTakenBack,
    StopRequested,
)
from drover.events.records import ReassignmentEvent
from drover.facts import PartitionFacts
from drover.reconcile.moves.next_calls import (
    Arrived,
    GoBySteps,
    HoldOff,
    NextCall,
    ObserveAgain,
    SendCancel,
    SendOrder,
    SendStep,
    Wait,
)
from drover.reconcile.moves.route import next_call
from drover.state.phase import Phase
from drover.state.reassignment import Block, Reassignment


def rolling_back(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict:
    """R236-7 over the Admin RPCs: cancel the listed move, never re-target it; then judge the list that is left."""
    step = reassignment.step
    if seen.move is None:
        # A broker whose metadata lags may still show the list from before a step that has meanwhile completed.
        before = step is not None and seen.replicas == step.expected
        if (reassignment.outcome_unknown or before) and not context.persisted:
            return UNCONFIRMED
        return _return(reassignment, seen, context)
    if seen.move.target not in reassignment.own_lists(context.at_ms):
        return others_move(reassignment, seen, context)
    return follow(reassignment, seen, context)


def resume(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict | None:
    """Request a deferred rollback or stop again once its guard allows it; None until then."""
    asked = reassignment.asked
    if asked is None or reassignment.deferred_by is None:
        return None
    back = replace(reassignment, cancel_mode=asked.mode)
    if rollback_guards.skip_reason(back, seen, context.guard) or not rollback_guards.has_original_in_sync(back, seen):
        return None
    if reassignment.phase is Phase.COPYING and (
        seen.move is None or seen.move.target not in back.own_lists(context.at_ms)
    ):
        # The move has ended, or another client has re-targeted it: that is judged first.
        return None
    requested = StopRequested if asked.mode is CancelMode.STOP else RollbackRequested
    name = event_name(context.cluster, reassignment.key)
    return Verdict((requested(**name, until_withdrawn=True, again=True),))


def cancelling(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict:
    """Kafka has taken the cancel: judge the list that is left once the partition is no longer listed."""
    step = reassignment.step
    if seen.move is None:
        # `strange`: another client has cancelled, or this is metadata from before the step. `done`: a step whose cancel
        # was taken cannot have completed, but metadata from before the cancel may show its list.
        strange = step is not None and seen.replicas == step.expected != replica_sets.after_cancel(step)
        done = step is not None and seen.replicas == step.replicas
        # A lost cancel may have come before the step's end or after it: either list may be an old one.
        if (reassignment.outcome_unknown or strange or done) and not context.persisted:
            return UNCONFIRMED
        return _return(reassignment, seen, context)
    if seen.move.target not in reassignment.own_lists(context.at_ms):
        return others_move(reassignment, seen, context)
    if not context.persisted:
        return UNCONFIRMED
    name = event_name(context.cluster, reassignment.key)
    return Verdict((CallLapsed(**name, call=Call.CANCEL, detail="the partition is still moving"),))


def restoring(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict:
    """The list was sent in its order: end if it is there and still the destination.

    A stop may have become a rollback while the call was open: then it goes on to the original.
    """
    name = event_name(context.cluster, reassignment.key)
    destination = reassignment.restoring or reassignment.destination
    if seen.move is not None:
        if seen.move.target != destination:
            return others_move(reassignment, seen, context)
        if set(destination) != set(reassignment.destination):
            return follow(reassignment, seen, context)
        block = rollback_guards.restore_block(reassignment, seen, context.guard)
        if block is None:
            return NOTHING
        if rollback_guards.is_given_up(reassignment, seen, block, context.guard):
            # Kafka would list the shrink for ever.
            return follow(reassignment, seen, context)
        return Verdict(blocked(reassignment, block, context.cluster))
    if reassignment.outcome_unknown and not context.persisted:
        # The list from before the step may be the one that was sent back: metadata that is old enough shows it.
        return UNCONFIRMED
    if seen.replicas in {destination, reassignment.destination}:
        return _return(reassignment, seen, context)
    if not _is_ours(reassignment, seen):
        return failed(reassignment, seen, context, FailureReason.UNMANAGED_CHANGE)
    if not context.persisted:
        return UNCONFIRMED
    return Verdict((CallLapsed(**name, call=Call.RESTORE, detail="the original order is not there"),))


def follow(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict:
    """Record the route's result: a call, an end, or why neither follows."""
    return taken(reassignment, seen, context, next_call(reassignment, seen, context))


def taken(reassignment: Reassignment, seen: PartitionFacts, context: Context, call: NextCall | None) -> Verdict:
    """Turn a result of the route into events; steps are left to the starter, since slots are given in order."""
    name = event_name(context.cluster, reassignment.key)
    match call:
        case SendCancel():
            return Verdict((CallIntended(**name, call=Call.CANCEL, expected=seen.replicas),))
        case SendOrder(replicas):
            return Verdict((CallIntended(**name, call=Call.RESTORE, expected=seen.replicas, replicas=replicas),))
        case GoBySteps(destination):
            return Verdict((ReturnBegun(**name, replicas=seen.replicas, destination=destination),))
        case Arrived(missing):
            return Verdict((_ended(reassignment, seen, context, missing),))
        case Wait(block):
            return Verdict(_waiting(reassignment, seen, block, context))
        case HoldOff(why):
            return Verdict((RollbackSkipped(**name, why=why, isr=seen.isr),))
        case ObserveAgain():
            return UNCONFIRMED
        case SendStep() | None:
            return NOTHING
        case _:
            assert_never(call)


def _return(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict:
    """Kafka lists nothing any more: go on to the destination, unless a step completed before the cancel."""
    step = reassignment.step
    is_done = step is not None and step.final and seen.replicas == step.replicas
    if step is not None and is_done and set(step.replicas) == set(reassignment.target):
        return Verdict((reached(reassignment, step, seen, context),))
    if step is not None and seen.replicas == step.replicas != reassignment.current:
        # The step completed before the cancel. A stop keeps its replicas; so does a rollback where the step has dropped
        # an original, until steps have brought that back.
        stops = reassignment.cancel_mode is CancelMode.STOP
        keeps = stops or not reassignment.is_cancelled or not set(seen.replicas) >= set(reassignment.destination)
        if keeps and not context.persisted and any(broker not in seen.isr for broker in step.adding):
            return UNCONFIRMED
        if keeps:
            done = reached(reassignment, step, seen, context)
            return Verdict((done, _ended(reassignment, seen, context)) if stops else (done,))
    if _has_been_reduced(reassignment, seen):
        missing = replica_sets.without(reassignment.original, seen.replicas)
        return Verdict((_ended(reassignment, seen, context, missing),))
    if not _is_ours(reassignment, seen):
        return failed(reassignment, seen, context, FailureReason.UNMANAGED_CHANGE)
    return follow(reassignment, seen, context)


def _waiting(
    reassignment: Reassignment, seen: PartitionFacts, block: Block, context: Context
) -> tuple[ReassignmentEvent, ...]:
    """Record a block; before it, once, that none of this reassignment's calls is under way in Kafka any more."""
    is_recorded = reassignment.is_settled or not reassignment.own_lists(context.at_ms)
    if seen.move is not None or is_recorded:
        return blocked(reassignment, block, context.cluster)
    name = event_name(context.cluster, reassignment.key)
    settled = CallAccepted(**name, call=Call.CANCEL, adopted=True)
    return (settled, *blocked(reassignment, block, context.cluster))


def _ended(
    reassignment: Reassignment, seen: PartitionFacts, context: Context, missing: tuple[int, ...] = ()
) -> ReassignmentEvent:
    name = event_name(context.cluster, reassignment.key)
    started = reassignment.step is not None
    if reassignment.cancel_mode is None:
        return StepTakenBack(**name, step=_number(reassignment), replicas=seen.replicas)
    if reassignment.cancel_mode is CancelMode.STOP:
        return ReassignmentStopped(**name, replicas=seen.replicas, started=started, missing=missing)
    return ReassignmentRolledBack(**name, replicas=seen.replicas, started=started, missing=missing)


def _has_been_reduced(reassignment: Reassignment, seen: PartitionFacts) -> bool:
    """Whether the list lacks originals that were given up: replicas dropped on the way back are not brought back."""
    brokers = set(seen.replicas)
    if brokers >= set(reassignment.destination) or reassignment.cancel_mode is not CancelMode.ROLLBACK:
        return False
    if brokers == set(reassignment.current):
        # Confirmed steps have dropped the replicas that it lacks.
        return False
    if seen.replicas == reassignment.restoring:
        return True
    # Sent earlier, with an outcome that stayed unknown.
    step = reassignment.step
    is_target = seen.replicas == reassignment.target or (
        step is not None and step.final and seen.replicas == step.replicas
    )
    late = seen.replicas in reassignment.unresolved_targets and not is_target
    return late and brokers < {*reassignment.current, *reassignment.original}


def _is_ours(reassignment: Reassignment, seen: PartitionFacts) -> bool:
    """Whether the set is the one at the start or at the end of the running step, or the confirmed one.

    A list that lacks some of the destination is Drover's own only if confirmed steps have made it.
    """
    brokers = set(seen.replicas)
    if not brokers >= set(reassignment.destination):
        return brokers == set(reassignment.current) and not reassignment.is_adopted
    own_sets = [set(reassignment.current), set(reassignment.original)]
    if reassignment.step is not None:
        own_sets += [set(reassignment.step.expected), set(reassignment.step.replicas)]
    return brokers in own_sets


def _number(reassignment: Reassignment) -> int:
    return 0 if reassignment.step is None else reassignment.step.number
