"""Close clients of the log's Kafka, even if brokers are down or hang."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

# The interval of checks: a connection that is closing at two checks in a row is aborted.
CLOSE_S = 1.0
# How long a producer may send its remaining records when it is closed.
SEND_REST_S = 5.0


async def close_consumers(*consumers: AIOKafkaConsumer) -> None:
    """Close the connections of these consumers, even if the caller is cancelled meanwhile; idempotent.

    If brokers are down or a fetch has failed, aiokafka's `stop` raises `CancelledError` or the old error, and leaves
    its connections open. This function closes them anyway and drops both exceptions, because they say nothing about the
    records that were read and would hide the error that matters.
    """
    closing = asyncio.create_task(_close(consumers))
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        # Always finish: `stop` does nothing when it is called a second time.
        await asyncio.wait((closing,))
        raise


async def _close(consumers: Sequence[AIOKafkaConsumer]) -> None:
    clients = [consumer._client for consumer in consumers]  # noqa: SLF001 - aiokafka shows a consumer's client nowhere else
    stops = (stop_client(client, consumer.stop()) for client, consumer in zip(clients, consumers, strict=True))
    ends = await asyncio.gather(*stops, return_exceptions=True)
    for client, end in zip(clients, ends, strict=True):
        if isinstance(end, BaseException):
            # `stop` has left its connections open, and a second call would do nothing.
            await stop_client(client, client.close())
    for end in ends:
        if isinstance(end, Exception) and not isinstance(end, KafkaError):
            raise end


async def stop_producer(producer: AIOKafkaProducer, patience_s: float | None = None) -> None:
    """Let a producer send its remaining records for `SEND_REST_S` or `patience_s`, and close its connections.

    Without a limit aiokafka would wait for ever: an idempotent producer retries for ever while brokers refuse records
    for now, as they do below min.insync.replicas.
    """
    stopping = asyncio.ensure_future(stop_client(producer.client, producer.stop()))
    done, _ = await asyncio.wait((stopping,), timeout=SEND_REST_S if patience_s is None else patience_s)
    if not done:
        # Close the sender first, because a request under way puts back the records that it could not write. aiokafka's
        # own `fail_all` fails for such records, and leaves exceptions that are never retrieved.
        await producer._sender.close()  # noqa: SLF001 - nothing public stops the sender while something is left
        rest = producer._message_accumulator  # noqa: SLF001 - nothing public drops what was not sent
        for batches in rest._batches.values():  # noqa: SLF001 - batches that wait to be sent are listed only here
            rest._pending_batches.update(batches)  # noqa: SLF001 - a batch that ends is removed from this set, or fails
            for batch in batches:
                batch.future.cancel()
    await stopping


async def stop_client(client: Any, stop: Coroutine[Any, Any, None]) -> None:
    """Run `stop`, which ends an aiokafka client, and abort connections that are still closing after 1 to 2 s.

    Over TLS the broker must confirm the end of a connection. asyncio waits 30 s for a hanging broker, and aiokafka has
    no setting for it. Raises the exceptions of `stop`; if the caller is cancelled, `stop` goes on in the background.
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
