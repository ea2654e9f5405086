"""A local cluster in ZooKeeper mode that is migrated to KRaft as KIP-866 has it, node by node."""

import asyncio
import json
import socket
from collections.abc import Callable

from kazoo.client import KazooClient

from drover.local import LocalCluster
from drover.local.deadline import wait_until
from drover.local.layout import CONTROLLER, HOST, Layout
from drover.local.processes import Child, ProcessState, spawn, state_of
from drover.local.programs import Programs, format_command, mark, node_command, node_environment, prepare
from drover.local.settings import KAFKA_COMMON

SECURITY_MAP = "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
SESSIONS = "broker.heartbeat.interval.ms=500\nbroker.session.timeout.ms=3000\n"
FORMAT_TIMEOUT_S, CONNECT_TIMEOUT_S = 60.0, 10.0


class Migration:
    """The steps, in the order in which an operator takes them; the cluster's `down` ends the new controller, too."""

    def __init__(self, cluster: LocalCluster, programs: Programs, port: int) -> None:
        self._cluster = cluster
        self._layout = Layout(cluster.directory)
        self._programs = programs
        self._port = port
        self._quorum = f"controller.quorum.voters={CONTROLLER}@{HOST}:{port}\ncontroller.listener.names=CONTROLLER\n"

    async def start_controller(self) -> None:
        """Format and start a KRaft controller that takes over the metadata once every broker is ready for it."""
        directory = self._layout.node(CONTROLLER)
        directory.mkdir()
        settings = self._layout.settings_file(CONTROLLER)
        settings.write_text(
            f"process.roles=controller\nnode.id={CONTROLLER}\nlisteners=CONTROLLER://{HOST}:{self._port}\n"
            f"{self._quorum}{SECURITY_MAP}{SESSIONS}log.dirs={self._layout.data_directory(CONTROLLER)}\n"
            f"zookeeper.connect={self._cluster.zookeeper}\nzookeeper.metadata.migration.enable=true\n{KAFKA_COMMON}"
        )
        arguments = directory / "format.arguments"
        cluster_id = await asyncio.to_thread(_cluster_id, self._cluster.zookeeper)
        arguments.write_text(f"format\n--cluster-id={cluster_id}\n--config\n{settings}\n")
        tool = self._spawn(format_command(self._programs, self._layout, arguments))
        is_done = "the new controller's log directory is formatted"
        await wait_until(lambda: state_of(tool) is ProcessState.DEAD, what=is_done, timeout_s=FORMAT_TIMEOUT_S)
        self._spawn(node_command(self._programs, self._layout, CONTROLLER))

    async def prepare_broker(self, broker: int) -> None:
        """Restart a broker in ZooKeeper mode, ready for the migration."""
        more = f"zookeeper.metadata.migration.enable=true\n{self._quorum}{SECURITY_MAP}"
        await self._restart(broker, lambda text: text + more)

    async def turn_broker(self, broker: int) -> None:
        """Restart a broker with KRaft."""

        def turned(text: str) -> str:
            kept = [line for line in text.splitlines() if not line.startswith("zookeeper.")]
            kept = [line.replace("broker.id=", "node.id=", 1) for line in kept]
            return "\n".join(["process.roles=broker", *kept, SESSIONS])

        await self._restart(broker, turned)

    async def _restart(self, broker: int, change: Callable[[str], str]) -> None:
        await self._cluster.stop(broker)
        file = self._layout.settings_file(str(broker))
        file.write_text(change(file.read_text()))
        await self._cluster.start(broker)

    def _spawn(self, command: list[str]) -> Child:
        return spawn(
            command,
            mark(self._layout),
            node_environment(self._programs, CONTROLLER),
            self._layout.log_file(CONTROLLER),
            self._layout.pid_file(CONTROLLER),
        )


async def migration_of(cluster: LocalCluster) -> Migration:
    """Make the migration of a running cluster in ZooKeeper mode."""
    with socket.create_server((HOST, 0)) as server:
        port = int(server.getsockname()[1])
    return Migration(cluster, await asyncio.to_thread(prepare, cluster.spec.kafka), port)


def _cluster_id(zookeeper: str) -> str:
    client = KazooClient(zookeeper)
    client.start(timeout=CONNECT_TIMEOUT_S)
    try:
        return str(json.loads(client.get("/cluster/id")[0])["id"])
    finally:
        client.stop()
        client.close()
