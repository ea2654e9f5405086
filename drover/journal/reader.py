"""Read Drover's topics without a group: everything up to the present end, or on and on from given positions.

Reading only: nothing here produces, commits or judges. What a record counts for is `drover.fold.log`'s to say.
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
from drover.journal.closing import close_consumers
from drover.journal.connection import LogConnection
from drover.journal.consumer import new_consumer
from drover.journal.leaders import learn_leaders
from drover.journal.silent_brokers import go_round_silent_brokers, saying_who_is_silent
from drover.journal.stale_leader import RETRY_S, Suspicion

# What a client aborted was never asked for, so commands are read committed.
COMMAND_ISOLATION = "read_committed"
FETCH_BYTES = 8 * 1024 * 1024
# For an answer of that size, and for a server that hangs before the next one is tried. aiokafka would wait 40 s.
REQUEST_TIMEOUT_MS = 10_000
POLL_MS = 500
# Making records of what was fetched leaves the loop free for everything else in between.
RECORDS_PER_POLL = 1000
# A finite reading that gets nothing for so long will not get it later either.
STALL_S = 30.0


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record of a topic; `shard` is its partition, `payload` is empty for a tombstone.

    `key` is empty for a record that has none. A header without a value, which Kafka allows, is left out.
    """

    shard: int
    offset: int
    timestamp_ms: int
    payload: bytes
    headers: tuple[tuple[str, bytes], ...]
    key: bytes = b""

    def header(self, name: str) -> str | None:
        """Return a header as text, None if it is not there."""
        return next((value.decode(errors="replace") for key, value in self.headers if key == name), None)


class LogReader:
    """A connection that reads any of Drover's topics; an async context manager, one reading at a time.

    `isolation` is Kafka's: command topics are read committed, the log is judged by its own rules.
    Raises `LogUnavailableError` when the log's Kafka does not answer, `ConfigurationError` for a topic that is not
    there.
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
        """Count a topic's partitions; never creates it."""
        return count_partitions(await self._metadata(), topic, self._connection)

    async def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """Count the partitions of topics, 0 for one that is not there; never creates any."""
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
        """Return the first offset that is there, or the first one written at or after a moment, per shard.

        A shard in which nothing is that recent is left out.
        """
        partitions = [KafkaPartition(topic, shard) for shard in shards]
        if since_ms is None:
            first = await self._from_leaders(topic, shards, lambda: self._consumer.beginning_offsets(partitions))
            return {partition.partition: offset for partition, offset in first.items()}
        times = dict.fromkeys(partitions, since_ms)
        offsets = await self._from_leaders(topic, shards, lambda: self._consumer.offsets_for_times(times))
        return {partition.partition: at.offset for partition, at in offsets.items() if at is not None}

    async def _from_leaders(self, topic: str, shards: Collection[int], ask: Callable[[], Awaitable[Any]]) -> Any:
        """Ask the leaders of these partitions; wait for the election of another one where one is silent.

        Raises `LogUnavailableError` when they have not answered for `STALL_S` seconds.
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
        """Read these shards from these offsets up to the end as it is now; a shard's records come in its order.

        Raises `LogUnavailableError` when nothing comes for `STALL_S` seconds although something is there.
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
                raise unreachable(self._connection, TimeoutError(f"nothing of {topic} came for {STALL_S:g} s"))
            # Pause before the event loop runs again. Otherwise aiokafka sends another fetch, and since a broker answers
            # the requests of a connection in order, the next ListOffsets waits for it, up to `POLL_MS`.
            for shard in tuple(left):
                # Positions and not offsets: the last offset before the end may be no record but a marker.
                if await self._consumer.position(KafkaPartition(topic, shard)) >= ends[shard]:
                    left.remove(shard)
                    self._consumer.pause(KafkaPartition(topic, shard))
            for records in fetched:
                wanted = tuple(record for record in records if record.offset < ends[record.shard])
                if wanted:
                    yield wanted

    async def follow(self, topic: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        """Read these shards from these offsets for ever; waits for what is not written yet."""
        self._assign(topic, start)
        while True:
            for records in await self._poll():
                yield records

    def _assign(self, topic: str, start: Mapping[int, int]) -> None:
        self._consumer.assign([KafkaPartition(topic, shard) for shard in start])
        # At once, before the first fetch asks the broker for a position that nobody wants.
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
    """Say that a place in a topic is not there any more, or not there again yet."""
    places = ", ".join(f"offset {offset} of {where.topic}/{where.partition}" for where, offset in error.args[0].items())
    return LogUnavailableError(
        f"the log's Kafka at {connection.bootstrap} answers, but does not have {places}: records were deleted, or the "
        "topic was made anew"
    )


def count_partitions(metadata: Any, topic: str, connection: LogConnection) -> int:
    """Count a topic's partitions in aiokafka's metadata; `ConfigurationError` if it is not there."""
    partitions = metadata.partitions_for_topic(topic)
    if not partitions:
        # Kafka does not tell the two apart to somebody who may not see a topic.
        hidden = f", or {connection.user} may not see it (`drover acls`)" if connection.is_secured else ""
        raise ConfigurationError(
            f"the topic {topic} does not exist on {connection.bootstrap}: create Drover's topics with "
            f"`drover topics init`{hidden}"
        )
    return len(partitions)
