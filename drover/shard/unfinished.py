"""Resume commands that earlier batches left undecided: first the rest of a large command, then deferred commands."""

from collections.abc import Iterable, Mapping

from drover.reconcile.batch import BatchBuilder
from drover.shard.deciding import CommandIndex, go_on
from drover.shard.deferred import release
from drover.shard.managed import ManagedClusters


def resume(
    batch: BatchBuilder,
    names: Iterable[str],
    clusters: ManagedClusters,
    index: CommandIndex,
    looked_for: frozenset[tuple[str, str]],
    unavailable: Mapping[str, str],
) -> None:
    """Resume each named cluster in turn, into this batch.

    `looked_for` holds the commands, by cluster and id, for which the cluster was observed before this batch began.
    `unavailable` says why a cluster could not be observed. A large command comes first: no other command of its cluster
    is decided before its last part.
    """
    for name in names:
        cluster, why = clusters.of(name), unavailable.get(name)
        go_on(batch, cluster, clusters, looked_for, why)
        release(batch, cluster, clusters, index, looked_for, why)
