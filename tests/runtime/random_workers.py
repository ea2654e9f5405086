"""Whole workers without Kafka, in virtual time: a group that rebalances, and processes that die, hang and come back.

Real are the host, its shards and the watchers of clusters; the log is in memory, and the clusters are models. All of it
waits for a random time, so that each seed is another order of events.
"""

import asyncio
import random
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from drover.agents.clusters import ClusterServices
from drover.agents.host import ShardHost
from drover.agents.snapshots import SnapshotKeeper
from drover.errors import DroverError
from drover.events.codec import decode_record, encode_record
from drover.events.progress import Progress
from drover.events.records import SCHEMA_VERSION, Acquire, Genesis
from drover.service.metrics import Metrics
from drover.settings.settings import LogSettings, Settings, WorkerSettings
from drover.shard.messages import Arrival, arrival_of
from drover.testing.memory_journal import MemoryBroker, StoredRecord
from tests.runtime.slow_connections import BROKERS, Chance, Clusters, Driver, EndedError, Journal, LostError
from tests.runtime.virtual_time import BEGIN_S, OWNER
from tests.runtime.world import CLUSTERS, SHARDS, TOPIC_IDS

SESSION_S = 10.0
LONGEST_LAG_S = 5.0


class Host(ShardHost):
    """A host that keeps the reason why it ended its process."""

    told: list[tuple[str, BaseException | None]]

    def fail(self, reason: str, error: BaseException | None) -> NoReturn:
        self.told.append((reason, error))
        super().fail(reason, error)


@dataclass
class Worker:
    """One process, and its membership in the group: what was assigned, where it reads, and what it does not read."""

    name: str
    world: "World"
    tasks: dict[asyncio.Task[Any], None] = field(default_factory=dict)
    awake: asyncio.Event = field(default_factory=asyncio.Event)
    is_dead: bool = False
    is_leaving: bool = False
    generation: int = -1
    positions: dict[tuple[int, int], int] = field(default_factory=dict)
    held: set[tuple[int, int]] = field(default_factory=set)
    # What was fetched in which generation, and has not been delivered yet.
    fetched: deque[tuple[int, Arrival, int]] = field(default_factory=deque)
    barrier: asyncio.Task[None] | None = None
    host: Host = field(init=False)

    def __post_init__(self) -> None:
        self.awake.set()
        world = self.world
        settings = Settings(
            LogSettings("in-memory:9092", world.broker.topics.prefix),
            clusters=CLUSTERS,
            worker=WorkerSettings(name=self.name, group="g", session_timeout_ms=int(SESSION_S * 1000)),
        )
        journal, metrics = Journal(world.broker, world.chance, self.lives, world.steal), Metrics()

        async def publish(samples: Sequence[Progress]) -> None:
            del samples
            await world.chance.pause()

        drivers = {name: Driver(name, world.clusters, world.chance, self.lives) for name in CLUSTERS}
        services = ClusterServices(
            drivers, publish, lambda error: self._fault("watching a cluster failed", error), metrics
        )
        snapshots = SnapshotKeeper(journal, world.broker.topics, 20, metrics)

        async def read_topic_ids() -> Sequence[str]:
            await world.chance.pause()
            return TOPIC_IDS

        self.host = Host(
            *(settings, TOPIC_IDS, journal, services, snapshots, metrics), read_topic_ids=read_topic_ids, end=self._end
        )
        self.host.told = world.told
        self.host.attach(self)

    # -- the process

    @property
    def is_running(self) -> bool:
        """Whether it is neither dead nor hanging nor told to stop."""
        return self.awake.is_set() and not self.is_dead and not self.is_leaving

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Let every task that starts in this context belong to this process."""
        token = OWNER.set(self.tasks)
        try:
            yield
        finally:
            OWNER.reset(token)

    async def lives(self) -> None:
        """Return while the process runs: waits while it hangs, and never returns to one that is dead."""
        await self.awake.wait()
        if self.is_dead:
            raise EndedError

    def _fault(self, what: str, error: BaseException) -> None:
        self.world.told.append((what, error))
        self.die()

    def _end(self, _code: int) -> NoReturn:
        self.die()
        raise EndedError

    def die(self) -> None:
        """End at once, as a kill does: nothing that was begun goes on; the group notices when its session is over."""
        self.is_dead = True
        asyncio.get_running_loop().call_later(SESSION_S, self.world.gone, self)
        self.awake.set()
        current = asyncio.current_task()
        for task in tuple(self.tasks):
            if task is not current:
                task.cancel()

    async def run(self) -> None:
        """Replay and serve; reads commands until the end."""
        await self.host.start()
        self.world.members.append(self)
        self.world.rebalance_soon()
        while True:
            await self.world.chance.pause()
            if self.world.chance.strikes(0.01):
                # What was fetched before a rebalance may arrive after it.
                await asyncio.sleep(self.world.chance.random.random() * LONGEST_LAG_S)
            await self.lives()
            if self.fetched and self.world.chance.random.random() < 0.5:
                self.host.arrive(*self.fetched.popleft())
            else:
                self._fetch_some()

    def _fetch_some(self) -> None:
        places = [place for place in self.positions if place not in self.held]
        if not places or (self.barrier is not None and not self.barrier.done()):
            return
        index, shard = self.world.chance.random.choice(places)
        for _ in range(self.world.chance.random.randint(1, 5)):
            offset = self.positions[index, shard]
            stored = self.world.broker.partitions[self.world.broker.topics.commands[index], shard]
            if offset >= len(stored):
                return
            self.positions[index, shard] = offset + 1
            record = stored[offset]
            if record is not None:
                now_ms = int((BEGIN_S + asyncio.get_running_loop().time()) * 1000)
                arrival = arrival_of(index, offset, now_ms, record.value, record.headers)
                self.fetched.append((shard, arrival, self.generation))

    async def stop(self) -> None:
        """Stop as SIGTERM does: let go of the shards, leave the group, close."""
        self.is_leaving = True
        try:
            await self.host.close_shards()
            if self in self.world.members:
                self.world.members.remove(self)
                self.world.rebalance_soon()
            await self.host.stop()
        finally:
            # Also where the log did not say what became of the last record.
            self.die()

    # -- the group

    def hold(self, topic_index: int, partition: int) -> None:
        self.held.add((topic_index, partition))

    def release(self, topic_index: int, partition: int) -> None:
        self.held.discard((topic_index, partition))

    async def request_rejoin(self) -> None:
        self.world.rebalance_soon()

    def revoke(self) -> None:
        """The group takes everything away."""
        self.positions.clear()
        self.held.clear()
        with self.inside():
            self.host.partitions_revoked()

    async def assign(self, shards: Sequence[int], generation: int) -> None:
        """The barrier, and then the seek, as Faust does them."""
        topics = self.world.broker.topics.commands
        try:
            await self.host.partitions_assigned(dict.fromkeys(topics, tuple(shards)), generation)
        except DroverError as error:
            self.host.fail("the rebalance barrier failed", error)
        for _ in range(2 if self.world.chance.strikes(0.2) else 1):
            positions = self.host.positions()
            await self.world.chance.pause()
            await self.lives()
            if self.generation != generation:
                return
            self.positions = {(index, shard): positions[shard][index] for shard in shards for index in range(4)}
            # Within a generation nothing tells apart what was fetched before; Faust forgets it, too.
            self.fetched = deque(one for one in self.fetched if one[-1] != generation)
            self.host.positions_set({shard: positions[shard] for shard in shards})


class World:
    """The log, the clusters, the group and its workers."""

    def __init__(self, seed: int) -> None:
        self.chance = Chance(random.Random(seed))
        self.broker = MemoryBroker()
        self.clusters = Clusters()
        self.members: list[Worker] = []
        self.generation = 0
        # Why workers have ended themselves, and what nobody has waited for.
        self.told: list[tuple[str, BaseException | None]] = []
        self._rebalancing: asyncio.Task[None] | None = None
        self._is_due = False
        self._names = self._number()
        for shard in range(SHARDS):
            genesis = Genesis(schema=SCHEMA_VERSION, shards=SHARDS, shard=shard)
            self.broker.put(self.broker.topics.events, shard, StoredRecord(encode_record(genesis)))

    @staticmethod
    def _number() -> Iterator[str]:
        number = 0
        while True:
            number += 1
            yield f"w{number}"

    def start_worker(self) -> Worker:
        """Start a process; it joins the group once it has replayed the log."""
        worker = Worker(next(self._names), self)
        with worker.inside():
            asyncio.get_running_loop().create_task(worker.run())
        return worker

    def gone(self, worker: Worker) -> None:
        """The group goes on without this member."""
        if worker in self.members:
            self.members.remove(worker)
            self.rebalance_soon()

    def stop(self, worker: Worker) -> None:
        """Tell a process to stop."""
        with worker.inside():
            asyncio.get_running_loop().create_task(worker.stop())

    def hang(self, worker: Worker, seconds: float) -> None:
        """Stop a process for a while; the group goes on without it after a session timeout."""
        asyncio.get_running_loop().create_task(self._hang(worker, seconds))

    async def _hang(self, worker: Worker, seconds: float) -> None:
        worker.awake.clear()
        asyncio.get_running_loop().call_later(SESSION_S, self._miss, worker)
        await asyncio.sleep(seconds)
        worker.awake.set()
        await self.chance.pause(1.0)
        if not worker.is_dead and not worker.is_leaving and worker not in self.members:
            worker.revoke()
            self.members.append(worker)
            self.rebalance_soon()

    def _miss(self, worker: Worker) -> None:
        if not worker.awake.is_set():
            self.gone(worker)

    def steal(self, shard: int) -> None:
        """Take a shard from its owner, as a worker of another group does."""
        topic = self.broker.topics.events
        records = [record for record in self.broker.partitions[topic, shard] if record is not None]
        epochs = [one.epoch for one in (decode_record(record.value) for record in records) if isinstance(one, Acquire)]
        thief = Acquire(
            schema=SCHEMA_VERSION,
            epoch=max(epochs, default=0) + 1,
            token=self.chance.random.randbytes(16),
            owner="thief",
            group="others",
            generation=self.chance.random.randrange(100),
        )
        self.broker.put(topic, shard, StoredRecord(encode_record(thief)))

    def rebalance_soon(self) -> None:
        """The members join again: all that was assigned is taken away, and assigned anew."""
        self._is_due = True
        if self._rebalancing is None or self._rebalancing.done():
            self._rebalancing = asyncio.get_running_loop().create_task(self._rebalance())

    async def _rebalance(self) -> None:
        while self._is_due:
            self._is_due = False
            joining = []
            for member in tuple(self.members):
                await self.chance.pause(0.2)
                if member.is_dead or not member.awake.is_set():
                    continue
                member.revoke()
                joining.append(member)
            self.generation += 1
            await self._assign([member for member in joining if member in self.members])

    async def _assign(self, members: Sequence[Worker]) -> None:
        for place, member in enumerate(members):
            await self.chance.pause(0.2)
            if member.barrier is not None and not member.barrier.done():
                await asyncio.wait((member.barrier,))
            if member.is_dead or not member.awake.is_set():
                continue
            shards = [shard for shard in range(SHARDS) if shard * len(members) // SHARDS == place]
            member.generation = self.generation
            with member.inside():
                member.barrier = asyncio.get_running_loop().create_task(member.assign(shards, self.generation))

    def calm_down(self) -> None:
        """End all trouble, and let one more worker come, since there may be none."""
        self.chance.is_calm = True
        for model in self.clusters.models.values():
            for broker in set(BROKERS) - set(model.live_brokers()):
                model.start_broker(broker)
        self.start_worker()

    def end(self) -> None:
        """End every process."""
        for worker in tuple(self.members):
            worker.die()

    def faults(self) -> list[tuple[str, BaseException | None]]:
        """Return why something has ended that a run had not done to it."""
        return [(what, error) for what, error in self.told if not isinstance(error, EndedError | LostError)]

    def moving(self) -> list[tuple[str, Any]]:
        """Return what the clusters are moving."""
        return [(name, moves) for name, model in self.clusters.models.items() if (moves := model.moves())]

    def throttled(self) -> list[tuple[str, Any]]:
        """Return the throttles that are set anywhere."""
        return [
            (name, configs)
            for name, model in self.clusters.models.items()
            for configs in (
                *(broker.configs for broker in model.brokers.values()),
                *(topic.configs for topic in model.topics.values()),
            )
            if any("throttled" in key for key in configs)
        ]
