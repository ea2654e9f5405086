"""The managed clusters of a shard while it is owned: for each its state, its observations, and its reconcilers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from drover.decide.cancellation import succession
from drover.decide.order_endings import order_after, order_before
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallIntended
from drover.events.records import AnyEvent
from drover.facts import Move, Observation, Survey
from drover.fold.evolve import apply
from drover.fold.log import ShardState
from drover.fold.plans import is_ending
from drover.reconcile.adaptation.reconciler import AdaptationReconciler
from drover.reconcile.backoff import Backoff
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Attention, Reconciler, Urgency, changes_by, merged
from drover.reconcile.gates import CALL_GATES, calls_nothing, lapse
from drover.reconcile.healing.reconciler import HealingReconciler
from drover.reconcile.identity.reconciler import IdentityReconciler
from drover.reconcile.leaders.reconciler import LeadershipReconciler
from drover.reconcile.messages import BytesSampled, Effect, Identified, Input, Timestamp
from drover.reconcile.moves.call_pace import CallPace
from drover.reconcile.moves.copy_sizes import CopySizes
from drover.reconcile.moves.gone_topics import GoneTopics
from drover.reconcile.moves.reconciler import ReassignmentReconciler
from drover.reconcile.observations import ObservationCache
from drover.reconcile.plans.reconciler import PlansReconciler
from drover.reconcile.starts.limits_reconciler import LimitsReconciler
from drover.reconcile.starts.queue_reconciler import QueueReconciler
from drover.reconcile.starts.starter import Starter
from drover.reconcile.throttles.reconciler import ThrottlingReconciler
from drover.reconcile.throttles.throttle_raiser import ThrottleRaiser
from drover.reconcile.unmanaged.reconciler import UnmanagedReconciler
from drover.shard.scope import ShardScope
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.scheduling import Limits

# How often a cluster is reconciled while another Kafka cluster answers under its name, or none does.
WITHOUT_CLUSTER_MS = 1000
# The wait after a survey without an answer.
SURVEY_AGAIN_MS = 10_000


class ManagedCluster:
    """One cluster: inputs and events go through its reconcilers, in their order."""

    def __init__(self, state: ClusterState, scope: ShardScope, limits: Limits | None, now: Timestamp) -> None:
        self.state = state
        self.observed = ObservationCache()
        self._is_configured = limits is not None
        self._sizes = CopySizes(self.observed)
        self._reconcilers = _reconcilers(state, self.observed, self._sizes, scope, limits, now)
        # When (monotonic) the next survey may begin, if the last one gets no answer.
        self._next_survey_ms = 0

    def apply(self, events: Iterable[AnyEvent], at_ms: int) -> tuple[AnyEvent, ...]:
        """Apply events with those that belong in the same batch; returns all of them in order.

        A list's canonical order is kept before a step changes it, and is changed or ended with its reassignment. If the
        target of an ending reassignment was replaced, the events of the new reassignment follow.
        """
        applied: list[AnyEvent] = []
        for event in events:
            for part in self._with_related(event):
                apply(self.state, part, at_ms)
                applied.append(part)
        changes = changes_by(tuple(applied))
        for reconciler in self._reconcilers:
            reconciler.follow(changes)
        return changes.events

    def _with_related(self, event: AnyEvent) -> Iterator[AnyEvent]:
        """Yield an event with those that belong to it; the caller applies each before it takes the next."""
        state = self.state
        if type(event) is CallIntended:
            yield from order_before(state, state.reassignments[event.key], event)
        if not is_ending(event):
            yield event
            return
        ending = state.reassignments[event.key]
        if ending.replacement is None:
            orders = order_after(state, ending, event)
            yield event
            yield from orders
            return
        order = state.kept_order(event.key, ending.topic_id)
        following = succession(ending, event, event.cluster, None if order is None else order.canonical)
        for part in (*following.before, event, *following.after):
            orders = order_after(state, state.reassignments[part.key], part) if is_ending(part) else ()
            yield part
            yield from orders

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Let every capability handle an input; observations of another Kafka cluster are ignored."""
        identity, *others = self._reconcilers
        identity.observe(entry, batch)
        if isinstance(entry, BytesSampled):
            self.observed.see_directories(entry.directories)
        if isinstance(entry, Observation | Identified | Survey):
            if calls_nothing(self.state):
                return
            if isinstance(entry, Observation):
                entry = self.observed.see(entry)
            elif isinstance(entry, Survey):
                self._next_survey_ms = 0
                self.observed.see_survey(entry)
            else:
                self.observed.see_live(entry.live_brokers, entry.ended_ms)
                if entry.moves is not None:
                    self.observed.see_moves(entry.moves, entry.ended_ms)
        for reconciler in others:
            reconciler.observe(entry, batch)

    def reconcile(self, batch: BatchBuilder) -> None:
        """Let every capability emit its events."""
        for reconciler in self._reconcilers:
            reconciler.reconcile(batch)

    @property
    def _lapsed(self) -> str | None:
        """The reason why even calls with a durable intent may not be made; None if they may."""
        if not self._is_configured:
            return "the cluster is not configured any more: nothing was sent"
        return lapse(self.state, CALL_GATES)

    def effects(self, now: Timestamp, start_by_ms: int) -> Iterator[Effect]:
        """Yield the calls that are due; the reconcilers let them lapse where no call may be made."""
        lapsed = self._lapsed
        for reconciler in self._reconcilers:
            yield from reconciler.effects(now, start_by_ms, lapsed)

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None = None) -> Attention:
        """Say what to look at and when to reconcile again; `moves` is Kafka's latest listing, see `Reconciler`.

        While another cluster answers, or none has answered yet, work that is due is tried once a second.
        """
        asked = merged(reconciler.attention(now, moves) for reconciler in self._reconcilers)
        if calls_nothing(self.state):
            due_ms = None if asked.due_ms is None else max(asked.due_ms, now.monotonic_ms + WITHOUT_CLUSTER_MS)
            return Attention(brokers=asked.brokers, due_ms=due_ms, urgency=min(asked.urgency, Urgency.WAITING))
        survey = asked.survey and now.monotonic_ms >= self._next_survey_ms
        return replace(asked, survey=survey, owes=asked.owes and self._is_configured)

    def survey_begins(self, now: Timestamp) -> None:
        """Note that a survey begins: without an answer, other observations come before the next one."""
        self._next_survey_ms = now.monotonic_ms + SURVEY_AGAIN_MS

    def copying(self) -> Mapping[TopicPartition, tuple[int, tuple[int, ...], int | None]]:
        """List what is being copied: per partition its step, the brokers being added, and the leader if known."""
        copies: dict[TopicPartition, tuple[int, tuple[int, ...], int | None]] = {}
        for key in self.state.moves.in_flight:
            reassignment = self.state.reassignments[key]
            if reassignment.step is not None and reassignment.phase is Phase.COPYING:
                copies[key] = (reassignment.step.number, reassignment.step.adding, reassignment.step.leader)
        return copies

    def unmeasured(self, seen: Observation) -> frozenset[str]:
        """List the topics with a step that was just seen to be done before any of its sizes was read."""
        topics = set()
        for key, facts in seen.partitions.items():
            reassignment = self.state.reassignments.get(key)
            if facts is None or facts.move is not None or reassignment is None:
                continue
            if reassignment.phase is Phase.COPYING and not self._sizes.has_sample(reassignment):
                topics.add(key.topic)
        return frozenset(topics)

    def topics_to_sample(self, now: Timestamp) -> frozenset[str]:
        """List the topics whose sizes are to be read now: of partitions that are copied, or wait for it."""
        copying = frozenset(key.topic for key in self.copying())
        return copying | self._sizes.topics_to_sample(self.state, now.monotonic_ms)

    def phases(self) -> Mapping[str, int]:
        """Count the reassignments under way by phase."""
        counts = Counter(self.state.reassignments[key].phase.value for key in self.state.moves.in_flight)
        counts[Phase.PENDING.value] = len(self.state.moves.pending)
        return counts


def _reconcilers(
    state: ClusterState,
    observed: ObservationCache,
    sizes: CopySizes,
    scope: ShardScope,
    limits: Limits | None,
    now: Timestamp,
) -> tuple[Reconciler, ...]:
    """Make the reconcilers of one cluster, in the order in which they run; a new capability is added here."""
    backoff, pace = Backoff(), CallPace()
    throttling = ThrottlingReconciler(state, observed, now)
    return (
        IdentityReconciler(state, observed, now),
        ReassignmentReconciler(state, observed, now, backoff, sizes, pace),
        LimitsReconciler(state, observed, now, limits),
        AdaptationReconciler(state, observed, now),
        HealingReconciler(state, observed, now),
        QueueReconciler(state, observed, now, scope.own_topics),
        LeadershipReconciler(state, observed, now),
        Starter(state, observed, now, backoff, sizes, throttling, pace),
        throttling,
        ThrottleRaiser(state, observed, now, sizes),
        GoneTopics(state, observed, now),
        UnmanagedReconciler(state, observed, now),
        PlansReconciler(state, observed, now),
    )


class ManagedClusters:
    """The clusters of an owned shard, by name; one appears when it is first asked for."""

    def __init__(self, scope: ShardScope, limits: Mapping[str, Limits]) -> None:
        self.scope = scope
        self.speculative = ShardState()
        self._limits = limits
        self._clusters: dict[str, ManagedCluster] = {}
        self._now = Timestamp(0, 0)

    def begin(self, state: ShardState, now: Timestamp) -> None:
        """Begin an ownership with the state in the log."""
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
        cluster = self._clusters.get(name)
        if cluster is None:
            cluster = ManagedCluster(self.speculative.cluster(name), self.scope, self._limits.get(name), self._now)
            self._clusters[name] = cluster
        return cluster

    def apply(self, events: Sequence[AnyEvent], at_ms: int) -> tuple[AnyEvent, ...]:
        """Apply events of one cluster, and return them with what belongs to them; see `ManagedCluster.apply`."""
        return self.of(events[0].cluster).apply(events, at_ms)

    def names(self) -> Iterable[str]:
        """List the clusters to which something has happened."""
        return tuple(self._clusters)
