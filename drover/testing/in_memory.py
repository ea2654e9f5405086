"""A whole Drover in this process: model clusters, a log in memory, and workers, in virtual time.

docs/testing-your-tools.md shows how tests are written with it.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, TypeVar

from drover.client.answers import Answer, Answers, OutcomeMissingError, Ownership, Sent, ownership_of
from drover.client.client import Client
from drover.client.commands import check_types, payload_of, topic_of
from drover.errors import DroverError
from drover.events.codec import CONTENT_TYPE_HEADER, MSGPACK_CONTENT_TYPE
from drover.events.commands import Command
from drover.events.partitions import TopicPartition
from drover.events.records import AnyEvent, Outcome
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.facts import PartitionFacts
from drover.journal.port import Following
from drover.journal.reader import LogRecord
from drover.settings.settings import ClusterSettings, LogSettings, Settings, WorkerSettings
from drover.state.cluster import ClusterState
from drover.testing.memory_journal import MemoryReader, StoredRecord
from drover.testing.memory_log import MemoryLog
from drover.testing.model import ClusterModel
from drover.testing.model_worker import EndedError, ModelGroup, ModelWorker
from drover.testing.virtual_time import VirtualLoop

Result = TypeVar("Result")

ADDRESS = "model:9092"
CLUSTER = "local"
# The pause before a condition is checked again: a share of the time waited so far, between these bounds.
SHORTEST_PAUSE_S, PAUSED_SHARE, LONGEST_PAUSE_S = 0.05, 0.02, 1.0
# The default time limit.
PATIENCE_S = 3600.0


class WorkerEndedError(DroverError):
    """A worker has ended by itself, because of a fault that the test caused, or of a bug."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The parts of a model installation.

    Each of `clusters` gets a model cluster with this number of `brokers`, numbered from 1, and of `racks`, unless
    `models` has one for it. `copy_bytes_per_second` bounds the copies into a broker; None copies everything at once.
    """

    brokers: int = 4
    racks: int = 3
    copy_bytes_per_second: int | None = 50_000_000
    clusters: Mapping[str, ClusterSettings] = field(default_factory=lambda: {CLUSTER: ClusterSettings(ADDRESS)})
    models: Mapping[str, ClusterModel] = field(default_factory=dict)
    workers: int = 1
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    shards: int = DEFAULT_SHARDS

    def new_models(self) -> dict[str, ClusterModel]:
        """Return the model of each cluster."""
        racks = {broker: f"rack-{(broker - 1) % self.racks + 1}" for broker in range(1, self.brokers + 1)}
        return {
            name: self.models[name]
            if name in self.models
            else ClusterModel(racks, copy_bytes_per_second=self.copy_bytes_per_second)
            for name in self.clusters
        }


class ModelClient(Client):
    """The client of a model installation; whatever waits for a record lets the installation's time pass.

    It is connected from the start, and may be entered as the real client is.
    """

    appears_within_s = 0.0

    def __init__(self, installation: "ModelInstallation") -> None:
        clusters = tuple(installation.settings.clusters)
        super().__init__(installation.settings.log.connection(), clusters[0] if len(clusters) == 1 else None)
        self._installation = installation

    async def __aenter__(self) -> Self:
        """Do nothing."""
        return self

    async def __aexit__(self, *_exception: object) -> None:
        """Do nothing."""

    async def submit_all(self, commands: Sequence[Command]) -> tuple[Sent, ...]:
        """Write commands in this order; see `Client.submit_all`. No time passes."""
        check_types(commands)
        payloads = [payload_of(command) for command in commands]

        async def write() -> tuple[Sent, ...]:
            return tuple(map(self._write, commands, payloads))

        return await self._installation.run(write)

    async def outcomes(
        self,
        sent: Sequence[Sent],
        timeout_s: float | None = None,
        on_waiting: Callable[[Ownership | None], None] | None = None,
    ) -> tuple[Answer, ...]:
        """Let time pass until an outcome of each command is recorded; see `Client.outcomes`.

        Without `timeout_s` it waits for an hour of the installation's time. `on_waiting` is never called.
        """
        del on_waiting
        shards = {item.shard for item in sent}
        if len(shards) > 1:
            raise ValueError("these commands are of several clusters: await the outcomes of each cluster by itself")
        if not shards:
            return ()
        (shard,) = shards
        log, answers, seen = self._installation.log, Answers(sent), 0

        def are_complete() -> bool:
            nonlocal seen
            for folded in log.folded[shard][seen:]:
                answers.see(folded, shard)
            seen = len(log.folded[shard])
            return answers.complete

        try:
            await self._installation.until(are_complete, timeout_s=PATIENCE_S if timeout_s is None else timeout_s)
        except TimeoutError as error:
            ownership = ownership_of(log.folds[shard], None, sent[0].command.cluster)
            raise OutcomeMissingError(answers.missing(), answers.found(), ownership) from error
        return answers.found()

    def _reader(self, timeout_s: float | None = None) -> AbstractAsyncContextManager[Following]:
        return nullcontext(_ModelReader(self._installation, PATIENCE_S if timeout_s is None else timeout_s))

    def _write(self, command: Command, payload: bytes) -> Sent:
        topic, shard = topic_of(command, self.connection.topics), self._installation.shard_of(command.cluster)
        headers = ((CONTENT_TYPE_HEADER, MSGPACK_CONTENT_TYPE.encode()),)
        record = StoredRecord(payload, command.cluster.encode(), headers)
        return Sent(command, topic, shard, self._installation.group.broker.put(topic, shard, record))


class _ModelReader(MemoryReader):
    """A reader of the log in memory; following it lets the installation's time pass, at most `timeout_s` in all."""

    def __init__(self, installation: "ModelInstallation", timeout_s: float) -> None:
        super().__init__(installation.group.broker, installation.group.shards)
        self._installation = installation
        self._deadline_ms = installation.now_ms + 1000 * timeout_s

    async def partitions(self, topic: str) -> int:
        """Return the number of shards."""
        return (await self.partition_counts([topic]))[topic]

    async def follow(self, topic: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        """Yield the records from these offsets on, and let time pass until there are more; `TimeoutError` if none."""
        positions = dict(start)
        while True:
            ends = await self.end_offsets(topic, positions)
            if all(ends[shard] <= position for shard, position in positions.items()):
                await self._installation.until(partial(self._has_grown, topic, ends), timeout_s=self._rest_s())
                continue
            async for records in self.read(topic, positions):
                if records:
                    positions[records[-1].shard] = records[-1].offset + 1
                    yield records
            # An end may lie behind the marker of a transaction, which is no record.
            positions = {shard: max(position, ends[shard]) for shard, position in positions.items()}

    def _has_grown(self, topic: str, ends: Mapping[int, int]) -> bool:
        partitions = self._installation.group.broker.partitions
        return any(len(partitions[topic, shard]) > end for shard, end in ends.items())

    def _rest_s(self) -> float:
        return max(0.0, (self._deadline_ms - self._installation.now_ms) / 1000)


class ModelProcess:
    """One worker of a model installation: a process that can be killed, stopped and started again."""

    def __init__(self, name: str, installation: "ModelInstallation") -> None:
        self.name = name
        self._installation = installation
        self._worker: ModelWorker | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started, and has not ended."""
        return self._worker is not None and not self._worker.is_dead

    async def start(self) -> None:
        """Start it; it owns shards once the group has assigned some. Idempotent."""
        if not self.is_running:
            self._worker = ModelWorker(self.name, self._installation.group)
            await self._installation.do(self._worker.start)

    async def kill(self) -> None:
        """End it at once; the others take its shards over after the session timeout. Idempotent."""
        await self._installation.do(self.end)

    async def stop(self) -> None:
        """Stop it as SIGTERM does; returns when it has left the group. Idempotent."""
        if self._worker is not None and self.is_running:
            await self._installation.run(self._worker.stop)

    async def restart(self) -> None:
        """Kill it and start it again."""
        await self.kill()
        await self.start()

    def end(self) -> None:
        """End it at once; only in the installation's loop."""
        if self._worker is not None:
            self._worker.die()


class ModelInstallation:
    """A running model installation. Its time passes only in methods that are awaited, and takes no real time.

    Every run with the same calls makes the same log, byte by byte. A worker that ends by itself raises
    `WorkerEndedError` from the call in which it did. `clusters` are the models, by name: change them with their
    methods, such as `create_topic`, `stop_broker` or `alter`.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = Settings(LogSettings(ADDRESS), clusters=dict(settings.clusters), worker=settings.worker)
        self.clusters = settings.new_models()
        self.group = ModelGroup(self.settings, self.clusters, settings.shards)
        self.log = MemoryLog(self.group.broker, settings.shards)
        self.workers: dict[str, ModelProcess] = {}
        self.client = ModelClient(self)
        self._loop = VirtualLoop()
        self._context = self._loop.new_context()
        # One thread, so that concurrent calls of the installation run one after the other.
        self._thread = ThreadPoolExecutor(1, "model-installation")
        self._loop.set_exception_handler(
            lambda _, context: self.group.faults.append((context["message"], context.get("exception")))
        )

    # -- parts

    @property
    def cluster(self) -> ClusterModel:
        """The model of the only cluster."""
        return self.clusters[self._only_cluster()]

    @property
    def worker(self) -> ModelProcess:
        """The worker that was started first."""
        return next(iter(self.workers.values()))

    @property
    def now_ms(self) -> int:
        """The milliseconds that have passed in the installation."""
        return int(self._loop.time() * 1000)

    def state(self, cluster: str | None = None) -> ClusterState:
        """Return a cluster's state by the log; without a name, that of the only cluster."""
        return self.log.state(cluster or self._only_cluster())

    def events(self, cluster: str | None = None) -> tuple[AnyEvent, ...]:
        """Return the valid events of a cluster in the order of the log."""
        return self.log.events(cluster or self._only_cluster())

    def outcomes(self, cluster: str | None = None) -> tuple[Outcome, ...]:
        """Return the outcome of each command of a cluster, in the order of the log."""
        return self.log.outcomes(cluster or self._only_cluster())

    def facts(self, topic: str, partition: int, cluster: str | None = None) -> PartitionFacts:
        """Return a partition as Kafka shows it; it must exist."""
        facts = self.clusters[cluster or self._only_cluster()].facts(TopicPartition(topic, partition))
        assert facts is not None, f"{topic}:{partition} does not exist"
        return facts

    def replicas(self, topic: str, partition: int, cluster: str | None = None) -> tuple[int, ...]:
        """Return a partition's replica list as Kafka shows it."""
        return self.facts(topic, partition, cluster).replicas

    def owners(self) -> dict[int, str]:
        """Return the owner of each shard; an empty name for a shard without one."""
        return {fold.shard: fold.owner for fold in self.log.folds}

    def shard_of(self, cluster: str) -> int:
        """Return the shard in which a cluster lives."""
        return shard_of(cluster, self.group.shards)

    # -- time

    async def advance(self, seconds: float) -> None:
        """Let time pass."""
        await self.run(lambda: asyncio.sleep(seconds))

    async def until(self, condition: Callable[[], object], *, timeout_s: float = PATIENCE_S) -> float:
        """Let time pass until a condition holds, and return the seconds that passed; `TimeoutError` at the time limit.

        The condition is a plain function. It is called every 50 ms of the installation's time at first, and less often
        later, down to once a second.
        """
        return await self.run(lambda: self._until(condition, timeout_s))

    async def settle(self, *, timeout_s: float = PATIENCE_S) -> float:
        """Let time pass until no cluster has a reassignment, a queue or a throttle of Drover's left."""
        return await self.until(lambda: all(map(self._is_settled, self.clusters)), timeout_s=timeout_s)

    # -- workers

    async def add_worker(self, name: str | None = None) -> ModelProcess:
        """Start one more worker; `wait_until_owned` waits until it has its share."""
        name = name or f"worker-{len(self.workers) + 1}"
        assert name not in self.workers, f"there is a worker {name} already: restart it"
        self.workers[name] = ModelProcess(name, self)
        await self.workers[name].start()
        return self.workers[name]

    async def wait_until_owned(self, *workers: str) -> None:
        """Let time pass until exactly these workers, by default all that run, own every shard."""
        names = set(workers) or {name for name, worker in self.workers.items() if worker.is_running}

        def are_owned() -> bool:
            owners = set(self.owners().values())
            return owners <= names and len(owners) == min(len(names), self.group.shards)

        await self.until(are_owned)

    # -- inside

    async def do(self, function: Callable[[], None]) -> None:
        """Call a function in the installation's loop; no time passes."""

        async def call() -> None:
            function()

        await self.run(call)

    async def run(self, make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Run a coroutine of the installation's loop to its end; its time passes where all of it waits."""
        result = await asyncio.get_running_loop().run_in_executor(
            self._thread, self._context.run, lambda: self._loop.run_until_complete(self._followed(make))
        )
        self._raise_faults()
        return result

    async def close(self) -> None:
        """End every worker and the loop."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._context.run, self._end)
        self._thread.shutdown()

    def _end(self) -> None:
        self._loop.run_until_complete(self._end_tasks())
        self._loop.close()

    async def _end_tasks(self) -> None:
        for worker in self.workers.values():
            worker.end()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _followed(self, make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        try:
            return await make()
        finally:
            self._look()

    def _look(self) -> None:
        self.group.clusters.catch_up()
        self.log.read()

    async def _until(self, condition: Callable[[], object], timeout_s: float) -> float:
        began_s = self._loop.time()
        while True:
            self._look()
            if condition():
                return self._loop.time() - began_s
            if self._loop.time() - began_s >= timeout_s:
                raise TimeoutError(f"the condition did not hold within {timeout_s:g} s of the installation's time")
            if self.group.faults:
                self._raise_faults()
            waited_s = self._loop.time() - began_s
            await asyncio.sleep(min(max(SHORTEST_PAUSE_S, waited_s * PAUSED_SHARE), LONGEST_PAUSE_S))

    def _raise_faults(self) -> None:
        faults = [(why, error) for why, error in self.group.faults if not isinstance(error, EndedError)]
        self.group.faults.clear()
        for why, error in faults:
            raise WorkerEndedError(f"a worker has ended: {why}: {error!r}") from error

    def _is_settled(self, cluster: str) -> bool:
        state = self.state(cluster)
        return not (state.reassignments or state.queue or state.broker_throttles or state.topic_throttles)

    def _only_cluster(self) -> str:
        (name, *others) = self.clusters
        assert not others, f"there are several clusters: name one of {', '.join(self.clusters)}"
        return name


@asynccontextmanager
async def model_installation(settings: ModelSettings | None = None) -> AsyncIterator[ModelInstallation]:
    """Run a model installation for the length of a block; it begins when its workers own every shard."""
    chosen = settings or ModelSettings()
    installation = ModelInstallation(chosen)
    try:
        for _ in range(chosen.workers):
            await installation.add_worker()
        if chosen.workers:
            await installation.wait_until_owned()
        yield installation
    finally:
        await installation.close()
