"""The idempotent producer of a worker: one record, one acknowledgement, and no guessing about the outcome (R7)."""

import asyncio
import time

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, OutOfOrderSequenceNumber

from drover.errors import AppendUnknownError
from drover.journal.access import AUTHORIZATION_ERRORS, could_not_connect, unreachable
from drover.journal.closing import stop_producer
from drover.journal.connection import LogConnection
from drover.journal.port import Headers, RecordTooLargeError
from drover.time_limits import time_limit

# A leader that dies costs its broker session (9 s by default), a hung broker one request timeout on top: ten seconds
# would end every worker at once, although nothing is lost.
APPEND_TIMEOUT_S = 30.0
REQUEST_TIMEOUT_MS = 5_000
# aiokafka asks for ever for the id of a producer; brokers that have no controller run out of them.
START_TIMEOUT_S = 30.0
MAX_REQUEST_BYTES = 8 * 1024 * 1024
# What Kafka calls the kind of a timestamp that the broker made.
LOG_APPEND_TIME = 1
_log = structlog.get_logger(__name__)


class LogProducer:
    """Idempotent, acks=all, no linger. One batch per partition is in flight, so order is kept."""

    def __init__(self, connection: LogConnection, client_id: str) -> None:
        self._connection = connection
        self._client_id = client_id
        # The broker's time of the last record that it stamped, and when (monotonic) it told it.
        self._told: tuple[int, float] | None = None
        self._producer = self._new_producer()
        self._renewing: asyncio.Task[None] | None = None

    def _new_producer(self) -> AIOKafkaProducer:
        return AIOKafkaProducer(
            client_id=self._client_id,
            enable_idempotence=True,
            acks="all",
            linger_ms=0,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            metadata_max_age_ms=30_000,
            max_request_size=MAX_REQUEST_BYTES,
            **self._connection.client_options,
        )

    async def start(self) -> None:
        """Connect; raises `LogUnavailableError` when no broker answers, or gives the producer an id."""
        try:
            async with time_limit(START_TIMEOUT_S):
                await self._producer.start()
        except (KafkaError, TimeoutError) as error:
            await stop_producer(self._producer)
            raise await could_not_connect(self._connection, error) from error

    async def send(
        self, topic: str, value: bytes, *, partition: int | None = None, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        """Produce one record and return its offset once it is acknowledged by min ISR replicas.

        Raises `RecordTooLargeError` when the client or a broker refused the size, and `LogAccessError` when an ACL is
        missing: nothing was written. Raises `AppendUnknownError` for a timeout, any other error, and an answer without
        an offset (Kafka said that it had seen the sequence before).
        """
        where = topic if partition is None else f"{topic}/{partition}"
        try:
            async with time_limit(APPEND_TIMEOUT_S):
                answer = await self._producer.send_and_wait(
                    topic, value, key=key, partition=partition, headers=list(headers)
                )
        except MessageSizeTooLargeError as error:
            raise RecordTooLargeError(f"{where}: {len(value)} bytes are more than one record may have") from error
        except AUTHORIZATION_ERRORS as error:
            raise unreachable(self._connection, error) from error
        except (KafkaError, TimeoutError) as error:
            if isinstance(error, OutOfOrderSequenceNumber):
                self._begin_anew()
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
        """Send what is left, for some seconds at most, and let go; idempotent."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait((self._renewing,))
        await stop_producer(self._producer)

    def _begin_anew(self) -> None:
        """Let another producer take over, with sequence numbers of its own.

        aiokafka counts a record that a broker refuses, for a missing ACL or a clock that is far ahead, and goes on with
        the next number. The broker then refuses everything for that partition until it has forgotten the producer.
        """
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        spare = self._new_producer()
        try:
            async with time_limit(START_TIMEOUT_S):
                await spare.start()
            # What is on its way keeps its producer, for as long as anybody waits for it.
            spare, self._producer = self._producer, spare
        except (KafkaError, OSError) as error:
            _log.warning("another producer could not be started; the next refusal tries again", error=repr(error))
        finally:
            await stop_producer(spare, APPEND_TIMEOUT_S)
