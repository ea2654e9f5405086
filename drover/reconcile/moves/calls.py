"""Events that follow the end of an alter call: answered per partition, not sent, or of unknown outcome."""

import re

from drover.decide.verdict import event_name
from drover.events.reassignments import (
    Blocker,
    Call,
    CallAccepted,
    CallLapsed,
    CallOutcomeLost,
    CallRejected,
    FailureReason,
    ReassignmentBlocked,
    ReassignmentFailed,
    RollbackSkipped,
    SkipReason,
)
from drover.events.records import ReassignmentEvent
from drover.facts import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    NO_REASSIGNMENT_IN_PROGRESS,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    CallResult,
)
from drover.reconcile.messages import CallEnded
from drover.reconcile.observations import CallEffect
from drover.state.reassignment import Reassignment

# A controller that answers with one of these has rejected the request; with any other code it may have acted.
JUDGED = frozenset({UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, 29, 31, 44})
_FINAL = frozenset({UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT})
# Kafka's words with code 39, from 3.0 to 4.4 (KRaft); of several such brokers it names the first.
_UNREGISTERED = re.compile(r"includes broker (\d+), but no such broker is registered")


def effect_of(reassignment: Reassignment, ended: CallEnded) -> CallEffect:
    """Return the effect of a call on one of its partitions, as `answered`, `never_sent` and `lost` record it."""
    if ended.results is None:
        return CallEffect.UNKNOWN if ended.lost else CallEffect.NONE
    result = ended.results.get(reassignment.key)
    if result is None:
        return CallEffect.UNKNOWN
    if result.code == NONE:
        return CallEffect.DONE
    is_idle = reassignment.call is Call.CANCEL and result.code == NO_REASSIGNMENT_IN_PROGRESS
    return CallEffect.NONE if is_idle or result.code in JUDGED else CallEffect.UNKNOWN


def answered(reassignment: Reassignment, result: CallResult, cluster: str) -> tuple[ReassignmentEvent, ...]:
    """Return the events that follow one partition's answer.

    85 on a cancel means that nothing was moving: the call had no effect, and the next observation may be old
    metadata from before the step completed.
    """
    call, name = reassignment.call, event_name(cluster, reassignment.key)
    if result.code == NONE:
        return (CallAccepted(**name, call=call),)
    if call is Call.CANCEL and result.code == NO_REASSIGNMENT_IN_PROGRESS:
        return (CallLapsed(**name, call=call, detail="nothing was moving any more"),)
    if result.code not in JUDGED:
        return (CallOutcomeLost(**name, call=call, detail=f"Kafka answered {result.in_words}"),)
    unregistered = unregistered_broker(result)
    rejected = CallRejected(**name, call=call, code=result.code, message=result.message, unregistered=unregistered)
    must_go = reassignment.is_adopted or reassignment.repaired
    if call is Call.CANCEL and result.code == INVALID_REPLICA_ASSIGNMENT and not must_go:
        # Kafka would have had to elect an unclean leader, which KIP-236's guard forbids as well (R236-8).
        return (rejected, RollbackSkipped(**name, why=SkipReason.NO_ORIGINAL_IN_SYNC, isr=()))
    if unregistered is not None and (reassignment.is_cancelled or unregistered not in reassignment.step_target):
        # The next list leaves it out.
        return (rejected, *_settled(reassignment, cluster))
    if call is Call.STEP and result.code in _FINAL and not reassignment.is_cancelled:
        gone = result.code == UNKNOWN_TOPIC_OR_PARTITION
        why = FailureReason.PARTITION_GONE if gone else FailureReason.REFUSED_BY_KAFKA
        detail = f"Kafka refused the step: {result.in_words}"
        failed = ReassignmentFailed(**name, why=why, detail=detail, replicas=reassignment.current)
        return (rejected, failed)
    detail = f"Kafka refuses the call, which is tried again: {result.in_words}"
    blocked = ReassignmentBlocked(**name, why=Blocker.CALL_REJECTED, detail=detail)
    return (rejected, *_settled(reassignment, cluster), blocked)


def unregistered_broker(result: CallResult) -> int | None:
    """Return the unregistered broker for which Kafka refuses a list; None if it refuses for another reason."""
    match = _UNREGISTERED.search(result.message or "") if result.code == INVALID_REPLICA_ASSIGNMENT else None
    return None if match is None else int(match[1])


def never_sent(reassignment: Reassignment, detail: str, cluster: str) -> tuple[ReassignmentEvent, ...]:
    """Record that the call did not happen."""
    lapsed = CallLapsed(**event_name(cluster, reassignment.key), call=reassignment.call, detail=detail)
    return (lapsed, *_settled(reassignment, cluster))


def _settled(reassignment: Reassignment, cluster: str) -> tuple[CallAccepted, ...]:
    """Record, once, that no call of a cancelled reassignment is under way in Kafka.

    A list is sent only while Kafka lists no move, and this one has had no effect.
    """
    is_on_its_way_back = reassignment.call is Call.RESTORE or (
        reassignment.call is Call.STEP and reassignment.awaits_cancel
    )
    if not is_on_its_way_back or reassignment.is_settled:
        return ()
    return (CallAccepted(**event_name(cluster, reassignment.key), call=Call.CANCEL, adopted=True),)


def lost(reassignment: Reassignment, detail: str, cluster: str) -> tuple[ReassignmentEvent, ...]:
    """Record that the outcome of the call is unknown."""
    return (CallOutcomeLost(**event_name(cluster, reassignment.key), call=reassignment.call, detail=detail),)
