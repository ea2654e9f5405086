"""The managed clusters of a shard while it is owned: for each its state, its observations, and its reconcilers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from drover.decide.cancellation import succession
from drover.decide.order_endings import order_after, order_before
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallIntended
from drover.events.records import AnyEvent
from drover.facts import Move, Observation, Survey
from drover.fold.evolve import apply
from drover.fold.log import ShardState
from drover.fold.plans import Ending, is_ending
from drover.reconcile.adaptation.reconciler import AdaptationReconciler
from drover.reconcile.backoff import Backoff
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Reconciler, Urgency
from drover.reconcile.healing.reconciler import HealingReconciler
from drover.reconcile.identity.reconciler import IdentityReconciler
from drover.reconcile.leaders.reconciler import LeadershipReconciler
from drover.reconcile.messages import BytesSampled, Effect, Identified, Input, Moment
from drover.reconcile.moves.call_pace import CallPace
from drover.reconcile.moves.copy_sizes import CopySizes
from drover.reconcile.moves.gone_topics import GoneTopics
from drover.reconcile.moves.reconciler import ReassignmentReconciler
from drover.reconcile.observations import ObservationCache
from drover.reconcile.plans.reconciler import PlansReconciler
from drover.reconcile.starts.limits_reconciler import LimitsReconciler
from drover.reconcile.starts.queue_reconciler import QueueReconciler
from drover.reconcile.starts.starter import Starter
from drover.reconcile.throttles.raising import ThrottleRaiser
from drover.reconcile.throttles.reconciler import ThrottlingReconciler
from drover.reconcile.unmanaged.reconciler import UnmanagedReconciler
from drover.shard.scope import ShardScope
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.scheduling import Limits

# How often a cluster is reconciled where the one that is meant does not answer.
WITHOUT_CLUSTER_MS = 1000


class ManagedCluster:
    """One cluster: inputs and events go through its reconcilers, in their order."""

    def __init__(self, state: ClusterState, scope: ShardScope, limits: Limits | None) -> None:
        self.state = state
        self.observed = ObservationCache()
        self._is_configured = limits is not None
        self._sizes = CopySizes(self.observed)
        self._reconcilers = _reconcilers(state, self.observed, self._sizes, scope, limits)
        # Only those that follow events are told of them.
        self._following = tuple(one for one in self._reconcilers if type(one).applied is not Reconciler.applied)

    def begin(self, now: Moment) -> None:
        """Begin an ownership."""
        for reconciler in self._reconcilers:
            reconciler.begin(now)

    def apply(self, event: AnyEvent, at_ms: int) -> tuple[AnyEvent, ...]:
        """Apply an event with the events that belong in the same batch; returns all of them in order.

        A list's canonical order is kept before a step changes it, and what becomes of it follows the end of its
        reassignment. If the target of an ending reassignment was replaced, the events of the new one follow.
        """
        if is_ending(event):
            return self._apply_ending(event, at_ms)
        kept: tuple[AnyEvent, ...] = ()
        if type(event) is CallIntended:
            kept = order_before(self.state, self.state.reassignments[event.key], event)
        for one in (*kept, event):
            self._apply(one, at_ms)
        return (*kept, event)

    def _apply_ending(self, event: Ending, at_ms: int) -> tuple[AnyEvent, ...]:
        ending = self.state.reassignments[event.key]
        order = self.state.kept_order(event.key, ending.topic_id)
        following = succession(ending, event, event.cluster, None if order is None else order.canonical)
        applied: list[AnyEvent] = []
        for one in (*following.before, event, *following.after):
            orders: tuple[AnyEvent, ...] = ()
            if is_ending(one):
                orders = order_after(self.state, self.state.reassignments[one.key], one)
            for part in (one, *orders):
                self._apply(part, at_ms)
                applied.append(part)
        return tuple(applied)

    def _apply(self, event: AnyEvent, at_ms: int) -> None:
        apply(self.state, event, at_ms)
        for reconciler in self._following:
            reconciler.applied(event)

    def handle(self, entry: Input, batch: BatchBuilder) -> None:
        """Let every capability handle an input; what another Kafka cluster shows says nothing about this one."""
        identity, *others = self._reconcilers
        identity.handle(entry, batch)
        if isinstance(entry, BytesSampled):
            self.observed.see_directories(entry.directories)
        if isinstance(entry, Observation | Identified | Survey):
            if self._is_another:
                return
            if isinstance(entry, Observation):
                entry = self.observed.see(entry)
            elif isinstance(entry, Survey):
                self.observed.see_survey(entry)
            else:
                self.observed.see_live(entry.live_brokers, entry.ended_ms)
                if entry.moves is not None:
                    self.observed.see_moves(entry.moves, entry.ended_ms)
        for reconciler in others:
            reconciler.handle(entry, batch)

    def reconcile(self, batch: BatchBuilder) -> None:
        """Let every capability emit what follows."""
        for reconciler in self._reconcilers:
            reconciler.reconcile(batch)

    def committed(self) -> None:
        """Note that the batch is durable and valid."""
        for reconciler in self._reconcilers:
            reconciler.committed()

    @property
    def may_call(self) -> bool:
        """Whether anything may be sent: the cluster is configured, and is the one first seen under its name."""
        return self._is_configured and not self._is_another

    @property
    def _is_another(self) -> bool:
        """Whether another Kafka cluster answers: only who it is counts, and nothing can go on before that changes."""
        return self.state.mismatched_kafka_cluster_id is not None

    def wants_survey(self, now: Moment) -> bool:
        """Whether every partition must be looked at now."""
        return not self._is_another and any(reconciler.wants_survey(now) for reconciler in self._reconcilers)

    def owes(self, now: Moment) -> bool:
        """Whether calls are due although their intents are in an earlier batch."""
        return self.may_call and any(reconciler.owes(now) for reconciler in self._reconcilers)

    def effects(self, now: Moment, start_by_ms: int) -> Iterator[Effect]:
        """Make the calls that are due."""
        for reconciler in self._reconcilers:
            if self.may_call:
                yield from reconciler.effects(now, start_by_ms)
            else:
                reconciler.withhold(now, "another Kafka cluster answers under this name: nothing was sent")

    def wanted(self, moves: Mapping[TopicPartition, Move], now: Moment) -> frozenset[TopicPartition]:
        """Choose the partitions to observe now, given what List has just shown."""
        if self._is_another:
            return frozenset()
        return frozenset(key for reconciler in self._reconcilers for key in reconciler.wanted(moves, now))

    def wants_brokers(self, now: Moment) -> bool:
        """Whether the live brokers must be looked up although no partition is wanted."""
        return any(reconciler.wants_brokers(now) for reconciler in self._reconcilers)

    def urgency(self) -> Urgency:
        """Tell how closely the cluster should be watched."""
        urgency = max(reconciler.urgency() for reconciler in self._reconcilers)
        return min(urgency, Urgency.WAITING) if self._is_another else urgency

    def is_pressing(self, now: Moment) -> bool:
        """Whether something could begin at once if it were looked at."""
        return not self._is_another and any(reconciler.is_pressing(now) for reconciler in self._reconcilers)

    def due_ms(self, now: Moment) -> int | None:
        """Tell when (monotonic) to reconcile although nothing arrives; None if never.

        What is due stays due while another cluster answers, or none has answered yet: it is tried once a second.
        """
        times = [due for reconciler in self._reconcilers if (due := reconciler.due_ms(now)) is not None]
        if not self.state.is_right_cluster:
            times = [max(due, now.monotonic_ms + WITHOUT_CLUSTER_MS) for due in times]
        return min(times, default=None)

    def copying(self) -> Mapping[TopicPartition, tuple[int, tuple[int, ...], int | None]]:
        """List what is being copied: per partition its step, the brokers being added, and the leader if known."""
        found: dict[TopicPartition, tuple[int, tuple[int, ...], int | None]] = {}
        for key in self.state.moves.in_flight:
            reassignment = self.state.reassignments[key]
            if reassignment.step is not None and reassignment.phase is Phase.COPYING:
                found[key] = (reassignment.step.number, reassignment.step.adding, reassignment.step.leader)
        return found

    def unmeasured(self, seen: Observation) -> frozenset[str]:
        """List the topics of which a step has come to its end, as was just seen, before any size was read."""
        found = set()
        for key, facts in seen.partitions.items():
            reassignment = self.state.reassignments.get(key)
            if facts is None or facts.move is not None or reassignment is None:
                continue
            if reassignment.phase is Phase.COPYING and not self._sizes.has_sample(reassignment):
                found.add(key.topic)
        return frozenset(found)

    def topics_to_sample(self, now: Moment) -> frozenset[str]:
        """List the topics whose sizes are to be read now: of what is being copied, and of what waits for it."""
        copying = frozenset(key.topic for key in self.copying())
        return copying | self._sizes.topics_to_sample(self.state, now.monotonic_ms)

    def phases(self) -> Mapping[str, int]:
        """Count the reassignments under way by phase."""
        counts = Counter(self.state.reassignments[key].phase.value for key in self.state.moves.in_flight)
        counts[Phase.PENDING.value] = len(self.state.moves.pending)
        return counts


def _reconcilers(
    state: ClusterState, observed: ObservationCache, sizes: CopySizes, scope: ShardScope, limits: Limits | None
) -> tuple[Reconciler, ...]:
    """Make the reconcilers of one cluster, in the order in which they run; a new capability is added here."""
    backoff, pace = Backoff(), CallPace()
    throttling = ThrottlingReconciler(state, observed)
    return (
        IdentityReconciler(state, observed),
        ReassignmentReconciler(state, observed, backoff, sizes, pace),
        LimitsReconciler(state, observed, limits),
        AdaptationReconciler(state, observed),
        HealingReconciler(state, observed),
        QueueReconciler(state, observed, scope.own_topics),
        LeadershipReconciler(state, observed),
        Starter(state, observed, backoff, sizes, throttling, pace),
        throttling,
        ThrottleRaiser(state, observed, sizes),
        GoneTopics(state, observed),
        UnmanagedReconciler(state, observed),
        PlansReconciler(state, observed),
    )


class ManagedClusters:
    """The clusters of an owned shard, by name; one appears when it is first asked for."""

    def __init__(self, scope: ShardScope, limits: Mapping[str, Limits]) -> None:
        self.scope = scope
        self.speculative = ShardState()
        self._limits = limits
        self._clusters: dict[str, ManagedCluster] = {}
        self._now = Moment(0, 0)

    def begin(self, state: ShardState, now: Moment) -> None:
        """Begin an ownership with what the log says."""
        self.speculative = state.copy()
        self._clusters = {}
        self._now = now
        for name in self.speculative.clusters:
            self.of(name)

    def end(self) -> None:
        """Drop everything."""
        self.speculative = ShardState()
        self._clusters = {}

    def of(self, name: str) -> ManagedCluster:
        """Return a cluster."""
        found = self._clusters.get(name)
        if found is None:
            found = ManagedCluster(self.speculative.cluster(name), self.scope, self._limits.get(name))
            self._clusters[name] = found
            found.begin(self._now)
        return found

    def apply(self, event: AnyEvent, at_ms: int) -> tuple[AnyEvent, ...]:
        """Apply an event to its cluster, and return what follows from it."""
        return self.of(event.cluster).apply(event, at_ms)

    def names(self) -> Iterable[str]:
        """List the clusters to which something has happened."""
        return tuple(self._clusters)
