"""Rollbacks and stops that a guard holds off, according to the last observation before their decision."""

from msgspec.structs import replace

from drover.decide.cancellation import is_untouched
from drover.decide.decision import Decision, Facts
from drover.decide.rollback_guards import GuardFacts, skip_reason
from drover.events.reassignments import CancelMode, RollbackRequested, StopRequested
from drover.events.records import DeferredCancel
from drover.state.cluster import ClusterState


def with_deferred(decision: Decision, state: ClusterState, facts: Facts) -> Decision:
    """Add the cancels that the guards hold off now, by the last observations; the cluster is not looked at again."""
    deferred: list[DeferredCancel] = []
    for event in decision.events:
        # By type: `isinstance` takes ten times as long with structs.
        if not (type(event) is RollbackRequested or type(event) is StopRequested):
            continue
        reassignment, seen = state.reassignments[event.key], facts.recent(event.key)
        if seen is None or seen.move is None or reassignment.is_adopted or is_untouched(reassignment):
            continue
        mode = CancelMode.STOP if isinstance(event, StopRequested) else CancelMode.ROLLBACK
        guard = GuardFacts(
            facts.live_brokers,
            facts.min_isr.get(event.topic, 1),
            0,
            unreachable=facts.unreachable,
            registered=facts.registered,
        )
        why = skip_reason(replace(reassignment, cancel_mode=mode), seen, guard)
        if why is not None:
            deferred.append(DeferredCancel(event.topic, event.partition, why))
    return replace(decision, deferred=tuple(deferred)) if deferred else decision
