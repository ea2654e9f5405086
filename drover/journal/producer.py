"""The idempotent producer of a worker: one record, one acknowledgement, and no guessing about the outcome (R7)."""

import asyncio
import time

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from drover.errors import AppendUnknownError
from drover.journal.access import could_not_connect
from drover.journal.closing import stop_client
from drover.journal.connection import LogConnection
from drover.journal.port import Headers, RecordTooLargeError

# A leader that dies costs its broker session (9 s by default), a hung broker one request timeout on top: ten seconds
# would end every worker at once, although nothing is lost.
APPEND_TIMEOUT_S = 30.0
REQUEST_TIMEOUT_MS = 5_000
MAX_REQUEST_BYTES = 8 * 1024 * 1024
# What Kafka calls the kind of a timestamp that the broker made.
LOG_APPEND_TIME = 1


class LogProducer:
    """Idempotent, acks=all, no linger. One batch per partition is in flight, so order is kept."""

    def __init__(self, connection: LogConnection, client_id: str) -> None:
        self._connection = connection
        # The broker's time of the last record that it stamped, and when (monotonic) it told it.
        self._told: tuple[int, float] | None = None
        self._producer = AIOKafkaProducer(
            client_id=client_id,
            enable_idempotence=True,
            acks="all",
            linger_ms=0,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            metadata_max_age_ms=30_000,
            max_request_size=MAX_REQUEST_BYTES,
            **connection.client_options,
        )

    async def start(self) -> None:
        """Connect; raises `LogUnavailableError` when no broker answers."""
        try:
            await self._producer.start()
        except KafkaError as error:
            await self._producer.stop()
            raise await could_not_connect(self._connection, error) from error

    async def send(
        self, topic: str, value: bytes, *, partition: int | None = None, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        """Produce one record and return its offset once it is acknowledged by min ISR replicas.

        Raises `RecordTooLargeError` when the client refused the size, so nothing was sent; `AppendUnknownError` for a
        timeout, any other error, and an answer without an offset (Kafka said that it had seen the sequence before).
        """
        where = topic if partition is None else f"{topic}/{partition}"
        try:
            async with asyncio.timeout(APPEND_TIMEOUT_S):
                answer = await self._producer.send_and_wait(
                    topic, value, key=key, partition=partition, headers=list(headers)
                )
        except MessageSizeTooLargeError as error:
            raise RecordTooLargeError(f"{where}: {len(value)} bytes are more than one record may have") from error
        except (KafkaError, TimeoutError) as error:
            raise AppendUnknownError(f"{where}: not known whether the record was written: {error!r}") from error
        offset = int(answer.offset)
        if offset < 0:
            raise AppendUnknownError(f"{where}: the broker acknowledged a record without telling its offset")
        if answer.timestamp_type == LOG_APPEND_TIME:
            self._told = (int(answer.timestamp), time.monotonic())
        return offset

    def broker_time_ms(self) -> int | None:
        """Return the time of the brokers: what the last acknowledgement told, and how long ago that was."""
        if self._told is None:
            return None
        told_ms, when = self._told
        return told_ms + int((time.monotonic() - when) * 1000)

    async def close(self) -> None:
        """Send what is left and let go; idempotent."""
        await stop_client(self._producer.client, self._producer.stop())
