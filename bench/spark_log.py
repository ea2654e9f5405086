"""What the Spark benchmark reads: logs of many clusters, told from one that was made, and byte samples, on a Kafka."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from aiokafka import AIOKafkaProducer

from bench.log_maker import LogMaker, varied_log
from bench.results import check
from bench.traffic import cluster_names
from drover.events.codec import decode_record, encode_record, record_headers
from drover.events.commands import Freeze, Unfreeze
from drover.events.progress import Progress, ReplicaBytes
from drover.events.records import SCHEMA_VERSION, Acquire, Batch, Genesis, Record
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.fold.log import ShardFold
from drover.journal import topics
from drover.journal.connection import LogConnection
from drover.state.hashing import CURRENT_FORM

UNDER_WAY = 300
# What is asked for comes three times a day; a plan that has ended is kept for a day (`drover.reconcile.plans`).
PAUSE_MS = 8 * 3_600_000
PROBES = 12
CHUNK = 500
# Copies under way at the same time, each sampled once a second.
SAMPLED = 10_000
PER_TICK = 1_000
TICKS_PER_SECOND = SAMPLED // PER_TICK
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Script:
    """What happens to each cluster: its records after the acquire, then small ones to be written one by one."""

    acquire: Acquire
    batches: tuple[Batch, ...]
    probes: tuple[Batch, ...]
    finished: int


async def script(events: int, per_turn: int) -> Script:
    """Make a log of at least so many events that ends with reassignments under way; all others have finished."""
    maker = await varied_log(events, per_turn, PAUSE_MS)
    await maker.decide(maker.alter(range(UNDER_WAY)))
    length = len(maker.log)
    for number in range(PROBES):
        kind = Unfreeze if number % 2 else Freeze
        await maker.decide(kind(id=maker.new_id(), cluster="prod", by="ana@example", reason="a small record"))
    _, acquire, *batches = map(decode_record, maker.log)
    assert isinstance(acquire, Acquire), "a log begins with its owner"
    found = [batch for batch in batches if isinstance(batch, Batch)]
    return Script(acquire, tuple(found[: length - 2]), tuple(found[length - 2 :]), _finished(maker))


def _finished(maker: LogMaker) -> int:
    state = maker.state
    return state.next_number - 1 - len(state.reassignments)


class Teller:
    """One shard that tells a script of several clusters at once, as their owner would have written it."""

    def __init__(self, shard: int, clusters: Sequence[str]) -> None:
        self.shard = shard
        self.clusters = clusters
        self.events = 0
        self._fold = ShardFold(shard, DEFAULT_SHARDS)
        self._fold.fold(0, encode_record(Genesis(schema=SCHEMA_VERSION, shards=DEFAULT_SHARDS, shard=shard)))

    def tell(self, told: Script) -> Iterator[Record]:
        """Yield every record after the first one, which is made with the topic."""
        yield self._take(told.acquire)
        for batch in told.batches:
            for cluster in self.clusters:
                yield self.next(batch, cluster)

    def next(self, batch: Batch, cluster: str) -> Record:
        """Make a batch the next one, about this cluster; the chain and the state hashes are those of this shard."""
        self.events += len(batch.events)
        fold = self._fold
        renamed: dict[str, Any] = {
            "events": tuple(msgspec.structs.replace(event, cluster=cluster) for event in batch.events),
            "outcomes": tuple(msgspec.structs.replace(outcome, cluster=cluster) for outcome in batch.outcomes),
        }
        if batch.state_hash is not None:
            renamed |= {"state_hash": fold.state.hash(), "state_hash_form": CURRENT_FORM}
        return self._take(
            msgspec.structs.replace(batch, sequence=fold.sequence + 1, previous_hash=fold.chain, **renamed)
        )

    def _take(self, record: Record) -> Record:
        self._fold.fold(self._fold.position, encode_record(record))
        return record


@dataclass
class WrittenLog:
    """A log that stands on a Kafka; its first shard can go on."""

    connection: LogConnection
    tellers: tuple[Teller, ...]
    probes: list[Batch]
    records: int
    finished: int

    @property
    def events(self) -> int:
        return sum(teller.events for teller in self.tellers)

    async def probe(self) -> float:
        """Append one small record, and return when it was sent, by the monotonic clock."""
        teller = self.tellers[0]
        record = teller.next(self.probes.pop(0), teller.clusters[0])
        async with _producer(self.connection) as producer:
            sent = time.monotonic()
            await producer.send_and_wait(self.connection.topics.events, encode_record(record), partition=teller.shard)
        return sent


async def write_log(connection: LogConnection, told: Script) -> WrittenLog:
    """Make Drover's topics and write a script to every shard, for two clusters of each."""
    await topics.init(connection)
    names = cluster_names()
    tellers = tuple(
        Teller(shard, [name for name in names if shard_of(name, DEFAULT_SHARDS) == shard])
        for shard in range(DEFAULT_SHARDS)
    )
    records = 0
    topic = connection.topics.events
    async with _producer(connection) as producer:
        for teller in tellers:
            sent: list[asyncio.Future[Any]] = []
            for record in teller.tell(told):
                headers = list(record_headers(record))
                sent.append(await producer.send(topic, encode_record(record), partition=teller.shard, headers=headers))
                records += 1
                if len(sent) == CHUNK:
                    await asyncio.gather(*sent)
                    sent.clear()
            await asyncio.gather(*sent)
    return WrittenLog(connection, tellers, list(told.probes), records, told.finished * len(names))


class Sampling:
    """Samples of 10,000 copies at once, a second apart by their own time; a thousand samples are one tick."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection = connection
        self._clusters = cluster_names()
        self._began_ms = time.time_ns() // 1_000_000
        self._ticks = 0

    async def backlog(self, samples: int) -> int:
        """Write so many samples as fast as they are taken; returns the time that every copy's last sample tells."""
        async with _producer(self._connection) as producer:
            for _ in range(samples // PER_TICK):
                await self._send(producer)
        return self._at_ms(self._ticks // TICKS_PER_SECOND - 1)

    async def pace(self, seconds: int) -> list[int]:
        """Write 10,000 samples a second and return when each tick was appended, in ms since the epoch."""
        appended: list[int] = []
        async with _producer(self._connection) as producer:
            began = time.monotonic()
            for number in range(seconds * TICKS_PER_SECOND):
                await asyncio.sleep(max(0.0, began + number / TICKS_PER_SECOND - time.monotonic()))
                appended.append(await self._send(producer))
        return appended

    async def _send(self, producer: Any) -> int:
        """Append a tick to one partition in one go, and return its time."""
        builder = producer.create_batch()
        group = self._ticks % TICKS_PER_SECOND
        shard = shard_of(self._clusters[group], DEFAULT_SHARDS)
        at_ms = time.time_ns() // 1_000_000
        for payload in self._payloads(group):
            check(builder.append(key=None, value=payload, timestamp=at_ms), "a tick has no room in a batch")
        builder.close()
        self._ticks += 1
        await (await producer.send_batch(builder, self._connection.topics.progress, partition=shard))
        return at_ms

    def _payloads(self, group: int) -> Iterator[bytes]:
        second = self._ticks // TICKS_PER_SECOND
        done = (1 + second) * MEBIBYTE
        for number in range(PER_TICK):
            yield msgspec.msgpack.encode(
                Progress(
                    cluster=self._clusters[group],
                    topic="sampled",
                    partition=number,
                    epoch=1,
                    at_ms=self._at_ms(second),
                    step=1,
                    bytes_done=2 * done,
                    bytes_total=4096 * MEBIBYTE,
                    adding=(ReplicaBytes(broker=4, bytes=done), ReplicaBytes(broker=5, bytes=done)),
                    leader=1,
                )
            )

    def _at_ms(self, second: int) -> int:
        return self._began_ms + second * 1000


def _producer(connection: LogConnection) -> Any:
    return AIOKafkaProducer(
        **connection.client_options,
        enable_idempotence=True,
        max_batch_size=MEBIBYTE,
        max_request_size=8 * MEBIBYTE,
        linger_ms=5,
    )
