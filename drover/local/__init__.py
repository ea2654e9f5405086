"""A real Kafka cluster and ZooKeeper on this machine as child processes, for the demo, the tests and the benchmarks."""

from drover.local.cluster import BrokerStatus, ClusterStatus, LocalCluster, local_cluster
from drover.local.deadline import wait_until
from drover.local.node_processes import Start, StartNodes, one_process_each
from drover.local.processes import ProcessState
from drover.local.programs import Programs, prepare
from drover.local.zookeeper import LocalZooKeeper

__all__ = [
    "BrokerStatus",
    "ClusterStatus",
    "LocalCluster",
    "LocalZooKeeper",
    "ProcessState",
    "Programs",
    "Start",
    "StartNodes",
    "local_cluster",
    "one_process_each",
    "prepare",
    "wait_until",
]
