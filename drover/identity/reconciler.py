"""Cluster identity: record first contact, outages, and stop every call when another cluster answers."""

from drover.capability.batch import BatchBuilder
from drover.capability.contract import Reconciler
from drover.capability.messages import Identified, Input, Moment, OutOfReach, VersionsSeen
from drover.facts import Observation, Survey
from drover.traits import traits_of
from events.bounds import shortened
from events.clusters import (
    BrokersSeen,
    ClusterIdentified,
    ClusterMatched,
    ClusterMismatched,
    ClusterOutOfReach,
    ClusterTraitsSeen,
    ClusterWithinReach,
)


class IdentityReconciler(Reconciler):
    """Compares Kafka's own id of the cluster with the one that was first seen under its name."""

    def handle(self, entry: Input, batch: BatchBuilder) -> None:
        """Record who answers, or that nobody does, once as long as that stays the same."""
        state = self.state
        if isinstance(entry, OutOfReach) and state.outage is None:
            batch.emit(ClusterOutOfReach(cluster=state.name, since_ms=entry.since_ms, detail=shortened(entry.detail)))
        if isinstance(entry, VersionsSeen):
            self._note_traits(entry, batch)
        if not isinstance(entry, Observation | Identified | Survey):
            return
        found = entry.kafka_cluster_id
        if state.outage is not None:
            batch.emit(ClusterWithinReach(cluster=state.name))
        if state.kafka_cluster_id is None:
            brokers = tuple(sorted(entry.live_brokers))
            batch.emit(ClusterIdentified(cluster=state.name, kafka_cluster_id=found, brokers=brokers))
        elif state.kafka_cluster_id == found:
            if state.mismatched_kafka_cluster_id is not None:
                batch.emit(ClusterMatched(cluster=state.name, kafka_cluster_id=found))
            new = set(entry.live_brokers).difference(state.known_brokers)
            if new:
                batch.emit(BrokersSeen(cluster=state.name, brokers=tuple(sorted(new))))
        elif state.mismatched_kafka_cluster_id != found:
            batch.emit(
                ClusterMismatched(
                    cluster=state.name,
                    expected_kafka_cluster_id=state.kafka_cluster_id,
                    found_kafka_cluster_id=found,
                )
            )

    def _note_traits(self, entry: VersionsSeen, batch: BatchBuilder) -> None:
        """Record what the versions mean, once as long as it stays the same; of the right cluster only."""
        state, found = self.state, traits_of(entry.versions.values())
        if state.kafka_cluster_id is None or state.mismatched_kafka_cluster_id is not None:
            return
        if found is not None and found != state.traits:
            batch.emit(ClusterTraitsSeen(cluster=state.name, traits=found))

    def wants_brokers(self, now: Moment) -> bool:
        """Look again while none or another cluster answers, or none has answered yet and something is queued for it."""
        del now
        state = self.state
        if state.outage is not None:
            return True
        return state.mismatched_kafka_cluster_id is not None or (bool(state.queue) and state.kafka_cluster_id is None)
