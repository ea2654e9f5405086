"""Read the log without a consumer group: the tail of all shards, offset bounds, and single direct reads."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from drover.errors import CorruptLogError, LogUnavailableError
from drover.journal.access import AUTHORIZATION_ERRORS, could_not_connect, unreachable
from drover.journal.client_shutdown import close_consumers
from drover.journal.connection import LogConnection
from drover.journal.consumer import new_consumer
from drover.journal.leaders import learn_leaders
from drover.journal.port import TailRecord
from drover.journal.stale_leader import RETRY_S, Suspicion
from drover.time_limits import time_limit

POLL_MS = 500
FETCH_WAIT_MS = 500
# Folding 500 records takes a few milliseconds, so that a cold replay does not block the event loop for long.
RECORDS_PER_POLL = 500
DIRECT_READ_TIMEOUT_S = 20.0


def _consumer(connection: LogConnection, client_id: str, isolation_level: str = "read_uncommitted") -> AIOKafkaConsumer:
    return new_consumer(
        client_id=client_id,
        enable_auto_commit=False,
        # A position that the log does not have must be an error, not a silent reset.
        auto_offset_reset="none",
        isolation_level=isolation_level,
        fetch_max_wait_ms=FETCH_WAIT_MS,
        request_timeout_ms=10_000,
        metadata_max_age_ms=30_000,
        max_partition_fetch_bytes=4 * 1024 * 1024,
        **connection.client_options,
    )


class LogTail:
    """All partitions of the event log, by default from their first record on.

    ListOffsets uses separate connections: a broker answers the requests of a connection in order, and a fetch of the
    tail waits up to `FETCH_WAIT_MS` for new records.
    """

    def __init__(self, connection: LogConnection, shards: int, client_id: str) -> None:
        self._connection = connection
        self._partitions = [TopicPartition(connection.topics.events, shard) for shard in range(shards)]
        self._consumer = _consumer(connection, client_id)
        self._offsets_consumer = _consumer(connection, f"{client_id}-offsets")
        self._suspicions: defaultdict[TopicPartition, Suspicion] = defaultdict(Suspicion)

    async def start(self) -> None:
        """Connect, and begin before the first record. Raises `LogUnavailableError` if no broker answers."""
        try:
            self._consumer.assign(self._partitions)
            await self._consumer.start()
            await self._offsets_consumer.start()
        except KafkaError as error:
            await self.close()
            raise await could_not_connect(self._connection, error) from error
        self.seek([0] * len(self._partitions))

    def seek(self, positions: Sequence[int]) -> None:
        """Move to these offsets, one per shard."""
        for partition, position in zip(self._partitions, positions, strict=True):
            self._consumer.seek(partition, position)

    async def next_records(self) -> Sequence[TailRecord]:
        """Return the next records, in offset order per shard; wait for up to half a second if there are none.

        Raises `CorruptLogError` if an offset is out of range for longer than a stale leader can be the reason.
        """
        try:
            fetched = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=RECORDS_PER_POLL)
        except OffsetOutOfRangeError as error:
            (partition,) = error.args[0]
            if self._suspicions[partition].is_over(time.monotonic()):
                raise CorruptLogError(f"the event log does not have {error}: it must never lose any record") from error
            await asyncio.sleep(RETRY_S)
            return ()
        except AUTHORIZATION_ERRORS as error:
            raise unreachable(self._connection, error) from error
        return [
            TailRecord(partition.partition, record.offset, record.value or b"")
            for partition, records in fetched.items()
            for record in records
        ]

    async def has_reached(self, ends: Sequence[int]) -> bool:
        """Whether every record before these offsets was delivered; the position also passes transaction markers."""
        positions = [await self._consumer.position(partition) for partition in self._partitions]
        return all(position >= end for position, end in zip(positions, ends, strict=True))

    async def bounds(self, topic: str, at_least: Sequence[int] | None = None) -> tuple[tuple[int, int], ...]:
        """Return the first and end offset of each of the topic's partitions, one per shard.

        Ends below `at_least`, one per shard, are read again for as long as they may come from a stale leader.
        """
        suspicion = Suspicion()
        while True:
            bounds = await self._bounds([TopicPartition(topic, partition.partition) for partition in self._partitions])
            is_possible = all(end >= least for (_, end), least in zip(bounds, at_least or (), strict=False))
            if is_possible or suspicion.is_over(time.monotonic()):
                return bounds
            await asyncio.sleep(RETRY_S)

    async def _bounds(self, partitions: Sequence[TopicPartition]) -> tuple[tuple[int, int], ...]:
        try:
            await learn_leaders(self._offsets_consumer, partitions[0].topic)
            first, end = await asyncio.gather(
                self._offsets_consumer.beginning_offsets(partitions), self._offsets_consumer.end_offsets(partitions)
            )
        except AUTHORIZATION_ERRORS as error:
            raise unreachable(self._connection, error) from error
        except KafkaError as error:
            topic = partitions[0].topic
            raise LogUnavailableError(f"the offsets of {topic} could not be read: {error!r}") from error
        return tuple((first[partition], end[partition]) for partition in partitions)

    async def close(self) -> None:
        """Close the connections; idempotent."""
        await close_consumers(self._consumer, self._offsets_consumer)


async def first_offset(connection: LogConnection, topic: str, partition: int, at_least: int, isolation: str) -> int:
    """Return the offset of the first record at or after `at_least`, with a consumer of its own."""
    where = TopicPartition(topic, partition)
    consumer = _consumer(connection, "drover-direct-read", isolation)
    consumer.assign([where])
    try:
        async with time_limit(DIRECT_READ_TIMEOUT_S):
            await consumer.start()
            consumer.seek(where, at_least)
            record = await _get_one(consumer, where)
    except OffsetOutOfRangeError as error:
        raise CorruptLogError(f"{topic}/{partition} no longer has offset {at_least}: records were deleted") from error
    except (KafkaError, TimeoutError) as error:
        raise LogUnavailableError(f"{topic}/{partition}: offset {at_least} could not be read: {error!r}") from error
    finally:
        await close_consumers(consumer)
    return int(record.offset)


async def _get_one(consumer: AIOKafkaConsumer, where: TopicPartition) -> ConsumerRecord:
    suspicion = Suspicion()
    while True:
        try:
            return await consumer.getone(where)
        except OffsetOutOfRangeError:
            if suspicion.is_over(time.monotonic()):
                raise
            await asyncio.sleep(RETRY_S)
