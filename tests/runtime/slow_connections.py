"""One worker's connections to the log and to the clusters: slow, out of step, and some calls get lost."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from drover.cluster.port import ThrottleChange
from drover.errors import AppendUnknownError, ClusterUnavailableError
from drover.facts import CallResult
from drover.journal.port import Headers, TailRecord
from drover.testing.memory_journal import MemoryBroker, MemoryJournal
from drover.testing.model import ClusterModel
from drover.testing.model_worker import ModelClusters, ModelDriver
from drover.testing.simulated import Loss
from tests.runtime.world import CLUSTERS, SHARDS

BROKERS = (1, 2, 3, 4, 5)
PARTITIONS = 4
TOPICS = ("orders", "payments")
PARTITION_BYTES, BYTES_PER_SECOND, RATE = 1_000_000, 2_000_000, 400_000
CALL_S = 4.0

Answer = TypeVar("Answer")
# When the call under way began that sends several requests, if it is one: they have one time limit.
_BEGAN_S: ContextVar[float | None] = ContextVar("_BEGAN_S", default=None)
# Returns while the worker's process runs: waits while it hangs, and raises in one that is dead.
Lives = Callable[[], Awaitable[None]]


class LostError(AppendUnknownError):
    """An acknowledgement that the story loses on purpose: a worker may end because of it."""


@dataclass
class Chance:
    """The seeded chance of one run; no trouble strikes while `is_calm`."""

    random: random.Random
    is_calm: bool = False

    async def pause(self, longest_s: float = 0.05) -> None:
        """Wait a little, and now and then for long."""
        longest_s = longest_s * 20 if self.strikes(0.02) else longest_s
        await asyncio.sleep(self.random.random() * longest_s)

    def strikes(self, likelihood: float) -> bool:
        """Whether something happens that is so likely while there is trouble."""
        return not self.is_calm and self.random.random() < likelihood


def new_clusters() -> dict[str, ClusterModel]:
    """The model clusters of a run, all alike."""
    clusters = {}
    for name in CLUSTERS:
        model = ClusterModel({broker: f"r{broker % 3}" for broker in BROKERS}, copy_bytes_per_second=BYTES_PER_SECOND)
        for topic in TOPICS:
            layout = {
                number: [BROKERS[(number + place) % len(BROKERS)] for place in range(3)] for number in range(PARTITIONS)
            }
            model.create_topic(topic, layout, partition_bytes=PARTITION_BYTES)
        clusters[name] = model
    return clusters


class Driver(ModelDriver):
    """One worker's connection to a cluster: slow, and calls get lost."""

    def __init__(self, name: str, clusters: ModelClusters, chance: Chance, lives: Lives) -> None:
        super().__init__(name, clusters)
        self._chance, self._lives = chance, lives

    async def change_throttles(self, changes: Sequence[ThrottleChange]) -> Mapping[ThrottleChange, CallResult]:
        began = _BEGAN_S.set(asyncio.get_running_loop().time())
        try:
            return await super().change_throttles(changes)
        finally:
            _BEGAN_S.reset(began)

    async def _next_loss(self) -> Loss | None:
        began_s = _BEGAN_S.get()
        if began_s is None:
            began_s = asyncio.get_running_loop().time()
        await self._chance.pause()
        await self._lives()
        if asyncio.get_running_loop().time() - began_s > CALL_S:
            # The process hung meanwhile. Its time limit ends the call before that sends anything.
            raise ClusterUnavailableError("too late")
        if self._chance.strikes(0.02):
            self.lose_next(self._chance.random.choice(list(Loss)))
        return await super()._next_loss()


class SlowJournal(MemoryJournal):
    """One worker's connection to the log: slow, delivers the tail in pieces, and loses some acknowledgements."""

    def __init__(self, broker: MemoryBroker, chance: Chance, lives: Lives, steal: Callable[[int], None]) -> None:
        super().__init__(broker, SHARDS)
        self._chance, self._lives, self._steal = chance, lives, steal

    async def append(self, shard: int, payload: bytes, headers: Headers) -> int:
        if self._chance.strikes(0.01):
            # Somebody else's record comes first: whoever writes this one does not own the shard any more.
            self._steal(shard)
        return await self._slowly(super().append, shard, payload, headers)

    async def send(self, topic: str, value: bytes, **more: Any) -> None:
        return await self._slowly(super().send, topic, value, **more)

    async def next_records(self) -> Sequence[TailRecord]:
        await self._chance.pause()
        records = await super().next_records()
        await self._lives()
        found = Counter(record.shard for record in records)
        kept = found if self._chance.is_calm else {shard: self._part(count) for shard, count in found.items()}
        for shard, count in found.items():
            self._positions[shard] -= count - kept[shard]
        return [record for record in records if record.offset < self._positions[record.shard]]

    def _part(self, count: int) -> int:
        return self._chance.random.randint(1, count)

    async def bounds(self, topic: str, at_least: Sequence[int] | None = None) -> tuple[tuple[int, int], ...]:
        return await self._slowly(super().bounds, topic, at_least)

    async def first_offset(self, topic: str, partition: int, at_least: int) -> int:
        return await self._slowly(super().first_offset, topic, partition, at_least)

    async def _slowly(self, call: Callable[..., Awaitable[Answer]], *arguments: Any, **more: Any) -> Answer:
        await self._chance.pause()
        await self._lives()
        done = await call(*arguments, **more)
        await self._chance.pause()
        await self._lives()
        if self._chance.strikes(0.002):
            raise LostError("the acknowledgement was lost")
        return done
