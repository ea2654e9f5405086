"""Corrections while a reassignment is under way: of moves that never end, and of late effects of Drover's own calls.

Each is made once, by Kafka's cancel and a rollback; a second time the partition is shown as blocked and left alone.
"""

from drover.decide import replica_sets, rollback_guards
from drover.decide.verdict import DROVER, UNCONFIRMED, Context, Verdict, blocked, event_name
from drover.events.reassignments import (
    Blocker,
    Call,
    CallAccepted,
    CallIntended,
    CallLapsed,
    LateChangeFound,
    RollbackRequested,
)
from drover.events.records import ReassignmentEvent
from drover.facts import PartitionFacts
from drover.state.phase import CANCELLED_PHASES, Phase
from drover.state.reassignment import Block, Reassignment


def nothing_sent(reassignment: Reassignment) -> bool:
    """Whether no call of this reassignment can have reached the cluster, so that it did not start Kafka's move."""
    if reassignment.phase is Phase.PENDING:
        return True
    step = reassignment.step
    first = step is None or step.number == 1
    return reassignment.phase is Phase.PREPARED and first and not reassignment.unresolved_targets


def in_both_lists(brokers: tuple[int, ...]) -> str:
    """Say why a move can never end."""
    return f"broker {', '.join(map(str, brokers))} is being both added and removed, which Kafka never ends"


def repair(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict | None:
    """Cancel once a move of Drover's own that can never end; None if this one can (live fact).

    A broker gets into both lists when a moving partition is re-targeted, by others or by a late call. The move is
    shown as blocked, then cancelled; from there on it is a rollback like any other.
    """
    if seen.move is None or not seen.is_endless or nothing_sent(reassignment):
        return None
    if not context.persisted:
        return UNCONFIRMED
    name = event_name(context.cluster, reassignment.key)
    cause = in_both_lists(seen.move.never_ends)
    if reassignment.repaired and not reassignment.outcome_unknown and not reassignment.attempts:
        detail = f"{cause}, although Drover has cancelled it once: find out who does that, then `drover repair`"
        block = Block(Blocker.BROKER_IN_BOTH_LISTS, detail, context.at_ms)
        return Verdict(blocked(reassignment, block, context.cluster), unconfirmed=True)
    if reassignment.phase is Phase.CANCELLING and reassignment.outcome_unknown:
        return Verdict((CallLapsed(**name, call=Call.CANCEL, detail="the partition is still moving"),))
    if rollback_guards.skip_reason(reassignment, seen, context.guard) is not None:
        block = rollback_guards.guard_block(reassignment, seen, context.guard)
        return Verdict(blocked(reassignment, block, context.cluster), unconfirmed=True)
    events: list[ReassignmentEvent] = []
    if not reassignment.is_cancelled:
        reason = f"{cause}: the move is taken back"
        events.append(RollbackRequested(**name, by=DROVER, reason=reason, until_withdrawn=True))
    if not reassignment.repaired:
        block = Block(Blocker.BROKER_IN_BOTH_LISTS, f"{cause}: Drover cancels it once", context.at_ms)
        events += blocked(reassignment, block, context.cluster)
    events.append(CallIntended(**name, call=Call.CANCEL, expected=seen.replicas))
    return Verdict(tuple(events))


def correct_late(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict | None:
    """Take back the late effect of a call that Drover had given up; None if there is none.

    The reassignment does not go on from there: it is rolled back, with the reason. Only a late call for the very step
    that would be sent next counts as that step.
    """
    moving_to = seen.replicas if seen.move is None else seen.move.target
    if moving_to not in _unresolved(reassignment, context) or moving_to in _expected(reassignment, seen):
        return None
    name = event_name(context.cluster, reassignment.key)
    step, phase = reassignment.step, reassignment.phase
    if phase is Phase.PREPARED and step is not None and moving_to == step.replicas:
        return Verdict((CallAccepted(**name, call=Call.STEP, adopted=True),))
    if seen.move is None and phase in CANCELLED_PHASES:
        return None
    if seen.move is not None and rollback_guards.skip_reason(reassignment, seen, context.guard) is not None:
        return None
    if not context.persisted:
        return UNCONFIRMED
    events: list[ReassignmentEvent] = [
        LateChangeFound(**name, plan=reassignment.plan, sent=moving_to, replicas=seen.replicas)
    ]
    if not reassignment.awaits_cancel:
        reason = f"a call for {list(moving_to)} took effect after it had been given up: the move is taken back"
        events.append(RollbackRequested(**name, by=DROVER, reason=reason, until_withdrawn=True))
    if seen.move is not None:
        events.append(CallIntended(**name, call=Call.CANCEL, expected=seen.replicas))
    return Verdict(tuple(events))


def _unresolved(reassignment: Reassignment, context: Context) -> tuple[tuple[int, ...], ...]:
    """List the lists that Drover has sent for this partition with an outcome that stayed unknown."""
    expired, own = context.expired_calls, reassignment.late_lists(context.at_ms)
    return own if expired is None or expired.topic_id != reassignment.topic_id else (*own, *expired.sent)


def _expected(reassignment: Reassignment, seen: PartitionFacts) -> frozenset[tuple[int, ...]]:
    """Return the lists that fit the phase, which are no late effects."""
    step = reassignment.step
    lists: set[tuple[int, ...]] = set()
    match reassignment.phase:
        case Phase.COPYING if step is not None:
            lists |= {step.replicas}
            if seen.move is None:
                lists |= {step.expected, replica_sets.after_cancel(step)}
        case Phase.ROLLING_BACK | Phase.CANCELLING:
            lists |= {reassignment.original, reassignment.current}
            lists |= {step.replicas} if step is not None else set()
        case Phase.RESTORING:
            lists |= {reassignment.restoring or reassignment.destination, reassignment.destination}
        case _:
            lists |= {reassignment.current}
    return frozenset(lists)
