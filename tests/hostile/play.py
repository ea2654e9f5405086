"""Plays one seed: a real host on a log in memory, a model of each cluster, clients that send whatever they like."""

import asyncio
import time
from dataclasses import dataclass, field
from random import Random

from drover.agents.clock import now
from drover.events.records import Outcome
from drover.local.deadline import wait_until
from drover.settings.settings import LogSettings, Settings, WorkerSettings
from drover.testing.memory_journal import StoredRecord
from drover.testing.memory_log import MemoryLog
from drover.testing.model import ClusterModel
from drover.testing.model_worker import EndedError, ModelGroup, ModelWorker
from tests.hostile.inputs import EVENTS, PARTITIONS, TOPICS, Inputs, Sent
from tests.runtime.world import CLUSTERS, SHARDS

MOST_STALL_S = 2.0
QUIET_TIMEOUT_S = 120.0


def _model() -> ClusterModel:
    model = ClusterModel({broker: f"r{broker % 3}" for broker in range(1, 7)}, copy_bytes_per_second=50_000_000)
    model.now_ms = now().monotonic_ms
    for topic in range(TOPICS):
        assignment = {number: [1 + (number + place) % 6 for place in range(3)] for number in range(PARTITIONS)}
        model.create_topic(f"orders-{topic}", assignment, partition_bytes=1000)
    return model


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
    """One seed: `run` sends, waits until all is decided, and leaves the group to be checked.

    The group runs in real time: what is measured is for how long a worker's process does nothing else.
    """

    def __init__(self, seed: int, rounds: int) -> None:
        settings = Settings(
            LogSettings("in-memory:9092"),
            clusters=CLUSTERS,
            worker=WorkerSettings(name="w", snapshot_every_records=200),
        )
        self.group = ModelGroup(settings, {name: _model() for name in CLUSTERS}, SHARDS)
        self.worker = ModelWorker("w", self.group)
        self.log = MemoryLog(self.group.broker, SHARDS)
        self.watch = Watch()
        self._inputs = Inputs(Random(seed))
        self._rounds = rounds

    async def run(self) -> None:
        """Play it to its end."""
        self.worker.start()
        await wait_until(lambda: all(shard.assigned for shard in self.worker.host.shards), what="the worker serves")
        self.watch.start()
        for _ in range(self._rounds):
            for sent in self._inputs.next():
                self._write(sent)
            await asyncio.sleep(0.01)
        await wait_until(self._is_quiet, what="everything is decided", timeout_s=QUIET_TIMEOUT_S)
        await self.watch.stop()
        self.log.read()

    async def close(self) -> None:
        """End what still runs."""
        if not self.worker.is_dead:
            await self.worker.stop()

    @property
    def faults(self) -> list[tuple[str, BaseException | None]]:
        """Why the worker has ended, if it has."""
        return [(why, error) for why, error in self.group.faults if not isinstance(error, EndedError)]

    def outcomes(self, shard: int) -> list[Outcome]:
        """The valid outcomes of a shard."""
        return [outcome for batch in self.log.batches(shard) for outcome in batch.outcomes]

    def _write(self, sent: Sent) -> None:
        topics = self.group.broker.topics
        topic = topics.events if sent.topic_index == EVENTS else topics.commands[sent.topic_index]
        self.group.broker.put(topic, sent.shard, StoredRecord(sent.payload, headers=sent.headers))

    def _is_quiet(self) -> bool:
        if self.worker.is_dead:
            return True
        broker = self.group.broker
        return all(
            list(shard.next_offsets)
            == [len(broker.partitions[topic, shard.number]) for topic in broker.topics.commands]
            for shard in self.worker.host.shards
        )
