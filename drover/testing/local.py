"""A whole Drover on a real local cluster: topics and settings of its own, workers and commands as child processes."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from drover.client.client import Client
from drover.client.history import FoldedLog, open_log, read_log
from drover.cluster.kafka import KafkaDriver
from drover.cluster.topics import TopicSpec, create_topics
from drover.events.partitions import TopicPartition
from drover.events.topics import TopicNames
from drover.facts import PartitionFacts
from drover.jars import KAFKA_VERSION
from drover.journal import topics as own_topics
from drover.journal.connection import LogConnection
from drover.journal.producer import LogProducer
from drover.journal.reader import LogReader
from drover.local import LocalCluster, local_cluster
from drover.state.cluster import ClusterState
from drover.testing.commands import DROVER, Commands, DroverProcess, Finished, PythonCommands

# The name of the managed cluster.
MANAGED = "local"
RECORD_BYTES = 64 * 1024
# A broker on a busy machine takes its time to create a topic.
CREATED_WITHIN_MS = 60_000
# More would exceed the producer's time limit on a busy machine.
RECORDS_AT_ONCE = 8
# A deadline only ends a hang: a busy machine may stall for ten seconds, and brokers then elect leaders.
DEADLINE_S = 120.0
# A test's own driver waits for brokers that may be busy for seconds.
CALL_TIMEOUT_MS = 20_000
# The pause before a condition is checked again: a share of the time waited so far, up to the longest.
PAUSED_SHARE, LONGEST_PAUSE_S = 0.15, 0.5


async def holds_within(condition: Callable[[], Awaitable[bool]], timeout_s: float, pause_s: float = 0.05) -> bool:
    """Wait until a condition holds, at most for `timeout_s`; return whether it does.

    The pauses grow with the time waited, since most conditions ask a cluster that is busy.
    """
    began = time.monotonic()
    while not await condition():
        waited_s = time.monotonic() - began
        if waited_s >= timeout_s:
            return False
        await asyncio.sleep(max(pause_s, min(waited_s * PAUSED_SHARE, LONGEST_PAUSE_S)))
    return True


async def wait_for(
    condition: Callable[[], Awaitable[bool]], goal: str, timeout_s: float = DEADLINE_S, pause_s: float = 0.05
) -> float:
    """Wait until a condition holds and return the seconds it took; `AssertionError` with `goal` at the deadline."""
    began = time.monotonic()
    assert await holds_within(condition, timeout_s, pause_s), f"not within {timeout_s:.0f} s: {goal}"
    return time.monotonic() - began


class FollowedLog:
    """Every shard of a log, folded further on each call, over one connection."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection = connection
        self._in_turn = asyncio.Lock()
        self._reader: LogReader | None = None
        self._log = FoldedLog({})

    async def up_to_now(self) -> FoldedLog:
        """Fold the new records; after a failure, the next call starts over."""
        async with self._in_turn:
            is_whole = False
            try:
                log = await self._read_on()
                is_whole = True
                return log
            finally:
                if not is_whole:
                    await self.close()

    async def _read_on(self) -> FoldedLog:
        if self._reader is None:
            reader = await LogReader(self._connection).__aenter__()
            self._reader = reader
            self._log = await open_log(reader, self._connection)
        async for _ in read_log(self._reader, self._connection, self._log):
            pass
        return self._log

    async def close(self) -> None:
        """Disconnect. Idempotent."""
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.__aexit__(None, None, None)


@dataclass(frozen=True, slots=True)
class LocalClusterSettings:
    """A local cluster: how many brokers, in how many racks, with which locked version of Kafka."""

    brokers: int = 4
    racks: int = 3
    kafka: str = KAFKA_VERSION

    def running(self, directory: Path) -> AbstractAsyncContextManager[LocalCluster]:
        """Run a cluster in this directory for the length of a block."""
        return local_cluster(directory, self.brokers, self.racks, kafka=self.kafka)


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """The parts of a local installation.

    `prefix` begins the names of its topics, so that several installations share a cluster. `limits` are further
    settings of the managed cluster, and `healing` those of its healing. `bootstrap` is the managed cluster's
    address, if it is not that of the log. `commands` runs `drover`.
    """

    prefix: str = "drover"
    workers: int = 1
    session_timeout_ms: int = 3000
    limits: Mapping[str, bool | float | str] = field(default_factory=dict)
    healing: Mapping[str, int] | None = None
    bootstrap: str | None = None
    commands: Commands = field(default_factory=PythonCommands)

    def text(self, cluster: LocalCluster) -> str:
        """Return the settings file."""
        sections = [
            f'[log]\nbootstrap = "{cluster.bootstrap}"\nprefix = "{self.prefix}"',
            f'[clusters.{MANAGED}]\nbootstrap = "{self.bootstrap or cluster.bootstrap}"',
            *(f"{name} = {json.dumps(value)}" for name, value in self.limits.items()),
            f"[worker]\nsession_timeout_ms = {self.session_timeout_ms}\nallow_drover_topics = true",
        ]
        if self.healing is not None:
            sections += [
                f"[clusters.{MANAGED}.healing]",
                *(f"{name} = {value}" for name, value in self.healing.items()),
            ]
        return "\n".join(sections) + "\n"


class LocalInstallation:
    """One Drover on a local cluster, which it manages and which holds its log.

    `workers` has each worker by its name, and `processes` other long-running commands as well. Their logs and the
    settings file `config` are in `directory`. `topics` are those that `create_topic` made.
    """

    def __init__(self, cluster: LocalCluster, directory: Path, settings: LocalSettings) -> None:
        self.cluster = cluster
        self.directory = directory
        self.settings = settings
        self.names = TopicNames(settings.prefix)
        self.config = directory / "drover.toml"
        self.workers: dict[str, DroverProcess] = {}
        self.processes: dict[str, DroverProcess] = {}
        self.topics: set[str] = set()
        self._driver: KafkaDriver | None = None
        self._followed: FollowedLog | None = None

    @property
    def bootstrap(self) -> str:
        """Every broker's address, joined by commas."""
        return self.cluster.bootstrap

    @property
    def connection(self) -> LogConnection:
        """The connection of clients to the log."""
        return self.cluster.connection(self.names)

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables with which commands find this installation."""
        return {"NO_COLOR": "1", "COLUMNS": "200", "DROVER_CONFIG": str(self.config)}

    def client(self) -> Client:
        """Return a client that is not connected yet."""
        return Client(self.connection)

    # -- processes

    @property
    def worker(self) -> DroverProcess:
        """The worker that was started first."""
        return next(iter(self.workers.values()))

    async def add_worker(self, name: str | None = None) -> DroverProcess:
        """Start one more worker, and return when the workers share the shards."""
        process = await self.start_worker(name or f"worker-{len(self.workers) + 1}")
        await self.wait_until_owned(*(name for name, worker in self.workers.items() if worker.is_running))
        return process

    async def start_worker(self, name: str, *options: str, program: Sequence[str] = DROVER) -> DroverProcess:
        """Start a worker, with `program` in place of `drover`, and return at once."""
        arguments = ("worker", "--name", name, "--listen", "127.0.0.1:0", *options)
        self.workers[name] = await self.start(name, *arguments, program=program)
        return self.workers[name]

    async def start(self, name: str, *arguments: str, program: Sequence[str] = DROVER) -> DroverProcess:
        """Start any long-running command; it is ended with the installation."""
        process = DroverProcess(arguments, self.environment, self.directory / f"{name}.log", self.settings.commands)
        process.start(program)
        self.processes[name] = process
        return process

    async def drover(self, *arguments: str, stdin: str | None = None) -> Finished:
        """Run a command to its end."""
        return await self.settings.commands.run(arguments, {**os.environ, **self.environment}, stdin or "")

    async def end_processes(self) -> None:
        """Kill every process that was started."""
        for process in self.processes.values():
            await process.kill()
        self.processes.clear()
        self.workers.clear()

    async def close(self) -> None:
        """End every process and every connection. Idempotent."""
        await self.end_processes()
        followed, self._followed = self._followed, None
        if followed is not None:
            await followed.close()
        driver, self._driver = self._driver, None
        if driver is not None:
            await driver.close()

    # -- the log

    async def log(self) -> FoldedLog:
        """Return the log folded up to its present end; each call reads only new records."""
        if self._followed is None:
            self._followed = FollowedLog(self.connection)
        return await self._followed.up_to_now()

    async def state(self) -> ClusterState:
        """Return the managed cluster's state by the log."""
        return (await self.log()).cluster(MANAGED)

    async def owners(self) -> Mapping[int, str]:
        """Return the owner of each shard."""
        return {number: fold.owner for number, fold in (await self.log()).folds.items()}

    async def wait_until_owned(self, *workers: str) -> None:
        """Wait until exactly these workers own all shards."""

        async def are_owned() -> bool:
            return set((await self.owners()).values()) == set(workers)

        await wait_for(are_owned, f"{workers} own every shard")

    async def wait_until_settled(self, timeout_s: float = DEADLINE_S) -> float:
        """Wait until no reassignment is left, and no throttle of Drover's; return the seconds it took."""

        async def is_settled() -> bool:
            state = await self.state()
            return not (state.reassignments or state.broker_throttles or state.topic_throttles)

        return await wait_for(is_settled, "the end of every reassignment and every throttle", timeout_s)

    # -- the managed cluster

    @property
    def driver(self) -> KafkaDriver:
        """The test's own connection to the cluster."""
        if self._driver is None:
            self._driver = observer(self.cluster)
        return self._driver

    async def create_topic(self, name: str, layout: Mapping[int, Sequence[int]], kilobytes: int = 0) -> None:
        """Create a topic with these replicas of each partition, and write `kilobytes` to each."""
        assignments = {number: tuple(replicas) for number, replicas in layout.items()}
        spec = TopicSpec(name, len(layout), len(assignments[0]), assignments=assignments)
        connection = self.connection
        answers = await create_topics(connection.bootstrap, [spec], connection.security, CREATED_WITHIN_MS)
        assert answers[name].accepted, answers[name]
        self.topics.add(name)

        async def is_shown() -> bool:
            seen = await self.driver.observe([TopicPartition(name, number) for number in layout])
            return all(facts is not None and facts.leader is not None for facts in seen.partitions.values())

        await wait_for(is_shown, f"topic {name} to be there")
        if kilobytes:
            await self.fill(name, layout, kilobytes)

    async def fill(self, name: str, partitions: Iterable[int], kilobytes: int) -> None:
        """Write `kilobytes` to each of these partitions."""
        producer = LogProducer(self.connection, "filler")
        await producer.start()
        record = os.urandom(RECORD_BYTES)
        wanted = [number for number in partitions for _ in range(kilobytes * 1024 // RECORD_BYTES)]
        try:
            for first in range(0, len(wanted), RECORDS_AT_ONCE):
                part = wanted[first : first + RECORDS_AT_ONCE]
                await asyncio.gather(*(producer.send(name, record, partition=number) for number in part))
        finally:
            await producer.close()

    async def facts(self, key: TopicPartition) -> PartitionFacts:
        """Return a partition as Kafka shows it; it must exist. Asks again while the two Lists disagree."""
        facts: list[PartitionFacts | None] = []

        async def is_seen() -> bool:
            observation = await self.driver.observe([key])
            facts[:] = [observation.partitions[key]] if key in observation.partitions else []
            return bool(facts)

        await wait_for(is_seen, f"{key} to be seen")
        assert facts[0] is not None, f"{key} does not exist"
        return facts[0]

    async def replicas(self, key: TopicPartition) -> tuple[int, ...]:
        """Return a partition's replica list as Kafka shows it."""
        return (await self.facts(key)).replicas


def observer(cluster: LocalCluster) -> KafkaDriver:
    """Return a driver for a test, with a longer timeout than a worker's, which would ask again."""
    return KafkaDriver("observer", cluster.bootstrap, cluster.admin_options, call_timeout_ms=CALL_TIMEOUT_MS)


@asynccontextmanager
async def running(installation: LocalInstallation) -> AsyncIterator[None]:
    """Create the topics, start the workers, and return when they own every shard; end all of it after the block."""
    installation.config.write_text(installation.settings.text(installation.cluster), encoding="utf-8")
    await own_topics.init(installation.connection)
    try:
        for number in range(installation.settings.workers):
            await installation.start_worker(f"worker-{number + 1}")
        if installation.workers:
            await installation.wait_until_owned(*installation.workers)
        yield
    finally:
        await installation.close()


@asynccontextmanager
async def local_installation(
    cluster: LocalCluster, directory: Path, settings: LocalSettings | None = None
) -> AsyncIterator[LocalInstallation]:
    """Run an installation on a cluster for the length of a block; it begins when its workers own every shard.

    `drover.local.local_cluster` runs a cluster. The installation creates its topics there, and does not delete them.
    """
    installation = LocalInstallation(cluster, directory, settings or LocalSettings())
    async with running(installation):
        yield installation
