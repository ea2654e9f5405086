"""Plays one seed: a real host on a log in memory, a model of each cluster, clients that send whatever they like."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from drover.agents.calls import carry_out, look
from drover.agents.clock import now
from drover.errors import ClusterError
from drover.events.codec import decode_command
from drover.events.partitions import TopicPartition
from drover.local.waiting import wait_until
from drover.reconcile.messages import Effect
from drover.shard.core import ShardCore
from drover.shard.messages import FORWARDED_HEADER, Arrival
from drover.testing.memory_journal import StoredRecord
from drover.testing.model import ClusterModel
from drover.testing.simulated import SimulatedDriver
from tests.hostile.inputs import EVENTS, PARTITIONS, TOPICS, Inputs, Sent
from tests.runtime.world import SHARDS, FakeGroup, World, cluster_in

LOOK_S = 0.05
MOST_STALL_S = 2.0
QUIET_TIMEOUT_S = 120.0


class ModelClusters:
    """The managed clusters of the host: a model of each, driven as `drover.agents.clusters` drives real ones."""

    def __init__(self) -> None:
        self._drivers = {cluster_in(shard): _driver(cluster_in(shard)) for shard in range(SHARDS)}
        self._watchers: dict[int, asyncio.Task[None]] = {}
        self._calls: set[asyncio.Task[None]] = set()

    async def gather(self, core: ShardCore, needed: Mapping[str, frozenset[TopicPartition]]) -> Mapping[str, str]:
        unavailable: dict[str, str] = {}
        for name, partitions in needed.items():
            try:
                core.deliver(await self._present(name).observe(partitions, with_min_isr=True))
            except ClusterError as error:
                unavailable[name] = str(error)
        return unavailable

    def start(self, core: ShardCore, effects: Sequence[Effect], wake: Callable[[], None]) -> None:
        for effect in effects:
            task = asyncio.create_task(self._carry_out(core, effect, wake))
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)

    async def _carry_out(self, core: ShardCore, effect: Effect, wake: Callable[[], None]) -> None:
        core.deliver(await carry_out(self._present(effect.cluster), effect, now))
        wake()

    def own(self, core: ShardCore, wake: Callable[[], None]) -> None:
        self._watchers[core.fold.shard] = asyncio.create_task(self._watch(core, wake))

    async def _watch(self, core: ShardCore, wake: Callable[[], None]) -> None:
        while True:
            for name in core.clusters:
                seen = await look(self._present(name), core, name, now)
                if seen is not None:
                    core.deliver(seen)
                    wake()
            await asyncio.sleep(LOOK_S)

    def disown(self, core: ShardCore) -> None:
        self._watchers.pop(core.fold.shard).cancel()

    async def close(self) -> None:
        tasks = [*self._watchers.values(), *self._calls]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _present(self, name: str) -> SimulatedDriver:
        """Let the model's time catch up with the worker's."""
        driver = self._drivers[name]
        behind_ms = now().monotonic_ms - driver.model.now_ms
        if behind_ms > 0:
            driver.model.advance(behind_ms)
        return driver


def _driver(name: str) -> SimulatedDriver:
    model = ClusterModel({broker: f"r{broker % 3}" for broker in range(1, 7)}, copy_bytes_per_second=50_000_000)
    model.now_ms = now().monotonic_ms
    for topic in range(TOPICS):
        assignment = {number: [1 + (number + place) % 6 for place in range(3)] for number in range(PARTITIONS)}
        model.create_topic(f"orders-{topic}", assignment, partition_bytes=1000)
    return SimulatedDriver(model, name)


@dataclass
class Watch:
    """How long the process was busy between two moments in which others could run; processor time."""

    longest_s: float = 0.0
    _task: asyncio.Task[None] | None = field(default=None, repr=False)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            self.longest_s = max(self.longest_s, time.thread_time() - before)
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        assert self._task is not None, "it was started"
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Play:
    """One seed: `run` sends, waits until all is decided, and leaves the world to be checked."""

    def __init__(self, seed: int, rounds: int) -> None:
        self.world = World()
        self.watch = Watch()
        self._inputs = Inputs(Random(seed))
        self._rounds = rounds
        self._readers: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Play it to its end."""
        host, group, _ = await self.world.host("w", driven=ModelClusters(), snapshot_every_records=200)
        await self.world.assign(host, range(SHARDS), group.generation)
        self.watch.start()
        topics = self.world.broker.topics.commands
        self._readers = [
            asyncio.create_task(self._read(index, shard, group))
            for index in range(len(topics))
            for shard in range(SHARDS)
        ]
        for _ in range(self._rounds):
            for sent in self._inputs.next():
                self._write(sent)
            await asyncio.sleep(0.01)
        await wait_until(self._is_quiet, what="everything is decided", timeout_s=QUIET_TIMEOUT_S)
        await self.watch.stop()

    async def close(self) -> None:
        """End what still runs."""
        for task in self._readers:
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        await self.world.close()

    def _write(self, sent: Sent) -> None:
        topics = self.world.broker.topics
        topic = topics.events if sent.topic_index == EVENTS else topics.commands[sent.topic_index]
        self.world.broker.put(topic, sent.shard, StoredRecord(sent.payload, headers=sent.headers))

    async def _read(self, index: int, shard: int, group: FakeGroup) -> None:
        """Bring one partition of a command topic to the host, as the agents do."""
        (host,) = self.world.hosts
        stored = self.world.broker.partitions[self.world.broker.topics.commands[index], shard]
        offset = 0
        while True:
            while offset < len(stored) and (index, shard) not in group.held:
                record = stored[offset]
                assert record is not None, "nobody writes markers here"
                headers = dict(record.headers)
                content_type = headers.get("content-type")
                command = decode_command(record.value, content_type.decode("latin-1") if content_type else None)
                stamp = int(time.time() * 1000)
                arrival = Arrival(index, offset, stamp, record.value, command, FORWARDED_HEADER in headers)
                host.arrive(shard, arrival, group.generation)
                offset += 1
                if offset % 50 == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(0.01)

    def _is_quiet(self) -> bool:
        if self.world.ended:
            return True
        (host,) = self.world.hosts
        for shard in host.shards:
            ends = [
                len(self.world.broker.partitions[topic, shard.number]) for topic in self.world.broker.topics.commands
            ]
            if list(shard.next_offsets) != ends:
                return False
        return True
