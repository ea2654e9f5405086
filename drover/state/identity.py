"""The slice of the state with the identity of the Kafka cluster that answers under a name."""

from dataclasses import dataclass

from msgspec import Struct

from drover.events.traits import Traits
from drover.state.declared import ClusterSlice, items_by_key, recorded


class Outage(Struct, frozen=True, gc=False, omit_defaults=True):
    """An outage: since when (ms since the epoch) the owner cannot observe the cluster, and why."""

    since_ms: int
    detail: str


@dataclass(eq=False)
class IdentityState(ClusterSlice):
    """Kafka's own id of the cluster that was first seen, and of another one that answers now; None if there is none.

    `outage` is None while the owner can observe the cluster. `known_brokers` are the ids of all brokers that were ever
    seen alive there, sorted. `traits` are the behaviours of its version as last seen, None before the first answer.
    `unreachable_brokers` live without the listener by which Drover connects, each since when (ms of log time).
    """

    kafka_cluster_id: str | None = recorded("kafka_cluster_id", described_as=("kafka cluster id",))
    mismatched_kafka_cluster_id: str | None = recorded(
        "mismatched_kafka_cluster_id", described_as=("mismatched kafka cluster id",)
    )
    outage: Outage | None = recorded("outage", described_as=("outage",))
    known_brokers: tuple[int, ...] = recorded("known_brokers", (), described_as=("known brokers",))
    traits: Traits | None = recorded("traits", described_as=("traits",))
    unreachable_brokers: dict[int, int] = recorded(
        "unreachable_brokers",
        factory=dict,
        content=items_by_key,
        described_as=("unreachable broker", "unreachable", "reached, or gone"),
    )

    @property
    def is_right_cluster(self) -> bool:
        """Whether the cluster that was first seen under this name answers, as far as is known."""
        return self.kafka_cluster_id is not None and self.mismatched_kafka_cluster_id is None

    @property
    def is_migrating(self) -> bool:
        """Whether the cluster is being migrated from ZooKeeper to KRaft, during which no new work begins."""
        return self.traits is not None and self.traits.migrates
