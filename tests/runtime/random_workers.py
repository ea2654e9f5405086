"""Whole workers without Kafka, in virtual time: a group that rebalances, and processes that die, hang and come back.

They are those of the model installation. Here all that waits does so for a random time, so that each seed is another
order of events.
"""

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Any

from drover.cluster.port import ClusterDriver
from drover.events.codec import decode_record, encode_record
from drover.events.records import SCHEMA_VERSION, Acquire
from drover.journal.port import Journal
from drover.settings.settings import LogSettings, Settings, WorkerSettings
from drover.shard.messages import Arrival
from drover.testing.memory_journal import StoredRecord
from drover.testing.model_worker import EndedError, ModelGroup, ModelWorker
from tests.runtime.slow_connections import BROKERS, Chance, Driver, LostError, SlowJournal, new_clusters
from tests.runtime.world import CLUSTERS, SHARDS

LONGEST_LAG_S = 5.0


class RandomWorker(ModelWorker):
    """A process that may hang, and that reads commands late and in pieces."""

    group: "World"

    def __init__(self, name: str, group: "World") -> None:
        self.awake = asyncio.Event()
        self.awake.set()
        # What was fetched in which generation, and has not been delivered yet.
        self.fetched: deque[tuple[int, Arrival, int]] = deque()
        super().__init__(name, group)

    def _new_journal(self) -> Journal:
        return SlowJournal(self.group.broker, self.group.chance, self.lives, self.group.steal)

    def _new_driver(self, cluster: str) -> ClusterDriver:
        return Driver(cluster, self.group.clusters, self.group.chance, self.lives)

    @property
    def answers(self) -> bool:
        return super().answers and self.awake.is_set()

    @property
    def is_running(self) -> bool:
        """Whether it is neither dead nor hanging nor told to stop."""
        return self.answers and not self.is_leaving

    async def lives(self) -> None:
        """Return while the process runs: waits while it hangs, and never returns to one that is dead."""
        await self.awake.wait()
        if self.is_dead:
            raise EndedError

    def die(self) -> None:
        super().die()
        self.awake.set()

    async def _read_commands(self) -> None:
        chance = self.group.chance
        await chance.pause()
        if chance.strikes(0.01):
            # What was fetched before a rebalance may arrive after it.
            await asyncio.sleep(chance.random.random() * LONGEST_LAG_S)
        await self.lives()
        if self.fetched and chance.random.random() < 0.5:
            self.host.arrive(*self.fetched.popleft())
            return
        places = self._readable()
        if places and (self.barrier is None or self.barrier.done()):
            index, shard = chance.random.choice(places)
            arrivals = self.fetch(index, shard, chance.random.randint(1, 5))
            self.fetched += [(shard, arrival, self.generation) for arrival in arrivals]

    async def _seek(self, shards: Sequence[int], generation: int) -> None:
        for _ in range(2 if self.group.chance.strikes(0.2) else 1):
            await super()._seek(shards, generation)

    def _forget_fetched(self, generation: int) -> None:
        # Within a generation nothing tells apart what was fetched before; Faust forgets it, too.
        self.fetched = deque(fetched for fetched in self.fetched if fetched[-1] != generation)


class World(ModelGroup):
    """The log, the clusters, the group and its workers, to which everything happens by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = Chance(random.Random(seed))
        worker = WorkerSettings(group="g", snapshot_every_records=20)
        super().__init__(
            Settings(LogSettings("in-memory:9092"), clusters=CLUSTERS, worker=worker), new_clusters(), SHARDS
        )
        self._numbers = count(1)

    async def pause(self, longest_s: float = 0.05) -> None:
        await self.chance.pause(longest_s)

    def start_worker(self) -> RandomWorker:
        """Start a process; it joins the group once it has replayed the log."""
        worker = RandomWorker(f"w{next(self._numbers)}", self)
        worker.start()
        return worker

    def running(self) -> list[RandomWorker]:
        """Return the members that run."""
        return [worker for worker in self.members if isinstance(worker, RandomWorker) and worker.is_running]

    def stop(self, worker: RandomWorker) -> None:
        """Tell a process to stop."""
        asyncio.get_running_loop().create_task(worker.stop())

    def hang(self, worker: RandomWorker, seconds: float) -> None:
        """Stop a process for a while; the group goes on without it after a session timeout."""
        asyncio.get_running_loop().create_task(self._hang(worker, seconds))

    async def _hang(self, worker: RandomWorker, seconds: float) -> None:
        worker.awake.clear()
        asyncio.get_running_loop().call_later(self.session_s, self._miss, worker)
        await asyncio.sleep(seconds)
        worker.awake.set()
        await self.chance.pause(1.0)
        if not worker.is_dead and not worker.is_leaving and worker not in self.members:
            worker.revoke()
            self.join(worker)

    def _miss(self, worker: RandomWorker) -> None:
        if not worker.awake.is_set():
            self.leave(worker)

    def steal(self, shard: int) -> None:
        """Take a shard from its owner, as a worker of another group does."""
        topic = self.broker.topics.events
        records = [record for record in self.broker.partitions[topic, shard] if record is not None]
        epochs = [
            acquire.epoch
            for acquire in (decode_record(record.value) for record in records)
            if isinstance(acquire, Acquire)
        ]
        thief = Acquire(
            schema=SCHEMA_VERSION,
            epoch=max(epochs, default=0) + 1,
            token=self.chance.random.randbytes(16),
            owner="thief",
            group="others",
            generation=self.chance.random.randrange(100),
        )
        self.broker.put(topic, shard, StoredRecord(encode_record(thief)))

    def calm_down(self) -> None:
        """End all trouble, and let one more worker come, since there may be none."""
        self.chance.is_calm = True
        for model in self.clusters.values():
            for broker in set(BROKERS) - set(model.live_brokers()):
                model.start_broker(broker)
        self.start_worker()

    def unexpected_faults(self) -> list[tuple[str, BaseException | None]]:
        """Return why something has ended that a run had not done to it."""
        return [(why, error) for why, error in self.faults if not isinstance(error, EndedError | LostError)]

    def moving(self) -> list[tuple[str, Any]]:
        """Return what the clusters are moving."""
        return [(name, moves) for name, model in self.clusters.items() if (moves := model.moves())]

    def throttled(self) -> list[tuple[str, Any]]:
        """Return the throttles that are set anywhere."""
        return [
            (name, configs)
            for name, model in self.clusters.items()
            for configs in (
                *(broker.configs for broker in model.brokers.values()),
                *(topic.configs for topic in model.topics.values()),
            )
            if any("throttled" in key for key in configs)
        ]
