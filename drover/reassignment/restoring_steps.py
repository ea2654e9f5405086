"""A way back that needs copies goes by steps: the same steps, gates, limits and throttles as the way there.

It begins where a confirmed step has dropped an original replica. No step does that before the end yet (KIP-435's
alternating steps will): then Kafka's cancel and one reorder are not enough.
"""

from drover.facts import PartitionFacts
from drover.reassignment import replica_sets, rollback_guards
from drover.reassignment.state import Phase, Reassignment
from drover.reassignment.verdict import Context, Verdict, event_name
from events.reassignments import Blocker, Call, CallIntended, ReturnBegun


def begin(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict:
    """Begin it; originals that were reported as failed are left out at once."""
    return _towards(reassignment, seen, context, gone=frozenset(context.failed))


def returning(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> Verdict | None:
    """Go on without an original that is gone for good, as every rollback does; None if none is."""
    destination = reassignment.returning_to
    if destination is None or not (reassignment.phase is Phase.COPYING or reassignment.phase in _BETWEEN):
        return None
    gone = _gone(reassignment, replica_sets.without(destination, seen.isr), context)
    if not gone:
        return None
    if seen.move is None:
        return None if reassignment.phase is Phase.COPYING else _towards(reassignment, seen, context, gone)
    step = reassignment.step
    if step is None or seen.move.target != step.replicas or not gone & set(step.adding):
        return None
    # Kafka would wait for a copy on a dead broker for ever.
    return Verdict(
        (CallIntended(**event_name(context.cluster, reassignment.key), call=Call.CANCEL, expected=seen.replicas),)
    )


_BETWEEN = frozenset({Phase.CONFIRMED, Phase.PREPARED})


def _gone(reassignment: Reassignment, lacking: tuple[int, ...], context: Context) -> frozenset[int]:
    block = reassignment.block
    has_lasted = (
        block is not None
        and block.why is Blocker.DEAD_DESTINATION
        and context.at_ms - block.since_ms >= rollback_guards.GONE_MS
    )
    return frozenset(
        broker for broker in lacking if broker in context.failed or (has_lasted and broker not in context.live)
    )


def _towards(reassignment: Reassignment, seen: PartitionFacts, context: Context, gone: frozenset[int]) -> Verdict:
    """Head for the originals that are not gone, in their order, and as many replicas in sync as there were."""
    original = reassignment.original
    kept = tuple(broker for broker in original if broker not in gone or broker in seen.isr)
    others = tuple(broker for broker in seen.replicas if broker not in original and broker in seen.isr)
    destination = kept + others[: max(0, len(original) - len(kept))]
    name = event_name(context.cluster, reassignment.key)
    return Verdict((ReturnBegun(**name, replicas=seen.replicas, destination=destination),))
