"""Closing consumers, whatever state the log's Kafka is in."""

import asyncio

from aiokafka import AIOKafkaConsumer


async def close_consumers(*consumers: AIOKafkaConsumer) -> None:
    """Let go of the connections of these consumers; idempotent.

    While brokers are away aiokafka cancels requests of its own, passes that on as if whoever closes were cancelled, and
    leaves its connections open.
    """
    ends = await asyncio.gather(*(consumer.stop() for consumer in consumers), return_exceptions=True)
    for consumer, end in zip(consumers, ends, strict=True):
        if isinstance(end, asyncio.CancelledError):
            await consumer._client.close()  # noqa: SLF001 - `stop` has left them open, and aiokafka has no public way to close them
    for end in ends:
        if isinstance(end, Exception):
            raise end
