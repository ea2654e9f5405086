"""A producer and a consumer on the topics that are moved, for as long as the faults last.

The producer is what a careful user runs: idempotent, acknowledged by all in-sync replicas. The consumer follows by
itself, without a group, so that what it reads is what Kafka gives out, in that order.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as Place
from aiokafka.errors import OffsetOutOfRangeError

from drover.events.partitions import TopicPartition
from tests.faults.records import Ledger, content
from tests.integration.support import wait_for

# Longer than any fault: a record is given up on only if something is wrong for good.
PATIENCE_MS = 240_000
# As many producers have it: without, every record is a request of its own to three brokers.
LINGER_MS = 20
FILLING_BYTES = 64 * 1024
RECORD_BYTES = 200

Read = dict[TopicPartition, list[tuple[int, bytes]]]


@dataclass
class Traffic:
    """What is sent to some partitions and read from them; `ledgers` and `read` are for the oracles to judge."""

    bootstrap: str
    seed: int
    keys: tuple[TopicPartition, ...]
    ledgers: dict[TopicPartition, Ledger] = field(init=False)
    read: Read = field(init=False)
    errors: list[str] = field(default_factory=list)
    slowest_s: float = 0.0

    def __post_init__(self) -> None:
        self.ledgers = {key: Ledger() for key in self.keys}
        self.read = {key: [] for key in self.keys}

    @asynccontextmanager
    async def running(self, per_second: float, filling_kilobytes: int) -> AsyncIterator[None]:
        """Fill the partitions, then send and follow; at the end every record has its answer and was followed."""
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            enable_idempotence=True,
            acks="all",
            request_timeout_ms=PATIENCE_MS,
            linger_ms=LINGER_MS,
        )
        await producer.start()
        following = asyncio.create_task(self._follow())
        try:
            await self._fill(producer, filling_kilobytes)
            sending = [
                asyncio.create_task(self._send_to(producer, key, per_second / len(self.keys))) for key in self.keys
            ]
            try:
                yield
            finally:
                for task in sending:
                    task.cancel()
                await asyncio.gather(*sending, return_exceptions=True)
            await producer.flush()
            await wait_for(self._is_followed, "the consumer to read what was acknowledged")
        finally:
            await producer.stop()
            await end(following)

    # -- sending

    async def _fill(self, producer: AIOKafkaProducer, kilobytes: int) -> None:
        for key in self.keys:
            for _ in range(kilobytes * 1024 // FILLING_BYTES):
                await self._send(producer, key, FILLING_BYTES)
        await producer.flush()

    async def _send_to(self, producer: AIOKafkaProducer, key: TopicPartition, per_second: float) -> None:
        """Send to one partition at an even rate; one that takes nothing delays no other, and catches up later."""
        began, sent = time.monotonic(), 0
        while True:
            await asyncio.sleep(max(0.0, began + sent / per_second - time.monotonic()))
            await self._send(producer, key, RECORD_BYTES)
            sent += 1

    async def _send(self, producer: AIOKafkaProducer, key: TopicPartition, size: int) -> None:
        ledger = self.ledgers[key]
        number = len(ledger.acknowledged) + len(ledger.unknown)
        # Unknown until the answer comes: whatever happens in between is accounted for.
        ledger.unknown.add(number)
        answer = await producer.send(key.topic, content(self.seed, key, number, size), partition=key.partition)
        answer.add_done_callback(partial(self._answered, key, number, time.monotonic()))

    def _answered(self, key: TopicPartition, number: int, sent_s: float, answer: "asyncio.Future[Any]") -> None:
        error = None if answer.cancelled() else answer.exception()
        if answer.cancelled() or error is not None:
            self.errors.append(f"{key}: record {number} got no answer: {error!r}")
            return
        self.ledgers[key].unknown.discard(number)
        offset = answer.result().offset
        self.ledgers[key].acknowledged[number] = offset if offset >= 0 else None
        self.slowest_s = max(self.slowest_s, time.monotonic() - sent_s)

    # -- following

    async def _follow(self) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            auto_offset_reset="none",
            enable_auto_commit=False,
            metadata_max_age_ms=5000,
        )
        try:
            await consumer.start()
            places = [Place(*key) for key in self.keys]
            consumer.assign(places)
            for place in places:
                consumer.seek(place, 0)
            while True:
                # A broker that hung as leader says so for a moment; who waits for the records has a deadline.
                with contextlib.suppress(OffsetOutOfRangeError):
                    await _take(consumer, self.read)
        finally:
            await consumer.stop()

    async def _is_followed(self) -> bool:
        return all(len(self.read[key]) >= len(ledger.acknowledged) for key, ledger in self.ledgers.items())


async def end(task: asyncio.Task[None]) -> None:
    """Cancel a task until it ends: the client may swallow a cancellation while it reconnects. Its fault is raised."""
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=1)
    with contextlib.suppress(asyncio.CancelledError):
        task.result()


async def read_back(bootstrap: str, keys: tuple[TopicPartition, ...]) -> Read:
    """Read partitions from their first record to their present end, by a consumer that knows nothing of before."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="none", enable_auto_commit=False)
    try:
        await consumer.start()
        places = [Place(*key) for key in keys]
        consumer.assign(places)
        for place, first in (await consumer.beginning_offsets(places)).items():
            consumer.seek(place, first)
        ends = await consumer.end_offsets(places)
        read: Read = {key: [] for key in keys}
        while any([await consumer.position(place) < ends[place] for place in places]):
            await _take(consumer, read)
        return read
    finally:
        await consumer.stop()


async def _take(consumer: AIOKafkaConsumer, read: Read) -> None:
    for place, records in (await consumer.getmany(timeout_ms=300)).items():
        read[TopicPartition(place.topic, place.partition)] += [(record.offset, record.value) for record in records]
