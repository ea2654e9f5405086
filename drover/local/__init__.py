"""A real Kafka cluster and ZooKeeper on this machine as child processes, for the demo, the tests and the benchmarks."""

from drover.local.cluster import BrokerStatus, ClusterStatus, LocalCluster, local_cluster
from drover.local.processes import ProcessState
from drover.local.programs import Programs, prepare
from drover.local.waiting import wait_until
from drover.local.zookeeper import LocalZooKeeper

__all__ = [
    "BrokerStatus",
    "ClusterStatus",
    "LocalCluster",
    "LocalZooKeeper",
    "ProcessState",
    "Programs",
    "local_cluster",
    "prepare",
    "wait_until",
]
