"""Several Kafka nodes in one JVM, as Kafka's own tests run them: half the time to start, a third of the memory.

The nodes are the same classes that `kafka.Kafka` runs, with the same settings, and speak with each other over the same
sockets. They differ only in that they start and die together. The JVM starts as a Py4J gateway, protected by a token.
Through it the nodes are started, and then it is closed.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path
from py4j.protocol import Py4JError

from drover.errors import ClusterUnavailableError, ConfigurationError
from drover.local.deadline import wait_until
from drover.local.layout import ZOOKEEPER
from drover.local.node_processes import Start, one_process_each
from drover.local.processes import ProcessState
from drover.local.programs import jvm_command
from drover.time_limits import time_limit

MAIN = ("py4j.GatewayServer", "--enable-auth", "0")
# The name of the process, as if it were a node.
SHARED = "shared"
# The heap for each node in it.
NODE_HEAP_MB = 128


@dataclass(frozen=True, slots=True)
class SharedProcess:
    """Starts the brokers and controllers of a local cluster in one JVM, except those that are `killable`.

    Give it to a cluster: `local_cluster(directory, start_nodes=SharedProcess(killable=(3,)))`. A killable node has its
    own process, and so has the ZooKeeper. The others cannot be killed, stopped or paused alone, and `down` ends them
    without a clean stop. Raises `ConfigurationError` in ZooKeeper mode, whose brokers cannot share a process.
    """

    killable: Collection[int | str] = ()

    async def __call__(self, start: Start) -> None:
        """Start every node; brokers start beside the controllers' formatting and wait for them.

        Raises `ClusterUnavailableError` if a node cannot be started.
        """
        if start.spec.in_zookeeper_mode:
            raise ConfigurationError("the nodes of a cluster in ZooKeeper mode cannot share a process")
        killable = {str(node) for node in self.killable}
        shared = [node for node in start.spec.kafka_nodes if node not in killable]
        if not shared:
            await one_process_each(start)
            return
        log_file = start.layout.log_file(SHARED)
        log_begins = log_file.stat().st_size if log_file.exists() else 0
        _spawn(start, shared)
        start.spawn(*(str(broker.id) for broker in start.spec.brokers if str(broker.id) in killable), ZOOKEEPER)
        async with _connected(start, log_begins) as gateway:
            await start.format_controllers()
            start.spawn(*(node for node in start.spec.controllers if node in killable))
            await _start_nodes(start, gateway, shared)


@dataclass(frozen=True, slots=True)
class Address:
    """The port of a Py4J gateway on loopback, and the token that it requires."""

    port: int
    token: str


def parse_address(output: str) -> Address | None:
    """Return the port and the token that a JVM started with `MAIN` prints in two lines; None while they are incomplete.

    Warnings of the JVM may come before them.
    """
    lines = output.splitlines(keepends=True)
    for port, token in pairwise(lines):
        if port.strip().isdecimal() and token.endswith("\n"):
            return Address(int(port), token.strip())
    return None


def _spawn(start: Start, nodes: Sequence[str]) -> None:
    """Start the JVM without any node; the pid file and the log of each node become links to those of the JVM."""
    layout = start.layout
    layout.node(SHARED).mkdir(parents=True, exist_ok=True)
    for node in nodes:
        for file in (layout.pid_file(node), layout.log_file(node)):
            file.unlink(missing_ok=True)
            file.symlink_to(Path("..", SHARED, file.name))
    programs = replace(
        start.programs, kafka_class_path=os.pathsep.join((start.programs.kafka_class_path, find_jar_path()))
    )
    heap = f"-Xmx{len(nodes) * NODE_HEAP_MB}m"
    start.nodes.spawn(SHARED, [*jvm_command(programs, layout, SHARED), heap, *MAIN], programs)


@asynccontextmanager
async def _connected(start: Start, log_begins: int) -> AsyncIterator[JavaGateway]:
    """Connect to the gateway of the JVM, whose address is in its log; close the gateway at the end of the block."""
    log_file = start.layout.log_file(SHARED)

    def printed() -> Address | None:
        return parse_address(log_file.read_bytes()[log_begins:].decode(errors="replace"))

    def has_printed_or_died() -> bool:
        return printed() is not None or start.nodes.state(SHARED) is ProcessState.DEAD

    await wait_until(has_printed_or_died, what="the shared process has a gateway", timeout_s=start.timeout_s)
    address = printed()
    if address is None:
        raise ClusterUnavailableError(f"the shared process is dead; {start.nodes.log_end(SHARED)}")
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=address.port, auth_token=address.token))
    try:
        yield gateway
    finally:
        await asyncio.to_thread(gateway.shutdown)


async def _start_nodes(start: Start, gateway: JavaGateway, nodes: Sequence[str]) -> None:
    """Start the nodes in the JVM, all at once; returns when each has started."""
    settings_files = [start.layout.settings_file(node) for node in nodes]
    try:
        async with time_limit(start.timeout_s):
            await asyncio.gather(*(asyncio.to_thread(_start_node, gateway, file) for file in settings_files))
    except TimeoutError as error:
        late = f"not within {start.timeout_s:g} s: the nodes of the shared process start"
        raise ClusterUnavailableError(f"{late}; {start.nodes.log_end(SHARED)}") from error


def _start_node(gateway: JavaGateway, settings_file: Path) -> None:
    jvm = gateway.jvm
    try:
        settings = jvm.java.util.Properties()
        settings.load(jvm.java.io.FileInputStream(str(settings_file)))
        config = jvm.kafka.server.KafkaConfig.fromProps(settings, False)
        jvm.kafka.server.KafkaRaftServer(config, jvm.org.apache.kafka.common.utils.Time.SYSTEM).startup()
    except Py4JError as error:
        raise ClusterUnavailableError(f"the node of {settings_file} could not start: {error}") from error
