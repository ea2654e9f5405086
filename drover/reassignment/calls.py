"""Events that follow the end of an alter call: answered per partition, not sent, or of unknown outcome."""

from drover.capability.messages import CallEnded
from drover.capability.observations import CallEffect
from drover.facts import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    NO_REASSIGNMENT_IN_PROGRESS,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    CallResult,
)
from drover.reassignment.values import Reassignment
from drover.reassignment.verdict import event_name
from events.reassignments import (
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
from events.records import ReassignmentEvent

# A controller that answers with one of these has rejected the request; with any other code it may have acted.
JUDGED = frozenset({UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, 29, 31, 44})
_FINAL = frozenset({UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT})


def effect_of(reassignment: Reassignment, ended: CallEnded) -> CallEffect:
    """Tell what a call has done to one of its partitions, as `answered`, `never_sent` and `lost` record it."""
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
    """Say what one partition's answer means for its open call.

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
    rejected = CallRejected(**name, call=call, code=result.code, message=result.message)
    must_go = reassignment.is_adopted or reassignment.repaired
    if call is Call.CANCEL and result.code == INVALID_REPLICA_ASSIGNMENT and not must_go:
        # Kafka would have had to elect an unclean leader: the guard would have said the same (R236-8).
        return (rejected, RollbackSkipped(**name, why=SkipReason.NO_ORIGINAL_IN_SYNC, isr=()))
    if call is Call.STEP and result.code in _FINAL and not reassignment.is_cancelled:
        gone = result.code == UNKNOWN_TOPIC_OR_PARTITION
        why = FailureReason.PARTITION_GONE if gone else FailureReason.REFUSED_BY_KAFKA
        detail = f"Kafka refused the step: {result.in_words}"
        failed = ReassignmentFailed(**name, why=why, detail=detail, replicas=reassignment.current)
        return (rejected, failed)
    detail = f"Kafka refuses the call, which is tried again: {result.in_words}"
    return (rejected, ReassignmentBlocked(**name, why=Blocker.CALL_REJECTED, detail=detail))


def never_sent(reassignment: Reassignment, detail: str, cluster: str) -> tuple[ReassignmentEvent, ...]:
    """Record that the call did not happen."""
    return (CallLapsed(**event_name(cluster, reassignment.key), call=reassignment.call, detail=detail),)


def lost(reassignment: Reassignment, detail: str, cluster: str) -> tuple[ReassignmentEvent, ...]:
    """Record that the outcome of the call is unknown."""
    return (CallOutcomeLost(**event_name(cluster, reassignment.key), call=reassignment.call, detail=detail),)
