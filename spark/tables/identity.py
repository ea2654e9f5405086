"""The events about a cluster's identity; no table needs them."""

from drover.events import clusters
from drover.spark.tables.handlers import CapabilityTables

TABLES = CapabilityTables(
    name="identity",
    unhandled=frozenset(
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
