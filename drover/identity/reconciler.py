"""Cluster identity: record first contact, and stop every call when another cluster answers."""

from drover.capability.batch import BatchBuilder
from drover.capability.contract import Reconciler
from drover.capability.messages import Identified, Input, Moment
from drover.facts import Observation, Survey
from events.clusters import ClusterIdentified, ClusterMatched, ClusterMismatched


class IdentityReconciler(Reconciler):
    """Compares Kafka's own id of the cluster with the one that was first seen under its name."""

    def handle(self, entry: Input, batch: BatchBuilder) -> None:
        """Record who answers, once as long as that stays the same."""
        if not isinstance(entry, Observation | Identified | Survey):
            return
        state, found = self.state, entry.kafka_cluster_id
        if state.kafka_cluster_id is None:
            batch.emit(ClusterIdentified(cluster=state.name, kafka_cluster_id=found))
        elif state.kafka_cluster_id == found:
            if state.mismatched_kafka_cluster_id is not None:
                batch.emit(ClusterMatched(cluster=state.name, kafka_cluster_id=found))
        elif state.mismatched_kafka_cluster_id != found:
            batch.emit(
                ClusterMismatched(
                    cluster=state.name,
                    expected_kafka_cluster_id=state.kafka_cluster_id,
                    found_kafka_cluster_id=found,
                )
            )

    def wants_brokers(self, now: Moment) -> bool:
        """Look again while another cluster answers, or none has answered yet and something is queued for it."""
        del now
        state = self.state
        return state.mismatched_kafka_cluster_id is not None or (bool(state.queue) and state.kafka_cluster_id is None)
