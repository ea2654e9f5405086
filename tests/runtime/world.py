"""A worker's host without Kafka: a journal in memory, a group that does as it is told, clusters out of reach."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from drover.agents.host import ShardHost
from drover.agents.services import ClusterSide
from drover.agents.snapshots import SnapshotKeeper
from drover.events.codec import decode_command, decode_record, encode_command, encode_record
from drover.events.commands import AnyCommand, Freeze
from drover.events.partitions import TopicPartition
from drover.events.records import SCHEMA_VERSION, Batch, Genesis, Outcome
from drover.events.topics import shard_of
from drover.reconcile.messages import Effect
from drover.service.metrics import Metrics
from drover.settings.settings import ClusterSettings, LogSettings, Settings, WorkerSettings
from drover.shard.core import ShardCore
from drover.shard.messages import Arrival
from drover.testing.memory_journal import MemoryBroker, MemoryJournal, StoredRecord
from drover.testing.memory_log import MemoryLog
from drover.testing.model_worker import TOPIC_IDS, EndedError

SHARDS = 2
GROUP = "test-worker"


@dataclass
class FakeGroup:
    """The consumer group: keeps what it is asked for."""

    generation: int = 1
    held: set[tuple[int, int]] = field(default_factory=set)
    rejoins: int = 0

    def hold(self, topic_index: int, partition: int) -> None:
        self.held.add((topic_index, partition))

    def release(self, topic_index: int, partition: int) -> None:
        self.held.discard((topic_index, partition))

    async def request_rejoin(self) -> None:
        self.rejoins += 1


@dataclass
class FakeClusters:
    """Managed clusters that cannot be reached; `before_facts` runs while a shard waits for them."""

    owned: list[int] = field(default_factory=list)
    before_facts: Callable[[], None] = lambda: None

    async def gather(self, _core: ShardCore, needed: Mapping[str, frozenset[TopicPartition]]) -> Mapping[str, str]:
        await asyncio.sleep(0)
        self.before_facts()
        return dict.fromkeys(needed, "out of reach")

    def start(self, _core: ShardCore, effects: Sequence[Effect], _wake: Callable[[], None]) -> None:
        assert not effects, f"no effect was expected: {effects}"

    def own(self, core: ShardCore, _wake: Callable[[], None]) -> None:
        self.owned.append(core.fold.shard)

    def disown(self, core: ShardCore) -> None:
        self.owned.remove(core.fold.shard)

    async def close(self) -> None: ...


def cluster_in(shard: int) -> str:
    """A cluster name that lives in this shard."""
    return next(name for name in (f"c{number}" for number in range(100)) if shard_of(name, SHARDS) == shard)


CLUSTERS = {cluster_in(shard): ClusterSettings("nowhere:1", max_partitions_in_flight=10) for shard in range(SHARDS)}


def freeze(identity: str, shard: int = 0) -> Freeze:
    return Freeze(id=identity, cluster=cluster_in(shard), by="me", reason="test")


def arrival_of(command: AnyCommand | bytes, offset: int, *, topic_index: int = 1, forwarded: bool = False) -> Arrival:
    payload = command if isinstance(command, bytes) else encode_command(command)
    return Arrival(topic_index, offset, 1000 + offset, payload, decode_command(payload), forwarded)


@dataclass
class World:
    """One broker, any number of hosts, and a look at the log."""

    broker: MemoryBroker = field(default_factory=MemoryBroker)
    ended: list[int] = field(default_factory=list)
    hosts: list[ShardHost] = field(default_factory=list)
    # What Kafka says of the command topics when a worker that runs asks again.
    topic_ids: tuple[str | None, ...] | Exception = TOPIC_IDS

    def __post_init__(self) -> None:
        for shard in range(SHARDS):
            genesis = Genesis(schema=SCHEMA_VERSION, shards=SHARDS, shard=shard)
            self.broker.put(self.broker.topics.events, shard, StoredRecord(encode_record(genesis)))

    async def host(
        self,
        owner: str,
        session_timeout_ms: int = 10_000,
        topic_ids: tuple[str, ...] = TOPIC_IDS,
        snapshot_every_records: int = 0,
        group_name: str = GROUP,
        driven: ClusterSide | None = None,
        instance_id: str | None = None,
    ) -> tuple[ShardHost, FakeGroup, FakeClusters]:
        """A host that has replayed and runs; nothing is assigned yet. Its clusters are fakes, if not `driven` ones."""
        group, clusters = FakeGroup(), FakeClusters()
        settings = Settings(
            LogSettings("in-memory:9092", self.broker.topics.prefix),
            clusters=CLUSTERS,
            worker=WorkerSettings(
                name=owner, group=group_name, instance_id=instance_id, session_timeout_ms=session_timeout_ms
            ),
        )
        journal, metrics = MemoryJournal(self.broker, SHARDS), Metrics()
        snapshots = SnapshotKeeper(journal, self.broker.topics, snapshot_every_records, metrics)

        async def read_topic_ids() -> tuple[str | None, ...]:
            if isinstance(self.topic_ids, Exception):
                raise self.topic_ids
            return self.topic_ids

        host = ShardHost(
            *(settings, topic_ids, journal, driven or clusters, snapshots, metrics),
            read_topic_ids=read_topic_ids,
            end=self._end,
        )
        host.attach(group)
        await host.start()
        self.hosts.append(host)
        return host, group, clusters

    async def serving_host(self, owner: str = "w") -> tuple[ShardHost, FakeGroup, FakeClusters]:
        """A host that owns every shard."""
        host, group, clusters = await self.host(owner)
        await self.assign(host, range(SHARDS), group.generation)
        return host, group, clusters

    async def assign(self, host: ShardHost, shards: Sequence[int], generation: int) -> None:
        """One barrier, then the seek, as Faust does it."""
        await host.partitions_assigned(dict.fromkeys(self.broker.topics.commands, tuple(shards)), generation)
        host.positions_set({shard: host.positions()[shard] for shard in shards})

    def command(self, command: AnyCommand | bytes, shard: int = 0, *, topic_index: int = 1) -> int:
        """Put a command on its topic and return its offset; it does not arrive by itself."""
        payload = command if isinstance(command, bytes) else encode_command(command)
        return self.broker.put(self.broker.topics.commands[topic_index], shard, StoredRecord(payload))

    def batches(self, shard: int = 0) -> list[Batch]:
        records = map(decode_record, self.broker.values(self.broker.topics.events, shard))
        return [record for record in records if isinstance(record, Batch)]

    def outcomes(self, shard: int = 0) -> list[Outcome]:
        return [outcome for batch in self.batches(shard) for outcome in batch.outcomes]

    def valid_outcomes(self, shard: int = 0) -> list[Outcome]:
        """The outcomes that count: without those of owners that were fenced."""
        log = MemoryLog(self.broker, SHARDS)
        log.read()
        return [outcome for batch in log.batches(shard) for outcome in batch.outcomes]

    async def until(self, holds: Callable[[], object], what: str, timeout_s: float = 30.0) -> None:
        """Wait for a condition with a deadline."""
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    if holds():
                        return
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise AssertionError(f"not within {timeout_s:g} s: {what}") from None

    async def close(self) -> None:
        for host in self.hosts:
            if self.ended:
                # What os._exit would have ended.
                tasks = [*host._tasks, *host._loops]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            else:
                await host.close_shards()
                await host.stop()

    def _end(self, code: int) -> NoReturn:
        self.ended.append(code)
        raise EndedError
