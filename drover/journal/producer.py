"""The idempotent producer of a worker: one acknowledgement per record, and an error if the outcome is unknown (R7)."""

import asyncio
import time

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, OutOfOrderSequenceNumber

from drover.errors import AppendUnknownError
from drover.journal.access import AUTHORIZATION_ERRORS, could_not_connect, unreachable
from drover.journal.client_shutdown import stop_producer
from drover.journal.connection import LogConnection
from drover.journal.port import Headers, RecordTooLargeError
from drover.reasons import reason_of
from drover.time_limits import time_limit

# The failover of a dead leader takes its broker session (9 s by default), and that of a hanging one a request timeout
# more. With ten seconds, every such failover would end all workers at once.
APPEND_TIMEOUT_S = 30.0
REQUEST_TIMEOUT_MS = 5_000
# aiokafka requests a producer id for ever; brokers without a controller run out of ids.
START_TIMEOUT_S = 30.0
MAX_REQUEST_BYTES = 8 * 1024 * 1024
# Kafka's code for timestamps that the broker sets.
LOG_APPEND_TIME = 1
_log = structlog.get_logger(__name__)


class LogProducer:
    """Idempotent, acks=all, no linger. One batch per partition is in flight, so order is kept."""

    def __init__(self, connection: LogConnection, client_id: str) -> None:
        self._connection = connection
        self._client_id = client_id
        # The broker's timestamp in its last acknowledgement, and when (monotonic) that arrived.
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
        """Connect. Raises `LogUnavailableError` if no broker answers and gives the producer an id."""
        try:
            async with time_limit(START_TIMEOUT_S):
                await self._producer.start()
        except (KafkaError, TimeoutError) as error:
            await stop_producer(self._producer)
            raise await could_not_connect(self._connection, error) from error

    async def send(
        self, topic: str, value: bytes, *, partition: int | None = None, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        """Produce a record and return its offset once min ISR replicas have acknowledged it.

        Raises `RecordTooLargeError` if the client or a broker refuses the size, and `LogAccessError` if an ACL is
        missing; the record was not written then. Raises `AppendUnknownError` after a timeout, any other error, or an
        acknowledgement without an offset (Kafka had seen the sequence number before).
        """
        where = topic if partition is None else f"{topic}/{partition}"
        try:
            async with time_limit(APPEND_TIMEOUT_S):
                answer = await self._producer.send_and_wait(
                    topic, value, key=key, partition=partition, headers=list(headers)
                )
        except MessageSizeTooLargeError as error:
            raise RecordTooLargeError(f"{where}: {len(value)} bytes are too many for one record") from error
        except AUTHORIZATION_ERRORS as error:
            raise unreachable(self._connection, error) from error
        except (KafkaError, TimeoutError) as error:
            if isinstance(error, OutOfOrderSequenceNumber):
                self._begin_anew()
            raise AppendUnknownError(
                f"{where}: it is unknown whether the record was written ({reason_of(error)})"
            ) from error
        offset = int(answer.offset)
        if offset < 0:
            raise AppendUnknownError(f"{where}: the broker acknowledged a record without its offset")
        if answer.timestamp_type == LOG_APPEND_TIME:
            self._told = (int(answer.timestamp), time.monotonic())
        return offset

    def broker_time_ms(self) -> int | None:
        """Return the time of the brokers: the timestamp of the last acknowledgement plus its age."""
        if self._told is None:
            return None
        told_ms, when = self._told
        return told_ms + int((time.monotonic() - when) * 1000)

    async def close(self) -> None:
        """Send the remaining records for a few seconds at most, and close; idempotent."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait((self._renewing,))
        await stop_producer(self._producer)

    def _begin_anew(self) -> None:
        """Replace the producer by another one with its own sequence numbers.

        After a broker refuses a record, for a missing ACL or a wrong clock, aiokafka goes on with the next sequence
        number. The broker then refuses every record for that partition until it has forgotten the producer.
        """
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        spare = self._new_producer()
        try:
            async with time_limit(START_TIMEOUT_S):
                await spare.start()
            # Records under way stay with the old producer for as long as a caller waits for them.
            spare, self._producer = self._producer, spare
        except (KafkaError, OSError) as error:
            _log.warning("a new producer could not be started; the next refusal tries again", error=repr(error))
        finally:
            await stop_producer(spare, APPEND_TIMEOUT_S)
