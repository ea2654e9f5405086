"""S12: what the log says lacks replicas in sync is not dropped from there while it obviously still does."""

from drover.events.partitions import TopicPartition
from drover.state.cluster import ClusterState
from drover.testing.controller_model import Partition
from tests.simulation.cluster import SimulatedCluster

# What an owner records may be so old: brokers show old metadata for a while, and an owner may hang in between.
QUIET_MS = 10_000


class SuspensionWitness:
    """Follows which partitions the suspension of each cluster names, and when they changed last."""

    def __init__(self) -> None:
        self._named: dict[str, frozenset[TopicPartition]] = {}
        self._changed_ms: dict[tuple[str, TopicPartition], int] = {}

    def see(self, cluster: SimulatedCluster, key: TopicPartition) -> None:
        """Remember that a partition has changed."""
        self._changed_ms[cluster.name, key] = cluster.now_ms

    def hold(self, state: ClusterState, cluster: SimulatedCluster) -> None:
        """Hold what a record drops from a suspension to what the cluster shows; switched off, all of it goes."""
        before, named = self._named.get(state.name, frozenset()), state.below_min_isr
        self._named[state.name] = named
        if not state.limits.adapts_to_health:
            return
        for key in before - named:
            partition = cluster.model.partition(key)
            quiet_ms = cluster.now_ms - self._changed_ms.get((state.name, key), 0)
            is_short = partition is not None and _is_short(partition, cluster.model.min_isr(key.topic))
            assert not is_short or quiet_ms < QUIET_MS, f"S12: {key} lacks replicas since {quiet_ms} ms, and is dropped"


def _is_short(partition: Partition, min_isr: int) -> bool:
    own = len(partition.replicas) - len(partition.adding)
    return len(partition.isr) < min(min_isr, own)
