"""Which Java runs the nodes, with which class path and flags; and the command line of each node."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from py4j.java_gateway import find_jar_path

from drover.jars import KAFKA_VERSION, class_path, ensure, find_java, kafka_set
from drover.jars.class_archives import Archives, archives_for
from drover.local.layout import FORMATTER, SHARED, ZOOKEEPER, Layout
from drover.local.shared_process import MAIN

JVM_FLAGS = (
    "-Xmx256m",
    "-Xms64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    # A local broker calls most methods too seldom to have them compiled for minutes. With a fifth of the thresholds
    # it takes almost a third less processor time while idle, and a tenth more to start.
    "-XX:CompileThresholdScaling=0.2",
    "-XX:-UsePerfData",  # would leave a file in the system's temporary directory when killed
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
)

# ZooKeeper keeps its last transactions in memory, 500 by default, however large: half a megabyte each is 250 MB.
ZOOKEEPER_FLAGS = ("-Xmx512m", "-Dzookeeper.commitLogCount=50")

# What one broker needs; a process that several nodes share gets as much for each.
NODE_HEAP_MB = 128

# The broker whose process records what it loads; see `drover.jars.class_archives`.
RECORDER = "1"


@dataclass(frozen=True, slots=True)
class Programs:
    """What the nodes are run with; made by `prepare`. `archives` are the Kafka nodes' class data archives, if any."""

    java: Path
    kafka_class_path: str
    zookeeper_class_path: str
    archives: Archives | None = None
    kafka: str = KAFKA_VERSION


def prepare(kafka: str = KAFKA_VERSION) -> Programs:
    """Find Java and fetch what the cache lacks; blocks, and may show a download on stderr."""
    java = find_java()
    # One class path for all, so that one archive serves a node alone and the process that several share.
    path = os.pathsep.join((class_path(ensure(kafka_set(kafka))), find_jar_path()))
    return Programs(java, path, class_path(ensure("zookeeper")), archives_for(java, JVM_FLAGS, path), kafka)


def mark(layout: Layout) -> str:
    """Return the argument that every JVM of this cluster carries, so that none can be lost."""
    return f"-Ddrover.local={layout.directory}"


def node_command(programs: Programs, layout: Layout, node: str) -> list[str]:
    """Return the command line that runs a node."""
    settings = str(layout.settings_file(node))
    if node == ZOOKEEPER:
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        return [*_jvm(programs, layout, node), *ZOOKEEPER_FLAGS, main, settings]
    return [
        *_jvm(programs, layout, node),
        *_archive_flags(programs, layout, records=node == RECORDER),
        "kafka.Kafka",
        settings,
    ]


def shared_command(programs: Programs, layout: Layout, nodes: Sequence[str]) -> list[str]:
    """Return the command line of the process that several nodes share; it starts none of them by itself."""
    heap = f"-Xmx{len(nodes) * NODE_HEAP_MB}m"
    return [*_jvm(programs, layout, SHARED), heap, *_archive_flags(programs, layout, records=RECORDER in nodes), *MAIN]


def format_command(programs: Programs, layout: Layout, arguments: Path) -> list[str]:
    """Return the command line that formats the controller's log directory; its arguments are in a file."""
    flags = () if programs.archives is None else programs.archives.use_flags
    # The tool takes a file in place of arguments, and every user of this machine can read a command line.
    return [*_jvm(programs, layout, FORMATTER), *flags, "kafka.tools.StorageTool", f"@{arguments}"]


def node_environment(programs: Programs, node: str) -> dict[str, str]:
    """Return the environment of a node: this process's own, with the class path (too long for a command line)."""
    path = programs.zookeeper_class_path if node == ZOOKEEPER else programs.kafka_class_path
    return {**os.environ, "CLASSPATH": path}


def _archive_flags(programs: Programs, layout: Layout, *, records: bool) -> tuple[str, ...]:
    """Let every Kafka node use the archives; while there is none of a broker's classes, one process records it."""
    archives = programs.archives
    if archives is None:
        return ()
    if records and not archives.classes.exists():
        return archives.record_flags(layout.class_archive)
    return archives.use_flags


def _jvm(programs: Programs, layout: Layout, node: str) -> list[str]:
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
