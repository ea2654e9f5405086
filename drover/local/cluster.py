"""The local cluster: up, down, and faults at will for one node at a time.

Owns the order in which things happen. Processes belong to `nodes`, what serving means to `probe`, files to `files`.
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
from drover.local import files, probe, security
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
from drover.local.nodes import Nodes
from drover.local.processes import ProcessState
from drover.local.programs import Programs, node_command, prepare
from drover.local.starting import Start, StartNodes, one_process_each
from drover.local.waiting import wait_until
from drover.local.wanted import DEFAULT_BROKERS, DEFAULT_RACKS, Wanted

SERVE_TIMEOUT_S = 120.0
# A clean stop saves a recovery of the data that are kept.
KEEP_GRACE_S = 30.0

Node = int | str


def nothing_more(_broker: BrokerSpec) -> str:
    """Add nothing to the settings of a broker."""
    return ""


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """One broker as it is now: `running`, `starting` (its process runs, its port is not open), `paused` or `dead`."""

    id: int
    rack: str
    state: str


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster as it is now; states of the controllers, by name, and of the ZooKeeper have the words of a broker's."""

    bootstrap: str
    zookeeper: str
    brokers: tuple[BrokerStatus, ...]
    controller_states: Mapping[str, str]
    zookeeper_state: str
    kafka: str


class LocalCluster:
    """The cluster of one directory, whoever started it; all state is on disk, so any process may hold such an object.

    A node is a broker's id, 100 for the controller (101 and so on for more), or "zookeeper". Wherever there is no
    cluster in the directory, or no such node, it is a ConfigurationError.
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
        """Where it keeps everything."""
        return self._layout.directory

    @property
    def config_file(self) -> Path:
        """The drover.toml that calls this cluster `local`."""
        return self._layout.config_file

    @property
    def spec(self) -> ClusterSpec:
        """What was chosen at the first `up`."""
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
        """What kafka-python needs to come in as one who may do everything."""
        return security.client_options(self._layout, ADMIN) if self.spec.secure else {}

    def config_of(self, user: str) -> Path:
        """Return the settings file of the worker's user, the operator or the admin; without users it is the one."""
        known = self.spec.secure and user != WORKER
        return self._layout.user_config_file(user) if known else self.config_file

    def connection(self, topics: TopicNames | None = None) -> LogConnection:
        """Return how to reach it with aiokafka, as one who may do everything."""
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
    ) -> bool:
        """Start the cluster, return when every broker serves and knows every other; True if this call started it.

        With `secure` clients need TLS and a password, and may do what `drover.client.acls` says. `kafka` is one of the
        locked versions, and `controllers` how many there are; none means ZooKeeper mode, which Kafka 3 still has.
        `more_settings` are further lines of a broker's settings, which count more than its own.

        All or nothing: when a node dies, the deadline passes or the caller is cancelled, everything is taken down
        again. Idempotent: a cluster of which anything runs is left as it is, but for the rest of an `up` that was
        killed, which is cleared away. Data that `down(keep=True)` kept is used again; another size or version than it
        had is a ConfigurationError.
        """
        wanted = Wanted(brokers, racks, secure, kafka, controllers)
        wanted.check()
        async with exclusive(self.directory):
            files.check_directory(self._layout)
            known = read_spec(self._layout)
            if known is not None and not self.config_file.exists():
                await self._take_down(keep=False)
                known = None
            if known is not None:
                wanted.check_same(known, self.directory)
                if self._nodes.named():
                    return False
            async with AsyncExitStack() as undo:
                undo.push_async_callback(self._take_down, keep=known is not None)
                spec = known or wanted.reserve(self._layout)
                programs = await self._ready_programs(spec)
                files.write_files(self._layout, spec, more_settings)
                await self._start_nodes(Start(self._layout, self._nodes, spec, programs, timeout_s))
                await self.wait_until_serving(timeout_s=timeout_s)
                if spec.secure:
                    await self._grant(TopicNames())
                files.write_config(self._layout, spec)
                undo.pop_all()
        return True

    async def down(self, *, keep: bool = False) -> bool:
        """End every process of the cluster and remove its files (with `keep`, leave data and ports for the next `up`).

        Data that are thrown away need no clean stop: with `keep` only, brokers hand over and close their logs first.
        Works whoever started it and whatever state it is in; True if there was anything to take down. Idempotent.
        """
        async with exclusive(self.directory):
            was_there = read_spec(self._layout) is not None or bool(self._nodes.all())
            await self._take_down(keep=keep, grace_s=KEEP_GRACE_S if keep else 0.0)
        return was_there

    async def status(self) -> ClusterStatus:
        """Look at every node; reads the operating system and tries the ports, asks nobody."""
        spec = self.spec
        found = await asyncio.gather(*(self.node_state(node) for node in spec.nodes))
        states = dict(zip(spec.nodes, found, strict=True))
        brokers = tuple(BrokerStatus(broker.id, broker.rack, states[str(broker.id)]) for broker in spec.brokers)
        controllers = {node: states[node] for node in spec.controllers}
        return ClusterStatus(spec.bootstrap, spec.zookeeper, brokers, controllers, states[ZOOKEEPER], spec.kafka)

    async def node_state(self, node: Node) -> str:
        """Return one node's state in the words of `BrokerStatus`."""
        state = self.process_state(node)
        if state is ProcessState.RUNNING and not await probe.accepts_connections(self.spec.port(str(node))):
            return "starting"
        return state.value

    def process_state(self, node: Node) -> ProcessState:
        """Return what the node's process does."""
        return self._nodes.state(self._nodes.name(node))

    def pid(self, node: Node) -> int:
        """Return the process id of a node that lives; a dead one is a ConfigurationError."""
        return self._nodes.living(self._nodes.name(node)).pid

    def log_file(self, node: Node) -> Path:
        """Return the file that a node's output is appended to; there is none before its first start."""
        return self._layout.log_file(self._nodes.name(node))

    async def kill(self, node: Node) -> None:
        """End a node at once, as a power cut would (SIGKILL), paused or not; returns when it is dead. Idempotent."""
        await self._nodes.kill(self._nodes.killable(node))

    async def stop(self, node: Node) -> None:
        """End a node as its operator would (SIGTERM): a broker hands its leaderships over first; see `Nodes.stop`."""
        await self._nodes.stop(self._nodes.killable(node))

    async def pause(self, node: Node) -> None:
        """Stop a node's process without ending it (SIGSTOP): connections stay open, nothing answers. Idempotent."""
        await self._nodes.signal(self._nodes.killable(node), signal.SIGSTOP, ProcessState.PAUSED)

    async def resume(self, node: Node) -> None:
        """Let a paused node go on (SIGCONT); returns when its process runs, see `wait_until_serving`. Idempotent."""
        await self._nodes.signal(self._nodes.killable(node), signal.SIGCONT, ProcessState.RUNNING)

    async def start(self, node: Node, *, kafka: str | None = None, timeout_s: float = SERVE_TIMEOUT_S) -> bool:
        """Start a dead node on its old data and port, return when it serves again; True if this call started it.

        `kafka` is another locked version than the cluster's, for this start only, as in a rolling upgrade; whether it
        understands the data is for Kafka to say. A node that runs already is waited for. A paused one is a
        ConfigurationError: it must be resumed.
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
        """Return when these nodes (default: all) serve; for a broker, when every running broker knows it.

        A node that is dead or dies meanwhile, and the deadline, are ClusterUnavailableErrors with the end of its log.
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
        # As one node asks another: a probe has no password.
        context = security.node_context(self._layout, name) if spec.secure else None
        views = await asyncio.gather(*(probe.known_brokers(broker.probe_port, context) for broker in running))
        # Its own view must be among them: the others go on listing a killed broker until its session ends.
        return name in {str(broker.id) for broker in running} and all(int(name) in view for view in views)

    async def _grant(self, topics: TopicNames) -> None:
        """Let each user do what its part needs, and nothing else; harmless when repeated."""
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
    """Run a cluster for the length of a block: up before it, down after it, whatever happened inside."""
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
