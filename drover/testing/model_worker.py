"""Whole workers without Kafka, in virtual time: their consumer group, which rebalances, and processes that may end.

The host, its shards and the watchers of clusters are those of `drover worker`; Faust and the connections are replaced.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NoReturn

from drover.agents.clock import now
from drover.agents.clusters import ClusterServices
from drover.agents.host import ShardHost
from drover.agents.snapshots import SnapshotKeeper
from drover.cluster.port import ClusterDriver
from drover.errors import DroverError
from drover.events.codec import encode_progress, encode_record
from drover.events.progress import Progress
from drover.events.records import SCHEMA_VERSION, Genesis
from drover.journal.port import Journal
from drover.service.metrics import Metrics
from drover.settings.settings import Settings
from drover.shard.messages import Arrival, arrival_of
from drover.testing.memory_journal import MemoryBroker, MemoryJournal, StoredRecord
from drover.testing.model import ClusterModel
from drover.testing.simulated import Loss, SimulatedDriver
from drover.testing.virtual_time import ProcessTasks, starting_tasks_of

# The most records of a partition that are read at once.
MAX_POLL = 100
# The ids of the command topics, which never change here.
TOPIC_IDS = ("model-alter", "model-cancel", "model-blacklist", "model-broker-failed")


class EndedError(BaseException):
    """The end of a process; it must not be caught."""


class ModelClusters(dict[str, ClusterModel]):
    """The model clusters by name; their time is the loop's."""

    def catch_up(self) -> None:
        """Let as much time pass in every cluster as in the loop."""
        now_ms = now().monotonic_ms
        for model in self.values():
            if now_ms > model.now_ms:
                model.advance(now_ms - model.now_ms)


class ModelDriver(SimulatedDriver):
    """One worker's connection to a model cluster, whose time is the loop's."""

    def __init__(self, name: str, clusters: ModelClusters) -> None:
        super().__init__(clusters[name], name)
        self._clusters = clusters

    async def _next_loss(self) -> Loss | None:
        self._clusters.catch_up()
        return await super()._next_loss()


class ModelGroup:
    """The log, the clusters, and the consumer group of the workers; everything happens in the running loop.

    `faults` holds the reasons why workers have ended by themselves, and exceptions of tasks that were not awaited.
    """

    def __init__(self, settings: Settings, clusters: Mapping[str, ClusterModel], shards: int) -> None:
        self.settings = settings
        self.shards = shards
        self.broker = MemoryBroker(topics=settings.log.topics)
        self.clusters = ModelClusters(clusters)
        self.members: list[ModelWorker] = []
        self.generation = 0
        self.faults: list[tuple[str, BaseException | None]] = []
        self._tokens = 0
        self._rebalancing: asyncio.Task[None] | None = None
        self._is_due = False
        for shard in range(shards):
            genesis = Genesis(schema=SCHEMA_VERSION, shards=shards, shard=shard)
            self.broker.put(self.broker.topics.events, shard, StoredRecord(encode_record(genesis)))

    def settings_of(self, worker: str) -> Settings:
        """Return the settings of a worker, which differ in the name only."""
        return replace(self.settings, worker=replace(self.settings.worker, name=worker))

    @property
    def session_s(self) -> float:
        """The seconds after which the group drops a dead member."""
        return self.settings.worker.session_timeout_s

    def new_token(self) -> bytes:
        """Return the token of the next acquire; tokens are the same in every run."""
        self._tokens += 1
        return b"token-%010d" % self._tokens

    async def pause(self, longest_s: float = 0.0) -> None:
        """Wait where a real group or process takes some time."""
        del longest_s
        await asyncio.sleep(0)

    def join(self, worker: "ModelWorker") -> None:
        """Add a member."""
        self.members.append(worker)
        self.rebalance_soon()

    def leave(self, worker: "ModelWorker") -> None:
        """Remove a member; no effect on a worker that is none."""
        if worker in self.members:
            self.members.remove(worker)
            self.rebalance_soon()

    def rebalance_soon(self) -> None:
        """Let all members join again: their shards are revoked and assigned again."""
        self._is_due = True
        if self._rebalancing is None or self._rebalancing.done():
            # The task belongs to no process, since the group outlives the one that caused it.
            with starting_tasks_of(None):
                self._rebalancing = asyncio.get_running_loop().create_task(self._rebalance())

    async def _rebalance(self) -> None:
        while self._is_due:
            self._is_due = False
            joining = []
            for member in tuple(self.members):
                await self.pause(0.2)
                if member.answers:
                    member.revoke()
                    joining.append(member)
            self.generation += 1
            await self._assign([member for member in joining if member in self.members])

    async def _assign(self, members: Sequence["ModelWorker"]) -> None:
        for place, member in enumerate(members):
            await self.pause(0.2)
            if member.barrier is not None and not member.barrier.done():
                await asyncio.wait((member.barrier,))
            if member.answers:
                shards = [shard for shard in range(self.shards) if shard * len(members) // self.shards == place]
                member.begin_barrier(shards, self.generation)

    def end(self) -> None:
        """End every process that is a member."""
        for worker in tuple(self.members):
            worker.die()


class ModelHost(ShardHost):
    """A host that takes its tokens from the group, and reports to it why its process ends."""

    group: ModelGroup

    def new_token(self) -> bytes:
        """Return the group's next token."""
        return self.group.new_token()

    def fail(self, reason: str, error: BaseException | None) -> NoReturn:
        """Report the reason, and end."""
        self.group.faults.append((reason, error))
        super().fail(reason, error)


class ModelWorker:
    """One worker process, and its membership in the group; `start` begins it.

    Subclasses may replace its connections (`_new_journal`, `_new_driver`) and how it reads commands (`_read_commands`).
    """

    def __init__(self, name: str, group: ModelGroup) -> None:
        self.name = name
        self.group = group
        self.is_dead = False
        self.is_leaving = False
        self.generation = -1
        self.barrier: asyncio.Task[None] | None = None
        # The next offset to read, by topic index and shard, and the partitions that are held.
        self.positions: dict[tuple[int, int], int] = {}
        self.held: set[tuple[int, int]] = set()
        self._tasks: ProcessTasks = {}
        self.host = self._new_host()

    def _new_host(self) -> ModelHost:
        group, settings, metrics = self.group, self.group.settings_of(self.name), Metrics()
        journal = self._new_journal()
        topic = group.broker.topics.progress

        async def publish(samples: Sequence[Progress]) -> None:
            for sample in samples:
                await journal.send(topic, encode_progress(sample))

        def cluster_failed(error: BaseException) -> None:
            group.faults.append(("watching a cluster failed", error))
            self.die()

        async def read_topic_ids() -> Sequence[str]:
            await group.pause()
            return TOPIC_IDS

        services = ClusterServices(
            {name: self._new_driver(name) for name in settings.clusters},
            *(publish, cluster_failed, metrics, settings.rules),
        )
        snapshots = SnapshotKeeper(journal, group.broker.topics, settings.worker.snapshot_every_records, metrics)
        host = ModelHost(
            *(settings, TOPIC_IDS, journal, services, snapshots, metrics),
            read_topic_ids=read_topic_ids,
            end=self._end,
        )
        host.group = group
        host.attach(self)
        return host

    def _new_journal(self) -> Journal:
        return MemoryJournal(self.group.broker, self.group.shards)

    def _new_driver(self, cluster: str) -> ClusterDriver:
        return ModelDriver(cluster, self.group.clusters)

    # -- the process

    @property
    def answers(self) -> bool:
        """Whether the process reacts to the group."""
        return not self.is_dead

    async def lives(self) -> None:
        """Return while the process runs; subclasses let it hang."""

    def start(self) -> None:
        """Replay the log, join the group, and read commands until the end."""
        with self.inside():
            asyncio.get_running_loop().create_task(self._run())

    def inside(self) -> AbstractContextManager[None]:
        """Let every task that starts in this block belong to this process."""
        return starting_tasks_of(self._tasks)

    def die(self) -> None:
        """End at once, as a kill does; the group notices when the session times out."""
        if self.is_dead:
            return
        self.is_dead = True
        asyncio.get_running_loop().call_later(self.group.session_s, self.group.leave, self)
        current = asyncio.current_task()
        for task in tuple(self._tasks):
            if task is not current:
                task.cancel()

    async def stop(self) -> None:
        """Stop as SIGTERM does: release the shards, leave the group, close; returns when it has ended."""
        with self.inside():
            stopping = asyncio.get_running_loop().create_task(self._stop())
        await asyncio.wait((stopping,))

    async def _stop(self) -> None:
        self.is_leaving = True
        try:
            await self.host.close_shards()
            self.group.leave(self)
            await self.host.stop()
        finally:
            # Also after an append whose outcome is unknown.
            self.die()

    def _end(self, _code: int) -> NoReturn:
        self.die()
        raise EndedError

    async def _run(self) -> None:
        await self.host.start()
        self.group.join(self)
        while True:
            await self._read_commands()

    async def _read_commands(self) -> None:
        """Hand over the records that are there, or wait for more."""
        fetched = [(place[1], arrival) for place in self._readable() for arrival in self.fetch(*place, MAX_POLL)]
        for shard, arrival in fetched:
            self.host.arrive(shard, arrival, self.generation)
        if fetched:
            await self.group.pause()
        else:
            self.group.broker.grown.clear()
            await self.group.broker.grown.wait()

    def _readable(self) -> list[tuple[int, int]]:
        return [place for place in self.positions if place not in self.held]

    def fetch(self, topic_index: int, shard: int, max_records: int) -> list[Arrival]:
        """Return the next records of a partition, at most `max_records`, and advance its position."""
        stored = self.group.broker.partitions[self.group.broker.topics.commands[topic_index], shard]
        first = self.positions[topic_index, shard]
        end = min(first + max_records, len(stored))
        self.positions[topic_index, shard] = end
        return [
            arrival_of(topic_index, offset, now().wall_ms, record.value, record.headers)
            for offset, record in enumerate(stored[first:end], first)
            if record is not None
        ]

    # -- the group

    def hold(self, topic_index: int, partition: int) -> None:
        """Stop reading a partition for now."""
        self.held.add((topic_index, partition))

    def release(self, topic_index: int, partition: int) -> None:
        """Continue to read a partition."""
        self.held.discard((topic_index, partition))
        self.group.broker.grown.set()

    async def request_rejoin(self) -> None:
        """Let the whole group join again."""
        self.group.rebalance_soon()

    def revoke(self) -> None:
        """Revoke every shard."""
        self.positions.clear()
        self.held.clear()
        with self.inside():
            self.host.partitions_revoked()

    def begin_barrier(self, shards: Sequence[int], generation: int) -> None:
        """Assign these shards, which are acquired before anything is read."""
        self.generation = generation
        with self.inside():
            self.barrier = asyncio.get_running_loop().create_task(self._assigned(shards, generation))

    async def _assigned(self, shards: Sequence[int], generation: int) -> None:
        """The barrier, and then the seek, as Faust does them."""
        topics = self.group.broker.topics.commands
        try:
            await self.host.partitions_assigned(dict.fromkeys(topics, tuple(shards)), generation)
        except DroverError as error:
            self.host.fail("the rebalance barrier failed", error)
        await self._seek(shards, generation)
        self.group.broker.grown.set()

    async def _seek(self, shards: Sequence[int], generation: int) -> None:
        positions = self.host.positions()
        await self.group.pause()
        await self.lives()
        if self.generation == generation:
            self._forget_fetched(generation)
            self.positions = {(index, shard): positions[shard][index] for shard in shards for index in range(4)}
            self.host.positions_set({shard: positions[shard] for shard in shards})

    def _forget_fetched(self, generation: int) -> None:
        """Drop records that were fetched and not handed over; there are none here, but in subclasses."""
