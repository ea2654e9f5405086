"""The slice of the state that says which Kafka cluster answers under a name."""

from dataclasses import dataclass

from drover.state.declared import ClusterSlice, recorded


@dataclass(eq=False)
class IdentityState(ClusterSlice):
    """Kafka's own id of the cluster that was first seen, and of another one that answers now; None if there is none."""

    kafka_cluster_id: str | None = recorded("kafka_cluster_id", told_as=("kafka cluster id",))
    mismatched_kafka_cluster_id: str | None = recorded(
        "mismatched_kafka_cluster_id", told_as=("mismatched kafka cluster id",)
    )
