"""Read Drover's topics without a consumer group: up to the current end, or for ever from given positions.

This module does not produce, commit or judge records; `drover.fold.log` judges them.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import KafkaError, KafkaTimeoutError, OffsetOutOfRangeError

from drover.errors import ConfigurationError, LogUnavailableError
from drover.journal.access import could_not_connect, unreachable
from drover.journal.client_shutdown import close_consumers
from drover.journal.connection import LogConnection
from drover.journal.consumer import new_consumer
from drover.journal.leaders import learn_leaders
from drover.journal.silent_brokers import go_round_silent_brokers, saying_who_is_silent
from drover.journal.stale_leader import RETRY_S, Suspicion

# Commands of aborted transactions do not count, so commands are read committed.
COMMAND_ISOLATION = "read_committed"
FETCH_BYTES = 8 * 1024 * 1024
# Enough for a large answer, and short enough to try the next server if one hangs; aiokafka's default is 40 s.
REQUEST_TIMEOUT_MS = 10_000
POLL_MS = 500
# The most records per poll, so that decoding them does not block the event loop for long.
RECORDS_PER_POLL = 1000
# A finite read that gets no record for this long has failed.
STALL_S = 30.0


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record of a topic; `shard` is its partition, `payload` is empty for a tombstone.

    `key` is empty for a record without a key. Headers without a value, which Kafka allows, are left out.
    """

    shard: int
    offset: int
    timestamp_ms: int
    payload: bytes
    headers: tuple[tuple[str, bytes], ...]
    key: bytes = b""

    def header(self, name: str) -> str | None:
        """Return a header as text, or None if it is missing."""
        return next((value.decode(errors="replace") for key, value in self.headers if key == name), None)


class LogReader:
    """A connection that reads any of Drover's topics; an async context manager, one read at a time.

    `isolation` is Kafka's: command topics are read committed; the log has its own rules. Raises `LogUnavailableError`
    if the log's Kafka does not answer, and `ConfigurationError` for a topic that does not exist.
    """

    def __init__(self, connection: LogConnection, isolation: str = "read_uncommitted") -> None:
        self._connection = connection
        self._isolation = isolation
        self._consumer: Any = None
        self._suspicion = Suspicion()

    async def __aenter__(self) -> Self:
        """Connect."""
        self._consumer = new_consumer(
            **self._connection.client_options,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            fetch_max_bytes=FETCH_BYTES,
            max_partition_fetch_bytes=FETCH_BYTES,
            fetch_max_wait_ms=POLL_MS,
            isolation_level=self._isolation,
            max_poll_records=RECORDS_PER_POLL,
        )
        go_round_silent_brokers(self._consumer._client, REQUEST_TIMEOUT_MS)  # noqa: SLF001 - no public way to its client
        try:
            await self._consumer.start()
        except (KafkaError, OSError) as error:
            await close_consumers(self._consumer)
            raise await could_not_connect(self._connection, error) from error
        except asyncio.CancelledError:
            await close_consumers(self._consumer)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        await close_consumers(self._consumer)

    async def partitions(self, topic: str) -> int:
        """Return a topic's number of partitions without creating the topic."""
        return count_partitions(await self._metadata(), topic, self._connection)

    async def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """Return the numbers of partitions of topics, 0 for a missing one, without creating any."""
        metadata = await self._metadata()
        return {topic: len(metadata.partitions_for_topic(topic) or ()) for topic in topics}

    async def _metadata(self) -> Any:
        try:
            return await self._consumer._client.fetch_all_metadata()  # noqa: SLF001 - its public twin may create
        except (KafkaError, OSError) as error:
            raise unreachable(self._connection, error) from error

    async def end_offsets(self, topic: str, shards: Collection[int]) -> dict[int, int]:
        """Return the next offset to be written, per shard."""
        if not shards:
            return {}
        partitions = [KafkaPartition(topic, shard) for shard in shards]
        ends = await self._from_leaders(topic, shards, lambda: self._consumer.end_offsets(partitions))
        return {partition.partition: offset for partition, offset in ends.items()}

    async def start_offsets(self, topic: str, shards: Collection[int], since_ms: int | None = None) -> dict[int, int]:
        """Return, per shard, the first available offset, or the first one written at or after a time.

        Shards without a record since that time are left out.
        """
        partitions = [KafkaPartition(topic, shard) for shard in shards]
        if since_ms is None:
            first = await self._from_leaders(topic, shards, lambda: self._consumer.beginning_offsets(partitions))
            return {partition.partition: offset for partition, offset in first.items()}
        times = dict.fromkeys(partitions, since_ms)
        offsets = await self._from_leaders(topic, shards, lambda: self._consumer.offsets_for_times(times))
        return {partition.partition: at.offset for partition, at in offsets.items() if at is not None}

    async def _from_leaders(self, topic: str, shards: Collection[int], ask: Callable[[], Awaitable[Any]]) -> Any:
        """Ask the leaders of these partitions; if one is silent, wait for the election of another.

        Raises `LogUnavailableError` if they do not answer for `STALL_S` seconds.
        """
        give_up_s = time.monotonic() + STALL_S
        async with saying_who_is_silent(self._consumer._client, topic, shards):  # noqa: SLF001 - see `__aenter__`
            while True:
                try:
                    await learn_leaders(self._consumer, topic)
                    return await ask()
                except KafkaTimeoutError as error:
                    if time.monotonic() > give_up_s:
                        raise unreachable(self._connection, error) from error
                except (KafkaError, OSError) as error:
                    raise unreachable(self._connection, error) from error

    async def read(self, topic: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        """Read these shards from these offsets up to their current ends; each shard's records come in order.

        Raises `LogUnavailableError` if no record arrives for `STALL_S` seconds although the end is not reached.
        """
        if not start:
            return
        ends = await self.end_offsets(topic, start.keys())
        left = {shard for shard in start if start[shard] < ends[shard]}
        self._assign(topic, {shard: start[shard] for shard in left})
        answered_s = time.monotonic()
        while left:
            fetched = await self._poll()
            if fetched:
                answered_s = time.monotonic()
            elif time.monotonic() - answered_s > STALL_S:
                raise unreachable(self._connection, TimeoutError(f"no record of {topic} for {STALL_S:g} s"))
            # Pause before the event loop runs again. Otherwise aiokafka sends another fetch, and the next ListOffsets
            # waits behind it for up to `POLL_MS`, because a broker answers the requests of a connection in order.
            for shard in tuple(left):
                # Compare positions, because the last offset before the end may be a transaction marker.
                if await self._consumer.position(KafkaPartition(topic, shard)) >= ends[shard]:
                    left.remove(shard)
                    self._consumer.pause(KafkaPartition(topic, shard))
            for records in fetched:
                wanted = tuple(record for record in records if record.offset < ends[record.shard])
                if wanted:
                    yield wanted

    async def follow(self, topic: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        """Read these shards from these offsets for ever, waiting for new records."""
        self._assign(topic, start)
        while True:
            for records in await self._poll():
                yield records

    def _assign(self, topic: str, start: Mapping[int, int]) -> None:
        self._consumer.assign([KafkaPartition(topic, shard) for shard in start])
        # Seek at once, before the first fetch reads from another position.
        for shard, offset in start.items():
            self._consumer.seek(KafkaPartition(topic, shard), offset)

    async def _poll(self) -> list[tuple[LogRecord, ...]]:
        try:
            fetched = await self._consumer.getmany(timeout_ms=POLL_MS)
        except OffsetOutOfRangeError as error:
            if self._suspicion.is_over(time.monotonic()):
                raise _gone(self._connection, error) from error
            await asyncio.sleep(RETRY_S)
            return []
        except KafkaError as error:
            raise unreachable(self._connection, error) from error
        return [
            tuple(
                LogRecord(
                    shard.partition,
                    record.offset,
                    record.timestamp,
                    record.value or b"",
                    tuple((name, value) for name, value in record.headers if value is not None),
                    record.key or b"",
                )
                for record in records
            )
            for shard, records in fetched.items()
        ]


def _gone(connection: LogConnection, error: OffsetOutOfRangeError) -> LogUnavailableError:
    """Return the error for an offset that the topic no longer has, or does not have again yet."""
    places = ", ".join(f"offset {offset} of {where.topic}/{where.partition}" for where, offset in error.args[0].items())
    return LogUnavailableError(
        f"the log's Kafka at {connection.bootstrap} answers, but does not have {places}: records were deleted, or the "
        "topic was created anew"
    )


def count_partitions(metadata: Any, topic: str, connection: LogConnection) -> int:
    """Return a topic's number of partitions in aiokafka's metadata. Raises `ConfigurationError` if it is missing."""
    partitions = metadata.partitions_for_topic(topic)
    if not partitions:
        # Kafka answers the same for a missing topic and for one that the user may not see.
        hidden = f", or {connection.user} may not see it (`drover acls`)" if connection.is_secured else ""
        raise ConfigurationError(
            f"the topic {topic} does not exist on {connection.bootstrap}: create Drover's topics with "
            f"`drover log init`{hidden}"
        )
    return len(partitions)
