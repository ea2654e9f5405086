"""The context of a verdict about one reassignment, gathered from state and observations."""

from drover.brokers import Brokers
from drover.decide.late_calls import expired_calls
from drover.decide.verdict import Context
from drover.events.plans import Stepping
from drover.events.traits import Completion
from drover.reconcile.debounce import CERTAIN_AFTER_MS, Debounce
from drover.reconcile.moves.copy_sizes import CopySizes
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState
from drover.state.identity import IdentityState
from drover.state.reassignment import Reassignment


def context_of(
    state: ClusterState,
    reassignment: Reassignment,
    observed: ObservationCache,
    sizes: CopySizes,
    debounce: Debounce,
    at_ms: int,
) -> Context:
    """Gather it for the partition's last observation."""
    seen = observed.partitions.get(reassignment.key)
    return Context(
        cluster=state.name,
        live=observed.live,
        min_isr=observed.min_isr.get(reassignment.key.topic, 1),
        max_replicas_per_step=state.limits.max_replicas_per_step,
        at_ms=at_ms,
        persisted=debounce.has_persisted(reassignment.key, seen),
        is_certain=debounce.has_persisted(reassignment.key, seen, CERTAIN_AFTER_MS),
        bytes_copied=sizes.bytes_copied(reassignment),
        bytes_unknown=not sizes.has_sample(reassignment),
        expired_calls=expired_calls(state, reassignment.key, at_ms),
        throttle_bytes_per_second=state.rate_of(reassignment.plan),
        sizes=sizes.of_step(reassignment.key),
        directory_failures=sizes.failures_of(reassignment.key),
        failed=state.counted_failures(observed.brokers),
        stepping=stepping_of(state, reassignment),
        listed=state.listed_for(reassignment.key.topic),
        completion=completion_of(state),
        racks=observed.racks,
        unreachable=observed.unreachable,
        registered=observed.registered,
        unregistered=unregistered_brokers(reassignment, observed.brokers),
    )


def unregistered_brokers(reassignment: Reassignment, brokers: Brokers) -> frozenset[int]:
    """Return the unregistered brokers of its lists, by the cluster's registrations and by Kafka's answers.

    Before Kafka 4.0 (KIP-1073) only refused calls name them; such a broker counts until it is alive.
    """
    lists = (reassignment.original, reassignment.target, reassignment.current, reassignment.returning_to or ())
    dead = brokers.dead(broker for replicas in lists for broker in replicas)
    if not dead:
        return frozenset()
    return frozenset(brokers.unregistered(dead)).union(broker for broker in dead if broker in reassignment.unregistered)


def completion_of(state: IdentityState) -> Completion:
    """Return the cluster's trait of completion; until brokers have reported versions, that of the latest release."""
    return Completion.ADDED_UNLESS_SHRINKING if state.traits is None else state.traits.completion


def stepping_of(state: ClusterState, reassignment: Reassignment) -> Stepping:
    """Return the stepping of its plan, or else the cluster's."""
    return state.steppings.get(reassignment.plan, state.limits.stepping)
