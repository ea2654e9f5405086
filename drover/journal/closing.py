"""Closing clients of the log's Kafka, whatever state it is in."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

# How often connections are looked at: one that is closing at two looks in a row is aborted.
CLOSE_S = 1.0
# How long a producer that is closed may send what is left.
SEND_REST_S = 5.0


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
    clients = [consumer._client for consumer in consumers]  # noqa: SLF001 - aiokafka shows a consumer's client nowhere else
    stops = (stop_client(client, consumer.stop()) for client, consumer in zip(clients, consumers, strict=True))
    ends = await asyncio.gather(*stops, return_exceptions=True)
    for client, end in zip(clients, ends, strict=True):
        if isinstance(end, BaseException):
            # `stop` has left its connections open, and does nothing the second time.
            await stop_client(client, client.close())
    for end in ends:
        if isinstance(end, Exception) and not isinstance(end, KafkaError):
            raise end


async def stop_producer(producer: AIOKafkaProducer, patience_s: float | None = None) -> None:
    """Let a producer send what is left, for `SEND_REST_S` or as long as told, and let go of its connections.

    An idempotent one tries again for ever what brokers refuse for now, as they do below min.insync.replicas, and
    aiokafka waits for that as long.
    """
    stopping = asyncio.ensure_future(stop_client(producer.client, producer.stop()))
    done, _ = await asyncio.wait((stopping,), timeout=SEND_REST_S if patience_s is None else patience_s)
    if not done:
        # In this order: a request under way puts back what it could not write. aiokafka's own `fail_all` leaves
        # exceptions that nobody retrieves, and fails for what was put back.
        await producer._sender.close()  # noqa: SLF001 - nothing public stops the sender while something is left
        rest = producer._message_accumulator  # noqa: SLF001 - nothing public drops what was not sent
        for batches in rest._batches.values():  # noqa: SLF001 - batches that wait to be sent are listed only here
            rest._pending_batches.update(batches)  # noqa: SLF001 - a batch that ends is removed from this set, or fails
            for batch in batches:
                batch.future.cancel()
    await stopping


async def stop_client(client: Any, stop: Coroutine[Any, Any, None]) -> None:
    """Run `stop`, which ends an aiokafka client, and abort connections that are still closing after 1 to 2 s.

    Over TLS the broker has to confirm the end of a connection. asyncio waits 30 s for one that hangs, and aiokafka has
    no setting for it. Raises what `stop` raises; where the caller is cancelled, `stop` goes on by itself.
    """
    stopping = asyncio.ensure_future(stop)
    transports: set[asyncio.WriteTransport] = set()
    late: set[asyncio.WriteTransport] = set()
    while True:
        writers = (connection._writer for connection in client._conns.values())  # noqa: SLF001 - aiokafka has no public way to abort one
        transports |= {writer.transport for writer in writers if writer is not None}
        done, _ = await asyncio.wait((stopping,), timeout=CLOSE_S)
        if done:
            return stopping.result()
        closing = {transport for transport in transports if transport.is_closing()}
        for transport in closing & late:
            transport.abort()
        late = closing
