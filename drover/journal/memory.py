"""The journal in memory: the same contract for tests and the simulation, with the faults Kafka can show."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from drover.errors import AppendUnknownError
from drover.journal.port import Headers, RecordTooLargeError, TailRecord
from drover.journal.producer import MAX_REQUEST_BYTES
from events.topics import TopicNames


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record; its place in the list is its offset."""

    value: bytes
    key: bytes | None = None
    headers: Headers = ()


@dataclass(slots=True)
class MemoryBroker:
    """What several journals share: the topics. None in a partition is a transaction marker.

    `lost_acknowledgements` counts down: that many next appends are written, and their writer is not told.
    """

    topics: TopicNames = field(default_factory=TopicNames)
    partitions: defaultdict[tuple[str, int], list[StoredRecord | None]] = field(
        default_factory=lambda: defaultdict(list)
    )
    lost_acknowledgements: int = 0
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
        """Stand before the first record."""
        self._positions = [0] * self.shards

    async def append(self, shard: int, payload: bytes, headers: Headers) -> int:
        """Append one record to a shard."""
        return await self._write(self._broker.topics.events, shard, StoredRecord(payload, headers=headers))

    async def send(
        self, topic: str, value: bytes, *, partition: int | None = None, key: bytes | None = None, headers: Headers = ()
    ) -> None:
        """Produce one record to any topic; without a partition to the first."""
        await self._write(topic, partition or 0, StoredRecord(value, key, headers))

    async def next_records(self) -> Sequence[TailRecord]:
        """Return what the log has got since."""
        records = self._unread()
        if not records:
            self._broker.grown.clear()
            try:
                async with asyncio.timeout(0.5):
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

    async def bounds(self, topic: str) -> tuple[tuple[int, int], ...]:
        """Return first and end offset of each partition."""
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
        """Nothing is held."""

    async def _write(self, topic: str, partition: int, record: StoredRecord) -> int:
        if len(record.value) > MAX_REQUEST_BYTES:
            raise RecordTooLargeError(f"{topic}/{partition}: {len(record.value)} bytes are too many")
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
