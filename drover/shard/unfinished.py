"""Resume commands whose decision earlier batches have begun."""

from collections.abc import Iterable, Mapping

from drover.events.partitions import TopicPartition
from drover.reconcile.batch import BatchBuilder
from drover.shard import partly
from drover.shard.deciding import go_on
from drover.shard.managed import ManagedClusters


def resume(
    batch: BatchBuilder,
    names: Iterable[str],
    clusters: ManagedClusters,
    looked_for: frozenset[tuple[str, str]],
    unavailable: Mapping[str, str],
) -> None:
    """Resume each named cluster in turn, into this batch.

    `looked_for` holds the commands, by cluster and id, for which the cluster was observed before this batch began.
    `unavailable` says why a cluster could not be observed.
    """
    for name in names:
        go_on(batch, clusters.of(name), clusters, looked_for, unavailable.get(name))


def due(clusters: ManagedClusters) -> dict[tuple[str, str], tuple[TopicPartition, ...]]:
    """List the partitions to observe before the next part of each such command, by its cluster and id."""
    found: dict[tuple[str, str], tuple[TopicPartition, ...]] = {}
    for name in clusters.with_unfinished():
        needed = partly.looks_needed(clusters.of(name)) if name in clusters.scope.clusters else None
        if needed is not None:
            found[name, needed[0]] = needed[1].worth
    return found
