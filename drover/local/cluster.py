"""The local cluster: up, down, and faults of single nodes on demand.

This module decides the order of steps. `nodes` handles processes, `probe` checks whether they serve, `files` writes
and removes files.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drover.client.acls import Part, needs
from drover.cluster.acls import create_acls
from drover.errors import ClusterUnavailableError, ConfigurationError
from drover.events.topics import TopicNames
from drover.jars import KAFKA_VERSION
from drover.journal.connection import LogConnection
from drover.journal.topics import nothing_told
from drover.local import files, probe, security
from drover.local.deadline import wait_until
from drover.local.exclusive import exclusive
from drover.local.layout import (
    ADMIN,
    OPERATOR,
    WORKER,
    ZOOKEEPER,
    BrokerSpec,
    ClusterSpec,
    Layout,
    read_spec,
)
from drover.local.node_processes import Start, StartNodes, one_process_each
from drover.local.nodes import Nodes
from drover.local.processes import ProcessState
from drover.local.programs import Programs, node_command, prepare
from drover.local.wanted import DEFAULT_BROKERS, DEFAULT_RACKS, Wanted

SERVE_TIMEOUT_S = 120.0
# A clean stop avoids the recovery of data that are kept.
KEEP_GRACE_S = 30.0

Node = int | str


def nothing_more(_broker: BrokerSpec) -> str:
    """Add nothing to the settings of a broker."""
    return ""


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """A broker's current state: `running`, `starting` (its process runs, its port is closed), `paused` or `dead`."""

    id: int
    rack: str
    state: str


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster's current state; the controllers, by name, and the ZooKeeper have the same states as brokers."""

    bootstrap: str
    zookeeper: str
    brokers: tuple[BrokerStatus, ...]
    controller_states: Mapping[str, str]
    zookeeper_state: str
    kafka: str


class LocalCluster:
    """The cluster in a directory, no matter who started it; all state is on disk, so any process may use this class.

    A node is a broker's id, 100 for the controller (101 and so on for more), or "zookeeper". Methods raise
    `ConfigurationError` if the directory has no cluster, or the cluster no such node.
    """

    def __init__(
        self, directory: Path, programs: Programs | None = None, start_nodes: StartNodes = one_process_each
    ) -> None:
        self._layout = Layout(directory.resolve())
        self._nodes = Nodes(self._layout)
        self._programs = programs
        self._start_nodes = start_nodes

    @property
    def directory(self) -> Path:
        """The directory of the cluster's files."""
        return self._layout.directory

    @property
    def config_file(self) -> Path:
        """The drover.toml that calls this cluster `local`."""
        return self._layout.config_file

    @property
    def spec(self) -> ClusterSpec:
        """The size and addresses that were chosen at the first `up`."""
        return self._nodes.spec

    @property
    def bootstrap(self) -> str:
        """Every broker's address, joined by commas."""
        return self.spec.bootstrap

    @property
    def zookeeper(self) -> str:
        """The ZooKeeper's address."""
        return self.spec.zookeeper

    @property
    def admin_options(self) -> dict[str, Any]:
        """The options of kafka-python for a user with all rights."""
        return security.client_options(self._layout, ADMIN) if self.spec.secure else {}

    def config_of(self, user: str) -> Path:
        """Return the settings file of the worker, the operator or the admin; without security, they share one."""
        has_own = self.spec.secure and user != WORKER
        return self._layout.user_config_file(user) if has_own else self.config_file

    def connection(self, topics: TopicNames | None = None) -> LogConnection:
        """Return a connection for aiokafka, as a user with all rights."""
        return LogConnection(self.bootstrap, topics or TopicNames(), self.admin_options)

    async def up(
        self,
        brokers: int | None = None,
        racks: int | None = None,
        *,
        secure: bool = False,
        kafka: str | None = None,
        controllers: int | None = None,
        more_settings: Callable[[BrokerSpec], str] = nothing_more,
        timeout_s: float = SERVE_TIMEOUT_S,
        tell: Callable[[str], None] = nothing_told,
    ) -> bool:
        """Start the cluster; return, once every broker serves and knows every other, whether this call started it.

        With `secure`, clients need TLS and a password, and have the rights of `drover.client.acls`. `kafka` is one of
        the locked versions. Without `controllers` the cluster is in ZooKeeper mode, which Kafka 3 still has.
        `more_settings` are further lines of a broker's settings, which override its own. `tell` hears what comes next.

        All or nothing: if a node dies, the deadline passes or the caller is cancelled, everything is stopped again.
        Idempotent: a running cluster is left as it is, except that the remains of a killed `up` are removed. Data of
        `down(keep=True)` are used again. Raises `ConfigurationError` for another size or version than these data have.
        """
        wanted = Wanted(brokers, racks, secure, kafka, controllers)
        wanted.check()
        async with exclusive(self.directory):
            files.check_directory(self._layout)
            existing = read_spec(self._layout)
            if existing is not None and not self.config_file.exists():
                await self._take_down(keep=False)
                existing = None
            if existing is not None:
                wanted.check_same(existing, self.directory)
                if self._nodes.named():
                    return False
            async with AsyncExitStack() as undo:
                undo.push_async_callback(self._take_down, keep=existing is not None)
                spec = existing or wanted.reserve(self._layout)
                programs = await self._ready_programs(spec)
                files.write_files(self._layout, spec, more_settings)
                tell(f"Starting {len(spec.nodes)} nodes: {', '.join(spec.nodes)} ...")
                await self._start_nodes(Start(self._layout, self._nodes, spec, programs, timeout_s))
                tell("Waiting until every broker serves and knows every other ...")
                await self.wait_until_serving(timeout_s=timeout_s)
                if spec.secure:
                    tell("Granting the ACLs of Drover ...")
                    await self._grant(TopicNames())
                files.write_config(self._layout, spec)
                undo.pop_all()
        return True

    async def down(self, *, keep: bool = False) -> bool:
        """End every process of the cluster and remove its files; with `keep`, leave data and ports for the next `up`.

        Only with `keep` do brokers stop cleanly; otherwise their data are removed anyway. Works in any state, no matter
        who started the cluster. Returns whether there was anything to stop or remove. Idempotent.
        """
        async with exclusive(self.directory):
            was_there = read_spec(self._layout) is not None or bool(self._nodes.all())
            await self._take_down(keep=keep, grace_s=KEEP_GRACE_S if keep else 0.0)
        return was_there

    async def status(self) -> ClusterStatus:
        """Return the state of every node, from its process and its port, without a request to it."""
        spec = self.spec
        node_states = await asyncio.gather(*(self.node_state(node) for node in spec.nodes))
        states = dict(zip(spec.nodes, node_states, strict=True))
        brokers = tuple(BrokerStatus(broker.id, broker.rack, states[str(broker.id)]) for broker in spec.brokers)
        controllers = {node: states[node] for node in spec.controllers}
        return ClusterStatus(spec.bootstrap, spec.zookeeper, brokers, controllers, states[ZOOKEEPER], spec.kafka)

    async def node_state(self, node: Node) -> str:
        """Return a node's state, as in `BrokerStatus`."""
        state = self.process_state(node)
        if state is ProcessState.RUNNING and not await probe.accepts_connections(self.spec.port(str(node))):
            return "starting"
        return state.value

    def process_state(self, node: Node) -> ProcessState:
        """Return the state of a node's process."""
        return self._nodes.state(self._nodes.name(node))

    def pid(self, node: Node) -> int:
        """Return the process id of a living node. Raises `ConfigurationError` for a dead one."""
        return self._nodes.living(self._nodes.name(node)).pid

    def log_file(self, node: Node) -> Path:
        """Return the file with a node's output; it does not exist before the node's first start."""
        return self._layout.log_file(self._nodes.name(node))

    async def kill(self, node: Node) -> None:
        """Kill a node (SIGKILL), as a power cut would, paused or not; return when it is dead. Idempotent."""
        await self._nodes.kill(self._nodes.killable(node))

    async def stop(self, node: Node) -> None:
        """Stop a node as its operator would (SIGTERM), so that a broker hands over its leaders; see `Nodes.stop`."""
        await self._nodes.stop(self._nodes.killable(node))

    async def pause(self, node: Node) -> None:
        """Pause a node's process (SIGSTOP): its connections stay open, but it does not answer. Idempotent."""
        await self._nodes.signal(self._nodes.killable(node), signal.SIGSTOP, ProcessState.PAUSED)

    async def resume(self, node: Node) -> None:
        """Resume a paused node (SIGCONT); return when its process runs, see `wait_until_serving`. Idempotent."""
        await self._nodes.signal(self._nodes.killable(node), signal.SIGCONT, ProcessState.RUNNING)

    async def start(self, node: Node, *, kafka: str | None = None, timeout_s: float = SERVE_TIMEOUT_S) -> bool:
        """Start a dead node on its old data and port; return, once it serves, whether this call started it.

        `kafka` is another locked version than the cluster's, for this start only, as in a rolling upgrade; Kafka judges
        whether it can read the data. Waits for a node that runs already. Raises `ConfigurationError` for a paused node,
        which must be resumed.
        """
        name = self._nodes.killable(node)
        programs = await (self._ready_programs(self.spec) if kafka is None else asyncio.to_thread(prepare, kafka))
        async with exclusive(self.directory):
            state = self._nodes.state(name)
            if state is ProcessState.PAUSED:
                raise ConfigurationError(f"node {name} is paused: drover local resume {name} --dir {self.directory}")
            if state is ProcessState.DEAD:
                self._nodes.spawn(name, node_command(programs, self._layout, name), programs)
        await self.wait_until_serving(name, timeout_s=timeout_s)
        return state is ProcessState.DEAD

    async def wait_until_serving(self, *nodes: Node, timeout_s: float = SERVE_TIMEOUT_S) -> None:
        """Wait until these nodes (default: all) serve; a broker serves once every running broker knows it.

        Raises `ClusterUnavailableError`, with the end of the node's log, if a node is dead or the deadline passes.
        """
        spec = self.spec
        waiting = [self._nodes.name(node) for node in nodes] or list(spec.nodes)
        dead: list[str] = []

        async def all_serve() -> bool:
            dead.extend(name for name in waiting if self._nodes.state(name) is ProcessState.DEAD)
            serving = [name for name in waiting if not dead and await self._serves(spec, name)]
            waiting[:] = [name for name in waiting if name not in serving]
            return not waiting or bool(dead)

        try:
            await wait_until(all_serve, what=f"the cluster in {self.directory} serves", timeout_s=timeout_s)
        except ClusterUnavailableError as error:
            raise ClusterUnavailableError(
                f"{error}; still waiting for {', '.join(waiting)}; {self._nodes.log_end(waiting[0])}"
            ) from error
        if dead:
            raise ClusterUnavailableError(f"node {dead[0]} is dead; {self._nodes.log_end(dead[0])}")

    async def _serves(self, spec: ClusterSpec, name: str) -> bool:
        if name == ZOOKEEPER:
            return await probe.zookeeper_serves(spec.zookeeper_port)
        if name in spec.controllers:
            return await probe.accepts_connections(spec.port(name))
        running = [broker for broker in spec.brokers if self._nodes.state(str(broker.id)) is ProcessState.RUNNING]
        # The probe connects as a node does, because it has no password.
        context = security.node_context(self._layout, name) if spec.secure else None
        views = await asyncio.gather(*(probe.known_brokers(broker.probe_port, context) for broker in running))
        # Include the broker's own view: the others list a killed broker until its session ends.
        return name in {str(broker.id) for broker in running} and all(int(name) in view for view in views)

    async def _grant(self, topics: TopicNames) -> None:
        """Grant each user exactly the ACLs that its part needs; harmless if repeated."""
        users = {Part.WORKER: WORKER, Part.OPERATOR: OPERATOR}
        needed = {
            acl
            for need in needs(topics, f"{topics.prefix}-worker")
            if need.part in users
            for acl in need.acls(users[need.part])
        }
        await create_acls(self.bootstrap, sorted(needed), self.admin_options)

    async def _take_down(self, *, keep: bool, grace_s: float = 0.0) -> None:
        await self._nodes.end_all(grace_s=grace_s, wake_paused=keep)
        if not keep:
            files.remove_files(self._layout)

    async def _ready_programs(self, spec: ClusterSpec) -> Programs:
        if self._programs is None or self._programs.kafka != spec.kafka:
            self._programs = await asyncio.to_thread(prepare, spec.kafka)
        return self._programs


@asynccontextmanager
async def local_cluster(
    directory: Path,
    brokers: int = DEFAULT_BROKERS,
    racks: int = DEFAULT_RACKS,
    *,
    secure: bool = False,
    kafka: str = KAFKA_VERSION,
    controllers: int = 1,
    start_nodes: StartNodes = one_process_each,
    more_settings: Callable[[BrokerSpec], str] = nothing_more,
) -> AsyncIterator[LocalCluster]:
    """Run a cluster for the length of a block; it is always taken down at the end."""
    cluster = LocalCluster(directory, start_nodes=start_nodes)
    await cluster.up(
        brokers,
        racks,
        secure=secure,
        kafka=kafka,
        controllers=controllers,
        more_settings=more_settings,
    )
    try:
        yield cluster
    finally:
        await cluster.down()
