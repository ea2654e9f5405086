"""Closing consumers, whatever state the log's Kafka is in."""

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError


async def close_consumers(*consumers: AIOKafkaConsumer) -> None:
    """Let go of the connections of these consumers, also when cancelled meanwhile; idempotent.

    While brokers are away aiokafka cancels requests of its own, passes that on as if whoever closes were cancelled, and
    leaves its connections open. Where its fetching had failed, it raises that, and leaves them open as well. Whoever
    closes is told neither: it says nothing about what was read, and would take the place of the error that does.
    """
    closing = asyncio.create_task(_close(consumers))
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        # Half closed, a consumer cannot be closed any more: `stop` does nothing the second time.
        await asyncio.wait((closing,))
        raise


async def _close(consumers: Sequence[AIOKafkaConsumer]) -> None:
    ends = await asyncio.gather(*(consumer.stop() for consumer in consumers), return_exceptions=True)
    for consumer, end in zip(consumers, ends, strict=True):
        if isinstance(end, BaseException):
            await consumer._client.close()  # noqa: SLF001 - `stop` has left them open, and aiokafka has no public way to close them
    for end in ends:
        if isinstance(end, Exception) and not isinstance(end, KafkaError):
            raise end
