"""The journal in memory, for tests and the simulation: the same contract, with the faults that Kafka can show."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from drover.errors import AppendUnknownError, LogUnavailableError
from drover.events.topics import TopicNames
from drover.journal.port import Headers, RecordTooLargeError, TailRecord
from drover.journal.producer import MAX_REQUEST_BYTES
from drover.journal.reader import LogRecord
from drover.time_limits import time_limit


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record; its place in the list is its offset."""

    value: bytes
    key: bytes | None = None
    headers: Headers = ()


@dataclass(slots=True)
class MemoryBroker:
    """The topics, shared by several journals. None in a partition is a transaction marker.

    `lost_acknowledgements` counts the next appends that are written without an acknowledgement. Topics in `missing` can
    be neither read nor written; `aside_sends` counts the next writes aside that succeed, None for all. `time_ms` is the
    broker's time, None if its answers have none.
    """

    topics: TopicNames = field(default_factory=TopicNames)
    partitions: defaultdict[tuple[str, int], list[StoredRecord | None]] = field(
        default_factory=lambda: defaultdict(list)
    )
    lost_acknowledgements: int = 0
    missing: set[str] = field(default_factory=set)
    aside_sends: int | None = None
    time_ms: int | None = None
    grown: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, topic: str, partition: int, record: StoredRecord | None) -> int:
        """Write one record or marker and return its offset."""
        stored = self.partitions[topic, partition]
        stored.append(record)
        self.grown.set()
        return len(stored) - 1

    def values(self, topic: str, partition: int) -> list[bytes]:
        """Return the values of a partition's records."""
        return [record.value for record in self.partitions[topic, partition] if record is not None]


class MemoryJournal:
    """One worker's view of a `MemoryBroker`; see `Journal` for the contract."""

    def __init__(self, broker: MemoryBroker, shards: int) -> None:
        self.shards = shards
        self._broker = broker
        self._positions = [0] * shards

    async def start(self) -> None:
        """Start before the first record."""
        self._positions = [0] * self.shards

    def seek(self, positions: Sequence[int]) -> None:
        """Continue the tail at these offsets."""
        self._positions = list(positions)

    @asynccontextmanager
    async def reader(self, *, is_committed: bool = False) -> AsyncGenerator["MemoryReader", None]:
        """Return a connection for finite readings; there are no aborted transactions here."""
        del is_committed
        yield MemoryReader(self._broker, self.shards)

    @asynccontextmanager
    async def aside(self) -> AsyncGenerator["MemorySender", None]:
        """Return a connection for large records."""
        yield MemorySender(self._broker)

    async def append(self, shard: int, payload: bytes, headers: Headers) -> int:
        """Append one record to a shard."""
        return await self._write(self._broker.topics.events, shard, StoredRecord(payload, headers=headers))

    async def send(
        self, topic: str, value: bytes, *, partition: int | None = None, key: bytes | None = None, headers: Headers = ()
    ) -> None:
        """Produce one record to any topic; without a partition to the first."""
        await self._write(topic, partition or 0, StoredRecord(value, key, headers))

    def broker_time_ms(self) -> int | None:
        """Return the broker's time."""
        return self._broker.time_ms

    async def next_records(self) -> Sequence[TailRecord]:
        """Return the new records of the log."""
        records = self._unread()
        if not records:
            self._broker.grown.clear()
            try:
                async with time_limit(0.5):
                    await self._broker.grown.wait()
            except TimeoutError:
                return ()
            records = self._unread()
        return records

    async def ends(self) -> tuple[int, ...]:
        """Return the end offset of every shard."""
        return tuple(end for _, end in await self.bounds(self._broker.topics.events))

    async def has_reached(self, ends: Sequence[int]) -> bool:
        """Whether everything before these offsets was delivered."""
        return all(position >= end for position, end in zip(self._positions, ends, strict=True))

    async def bounds(self, topic: str, at_least: Sequence[int] | None = None) -> tuple[tuple[int, int], ...]:
        """Return first and end offset of each partition; leaders are never stale here."""
        del at_least
        return tuple((0, len(self._broker.partitions[topic, shard])) for shard in range(self.shards))

    async def first_offset(self, topic: str, partition: int, at_least: int) -> int:
        """Return the offset of the first record at or after `at_least`."""
        while True:
            stored = self._broker.partitions[topic, partition]
            for offset in range(at_least, len(stored)):
                if stored[offset] is not None:
                    return offset
            self._broker.grown.clear()
            await self._broker.grown.wait()

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    async def _write(self, topic: str, partition: int, record: StoredRecord) -> int:
        if len(record.value) > MAX_REQUEST_BYTES:
            raise RecordTooLargeError(f"{topic}/{partition}: {len(record.value)} bytes are too many")
        if topic in self._broker.missing:
            raise AppendUnknownError(f"{topic}/{partition}: nothing can be written")
        await asyncio.sleep(0)
        offset = self._broker.put(topic, partition, record)
        if self._broker.lost_acknowledgements > 0:
            self._broker.lost_acknowledgements -= 1
            raise AppendUnknownError(f"{topic}/{partition}: the acknowledgement was lost")
        await asyncio.sleep(0)
        return offset

    def _unread(self) -> list[TailRecord]:
        records: list[TailRecord] = []
        for shard in range(self.shards):
            stored = self._broker.partitions[self._broker.topics.events, shard]
            for offset in range(self._positions[shard], len(stored)):
                record = stored[offset]
                if record is not None:
                    records.append(TailRecord(shard, offset, record.value))
            self._positions[shard] = len(stored)
        return records


class MemoryReader:
    """Finite readings; see `Reading` for the contract."""

    def __init__(self, broker: MemoryBroker, shards: int) -> None:
        self._broker = broker
        self._shards = shards

    async def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """Count the partitions of topics, 0 for a missing topic."""
        return {topic: 0 if topic in self._broker.missing else self._shards for topic in topics}

    async def end_offsets(self, topic: str, shards: Collection[int]) -> dict[int, int]:
        """Return the next offset to be written, per shard."""
        return {shard: len(self._broker.partitions[topic, shard]) for shard in shards}

    async def read(self, topic: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        """Read these shards from these offsets up to the end as it is now."""
        for shard, offset in start.items():
            await asyncio.sleep(0)
            stored = self._broker.partitions[topic, shard]
            records = [(place, stored[place]) for place in range(offset, len(stored))]
            yield tuple(
                LogRecord(shard, place, 0, record.value, record.headers, record.key or b"")
                for place, record in records
                if record is not None
            )


class MemorySender:
    """Producing aside; see `Sending` for the contract."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    async def send(
        self, topic: str, value: bytes, *, partition: int | None = None, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        """Produce one record and return its offset."""
        await asyncio.sleep(0)
        if topic in self._broker.missing or self._broker.aside_sends == 0:
            raise LogUnavailableError(f"{topic}/{partition}: nothing can be written")
        if self._broker.aside_sends is not None:
            self._broker.aside_sends -= 1
        return self._broker.put(topic, partition or 0, StoredRecord(value, key, headers))
