"""The events about what a cluster is; no table needs them."""

from drover.tables.telling import CapabilityTables
from events import clusters

TABLES = CapabilityTables(
    name="identity",
    untold=frozenset(
        {
            clusters.BrokersSeen,
            clusters.ClusterIdentified,
            clusters.ClusterMismatched,
            clusters.ClusterMatched,
            clusters.ClusterOutOfReach,
            clusters.ClusterTraitsSeen,
            clusters.ClusterWithinReach,
            clusters.UnreachableBrokersChanged,
        }
    ),
)
