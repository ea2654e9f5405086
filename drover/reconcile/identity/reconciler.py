"""Cluster identity: record first contact, outages, unreachable brokers; stop all calls if another cluster answers."""

from collections.abc import Mapping

from drover.events.bounds import shortened
from drover.events.clusters import (
    BrokersSeen,
    ClusterIdentified,
    ClusterMatched,
    ClusterMismatched,
    ClusterOutOfReach,
    ClusterTraitsSeen,
    ClusterWithinReach,
    UnreachableBrokersChanged,
)
from drover.events.partitions import TopicPartition
from drover.facts import Move, Observation, Survey
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Attention, Reconciler
from drover.reconcile.debounce import CONFIRM_AFTER_MS
from drover.reconcile.messages import Identified, Input, OutOfReach, Timestamp, VersionsSeen
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState
from drover.traits import traits_of

# The least time between two surveys for the sake of the brokers, and the least as a multiple of the duration of one.
# While a broker is missing, they are `MISSING_MS` apart.
SURVEY_EVERY_MS, SURVEY_SHARE, MISSING_MS = 10_000, 20, 60_000


class IdentityReconciler(Reconciler):
    """Compares Kafka's id of the cluster with the one first seen under its name; records unreachable brokers."""

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp) -> None:
        super().__init__(state, observed, now)
        # Monotonic; the first observations of an owner are for calls and moves under way.
        self._first_survey_ms = now.monotonic_ms + SURVEY_EVERY_MS
        # Since when (monotonic) each broker has been unreachable.
        self._since_ms: dict[int, int] = {}

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Record which cluster answers, or that none does; only changes are recorded."""
        state = self.state
        if isinstance(entry, OutOfReach) and state.outage is None:
            batch.emit(ClusterOutOfReach(cluster=state.name, since_ms=entry.since_ms, detail=shortened(entry.detail)))
        if isinstance(entry, VersionsSeen):
            self._note_traits(entry, batch)
        if not isinstance(entry, Observation | Identified | Survey):
            return
        answering_id = entry.kafka_cluster_id
        if state.outage is not None:
            batch.emit(ClusterWithinReach(cluster=state.name))
        if state.kafka_cluster_id is None:
            brokers = tuple(sorted(entry.live_brokers))
            batch.emit(ClusterIdentified(cluster=state.name, kafka_cluster_id=answering_id, brokers=brokers))
        elif state.kafka_cluster_id == answering_id:
            if state.mismatched_kafka_cluster_id is not None:
                batch.emit(ClusterMatched(cluster=state.name, kafka_cluster_id=answering_id))
            new = set(entry.live_brokers).difference(state.known_brokers)
            if new:
                batch.emit(BrokersSeen(cluster=state.name, brokers=tuple(sorted(new))))
        elif state.mismatched_kafka_cluster_id != answering_id:
            batch.emit(
                ClusterMismatched(
                    cluster=state.name,
                    expected_kafka_cluster_id=state.kafka_cluster_id,
                    found_kafka_cluster_id=answering_id,
                )
            )

    def _note_traits(self, entry: VersionsSeen, batch: BatchBuilder) -> None:
        """Record the traits of the brokers' versions when they change; of the right cluster only."""
        state, traits = self.state, traits_of(entry.versions.values())
        if state.kafka_cluster_id is None or state.mismatched_kafka_cluster_id is not None:
            return
        if traits is not None and traits != state.traits:
            batch.emit(ClusterTraitsSeen(cluster=state.name, traits=traits))

    def reconcile(self, batch: BatchBuilder) -> None:
        """Record brokers that live and cannot be reached, once two surveys have shown it: metadata may lag."""
        state, observed = self.state, self.observed
        if observed.surveyed_ms is None or not state.is_right_cluster:
            return
        now_ms, surveyed_ms = batch.now.monotonic_ms, observed.surveyed_ms
        self._since_ms = {broker: self._since_ms.get(broker, now_ms) for broker in observed.unreachable}
        unreachable = tuple(
            broker
            for broker, since_ms in sorted(self._since_ms.items())
            if broker in state.unreachable_brokers or surveyed_ms - since_ms >= CONFIRM_AFTER_MS
        )
        if unreachable != tuple(sorted(state.unreachable_brokers)):
            batch.emit(UnreachableBrokersChanged(cluster=state.name, brokers=unreachable))

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Observe brokers while no cluster or another one answers, or none has yet and entries are queued for it."""
        del moves
        state = self.state
        is_unanswered = state.kafka_cluster_id is None and bool(state.queue)
        return Attention(
            survey=self._is_survey_due(now.monotonic_ms),
            brokers=state.outage is not None or state.mismatched_kafka_cluster_id is not None or is_unanswered,
        )

    def _is_survey_due(self, now_ms: int) -> bool:
        """Whether a survey is due: brokers have come or gone, or one has been missing for a while.

        Only its replicas show whether a broker that Metadata does not list is dead.
        """
        observed = self.observed
        if now_ms < self._first_survey_ms:
            return False
        if not self.state.is_right_cluster or observed.surveyed_ms is None:
            return self.state.is_right_cluster
        passed_ms = now_ms - observed.surveyed_ms
        if passed_ms < max(SURVEY_EVERY_MS, observed.survey_took_ms * SURVEY_SHARE):
            return False
        is_unconfirmed = not self._since_ms.keys() <= self.state.unreachable_brokers.keys()
        has_changed = observed.live != observed.surveyed_live
        return has_changed or is_unconfirmed or (bool(observed.missing) and passed_ms >= MISSING_MS)
