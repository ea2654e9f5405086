"""What clusters have not finished deciding: the next part of a large command, then the deferred ones."""

from collections.abc import Iterable, Mapping

from drover.capability.batch import BatchBuilder
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
    """Go on with these clusters, in this order; `looked_for` are the commands, by cluster and id, that were observed.

    `unavailable` says why a cluster could not be observed. A large command comes first: until its last part is decided,
    no other command of its cluster is.
    """
    for name in names:
        cluster, why = clusters.of(name), unavailable.get(name)
        go_on(batch, cluster, clusters, looked_for, why)
        release(batch, cluster, clusters, index, looked_for, why)
