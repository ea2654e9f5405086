"""The journal on a real Kafka."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from drover.errors import LogUnavailableError
from drover.journal.connection import LogConnection
from drover.journal.port import Headers, TailRecord
from drover.journal.producer import LogProducer
from drover.journal.reader import COMMAND_ISOLATION, LogReader
from drover.journal.tail import LogTail, first_offset

# The event log has its own rules of validity, independent of Kafka's transactions.
EVENT_ISOLATION = "read_uncommitted"


class KafkaJournal:
    """One producer and one tail; see `Journal` for the contract."""

    def __init__(self, connection: LogConnection, shards: int, client_id: str) -> None:
        self.shards = shards
        self._connection = connection
        self._client_id = client_id
        self._producer = LogProducer(connection, f"{client_id}-producer")
        self._tail = LogTail(connection, shards, f"{client_id}-tail")

    async def start(self) -> None:
        """Connect producer and tail; if one fails, wait for the other before raising its exception."""
        for end in await asyncio.gather(self._producer.start(), self._tail.start(), return_exceptions=True):
            if end is not None:
                raise end

    def seek(self, positions: Sequence[int]) -> None:
        """Move the tail to these offsets."""
        self._tail.seek(positions)

    def reader(self, *, is_committed: bool = False) -> LogReader:
        """Return a connection for finite reads."""
        return LogReader(self._connection, COMMAND_ISOLATION if is_committed else EVENT_ISOLATION)

    @asynccontextmanager
    async def aside(self) -> AsyncGenerator[LogProducer, None]:
        """Return a separate connection for large records, so that they share no request with the log's records."""
        producer = LogProducer(self._connection, f"{self._client_id}-aside")
        try:
            await producer.start()
            yield producer
        finally:
            await producer.close()

    async def append(self, shard: int, payload: bytes, headers: Headers) -> int:
        """Append one record to a shard."""
        return await self._producer.send(self._connection.topics.events, payload, partition=shard, headers=headers)

    async def send(
        self, topic: str, value: bytes, *, partition: int | None = None, key: bytes | None = None, headers: Headers = ()
    ) -> None:
        """Produce one record to any topic."""
        await self._producer.send(topic, value, partition=partition, key=key, headers=headers)

    def broker_time_ms(self) -> int | None:
        """Return the time of the log's brokers."""
        return self._producer.broker_time_ms()

    async def next_records(self) -> Sequence[TailRecord]:
        """Return the new records of the log."""
        return await self._tail.next_records()

    async def ends(self) -> tuple[int, ...]:
        """Return the end offset of every shard."""
        return tuple(end for _, end in await self.bounds(self._connection.topics.events))

    async def has_reached(self, ends: Sequence[int]) -> bool:
        """Whether everything before these offsets was delivered."""
        return await self._tail.has_reached(ends)

    async def bounds(self, topic: str, at_least: Sequence[int] | None = None) -> tuple[tuple[int, int], ...]:
        """Return the first and end offset of each partition; retry once, because a leader may just have died."""
        try:
            return await self._tail.bounds(topic, at_least)
        except LogUnavailableError:
            return await self._tail.bounds(topic, at_least)

    async def first_offset(self, topic: str, partition: int, at_least: int) -> int:
        """Return the offset of the first record at or after `at_least`."""
        isolation = EVENT_ISOLATION if topic == self._connection.topics.events else COMMAND_ISOLATION
        return await first_offset(self._connection, topic, partition, at_least, isolation)

    async def close(self) -> None:
        """Close producer and tail."""
        await asyncio.gather(self._producer.close(), self._tail.close())
