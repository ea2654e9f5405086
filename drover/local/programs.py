"""The Java, class path and flags of the nodes, and the command line of each node."""

import os
from dataclasses import dataclass
from pathlib import Path

from drover.jars import KAFKA_VERSION, class_path, ensure, find_java, kafka_set
from drover.local.layout import FORMATTER, ZOOKEEPER, Layout

JVM_FLAGS = (
    "-Xmx256m",
    "-Xms64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    # With the default thresholds, most methods of a local broker are not compiled for minutes. A fifth of them saves
    # almost a third of the processor time while idle, and costs a tenth more at the start.
    "-XX:CompileThresholdScaling=0.2",
    "-XX:-UsePerfData",  # else a killed JVM leaves a file in the system's temporary directory
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
)

# ZooKeeper keeps its last 500 transactions in memory by default: 250 MB if each has half a megabyte.
ZOOKEEPER_FLAGS = ("-Xmx512m", "-Dzookeeper.commitLogCount=50")


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs that run the nodes; made by `prepare`."""

    java: Path
    kafka_class_path: str
    zookeeper_class_path: str
    kafka: str = KAFKA_VERSION


def prepare(kafka: str = KAFKA_VERSION) -> Programs:
    """Find Java and download missing jars into the cache; blocks, and may show the download on stderr."""
    return Programs(find_java(), class_path(ensure(kafka_set(kafka))), class_path(ensure("zookeeper")), kafka)


def mark(layout: Layout) -> str:
    """Return the argument that marks every JVM of this cluster, so that all of them can be found."""
    return f"-Ddrover.local={layout.directory}"


def node_command(programs: Programs, layout: Layout, node: str) -> list[str]:
    """Return the command line that runs a node."""
    settings = str(layout.settings_file(node))
    if node == ZOOKEEPER:
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        return [*jvm_command(programs, layout, node), *ZOOKEEPER_FLAGS, main, settings]
    return [*jvm_command(programs, layout, node), "kafka.Kafka", settings]


def format_command(programs: Programs, layout: Layout, arguments: Path) -> list[str]:
    """Return the command line that formats the controller's log directory; its arguments are in a file."""
    # In a file, because every user of this machine can read command lines.
    return [*jvm_command(programs, layout, FORMATTER), "kafka.tools.StorageTool", f"@{arguments}"]


def node_environment(programs: Programs, node: str) -> dict[str, str]:
    """Return the environment of a node: this process's own, with the class path (too long for a command line)."""
    path = programs.zookeeper_class_path if node == ZOOKEEPER else programs.kafka_class_path
    return {**os.environ, "CLASSPATH": path}


def jvm_command(programs: Programs, layout: Layout, node: str) -> list[str]:
    """Return the beginning of a node's command line: Java and its flags, the cluster's mark among them."""
    return [
        str(programs.java),
        *JVM_FLAGS,
        _logging_flag(programs, layout, node),
        f"-Djava.io.tmpdir={layout.node(node)}",
        f"-XX:ErrorFile={layout.node(node)}/crash.log",
        mark(layout),
    ]


def _logging_flag(programs: Programs, layout: Layout, node: str) -> str:
    if node != ZOOKEEPER and programs.kafka.startswith("3."):
        return f"-Dlog4j.configuration={layout.old_logging_file.as_uri()}"
    return f"-Dlog4j2.configurationFile={layout.logging_file}"
