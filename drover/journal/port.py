"""The interface to the Kafka that holds the log; `kafka.py` and `memory.py` implement it."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from drover.errors import DroverError
from drover.journal.reader import LogRecord

Headers = tuple[tuple[str, bytes], ...]


class RecordTooLargeError(DroverError):
    """A record is too large for the producer or the broker, and was not written."""


@dataclass(frozen=True, slots=True)
class TailRecord:
    """A record of the event log, as the tail delivers it."""

    shard: int
    offset: int
    payload: bytes


class Reading(Protocol):
    """Finite reads of any of Drover's topics, one at a time; see `LogReader`."""

    async def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """Return the numbers of partitions of topics, 0 for a topic that does not exist."""
        ...

    async def end_offsets(self, topic: str, shards: Collection[int]) -> dict[int, int]:
        """Return the next offset to be written, per shard."""
        ...

    def read(self, topic: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        """Read these shards from these offsets up to their current ends."""
        ...


class Following(Reading, Protocol):
    """A connection that also follows topics; see `LogReader`."""

    async def partitions(self, topic: str) -> int:
        """Return a topic's number of partitions. Raises `ConfigurationError` if it does not exist."""
        ...

    def follow(self, topic: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        """Read these shards from these offsets for ever, waiting for new records."""
        ...


class Sending(Protocol):
    """A producer with a connection of its own, so that large records do not delay decisions."""

    async def send(
        self, topic: str, value: bytes, *, partition: int | None = None, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        """Produce a record and return its offset; raises as `Journal.append`, but no error is fatal here."""
        ...


class Journal(Protocol):
    """The event log and the topics beside it.

    Records of a shard are delivered once each, in offset order, from the position that `seek` has set. The journal does
    not judge them; `drover.journal.folded_log` does. Every method raises `LogUnavailableError` if Kafka does not answer
    in time.
    """

    shards: int

    async def start(self) -> None:
        """Connect; the tail begins before the first record of every shard."""
        ...

    def seek(self, positions: Sequence[int]) -> None:
        """Move the tail to these offsets, one per shard."""
        ...

    def reader(self, *, is_committed: bool = False) -> AbstractAsyncContextManager[Reading]:
        """Return a connection for finite reads; `is_committed` leaves out records of aborted transactions."""
        ...

    def aside(self) -> AbstractAsyncContextManager[Sending]:
        """Return a separate connection for large records that no decision waits for."""
        ...

    async def append(self, shard: int, payload: bytes, headers: Headers) -> int:
        """Append a record to a shard and return its offset once min ISR replicas hold it.

        Raises `AppendUnknownError` if the outcome is unknown, after which the process must exit and replay (R7), and
        `RecordTooLargeError` if the record was not written.
        """
        ...

    async def send(
        self, topic: str, value: bytes, *, partition: int | None = None, key: bytes | None = None, headers: Headers = ()
    ) -> None:
        """Produce one record to any topic and return once it is acknowledged; errors as `append`."""
        ...

    def broker_time_ms(self) -> int | None:
        """Return the time of the log's brokers, from the last acknowledgement and its age.

        None before the first append, or if the brokers do not send timestamps.
        """
        ...

    async def next_records(self) -> Sequence[TailRecord]:
        """Return the new records of the log; wait for up to half a second if there are none."""
        ...

    async def ends(self) -> tuple[int, ...]:
        """Return the current end offset of every shard."""
        ...

    async def has_reached(self, ends: Sequence[int]) -> bool:
        """Whether every record before these offsets was delivered; transaction markers do not count."""
        ...

    async def bounds(self, topic: str, at_least: Sequence[int] | None = None) -> tuple[tuple[int, int], ...]:
        """Return the first and end offset of each partition of a topic with one partition per shard.

        `at_least` are known ends, one per shard: a lower end may come from a stale leader, and is read again until a
        stale leader cannot be the reason.
        """
        ...

    async def first_offset(self, topic: str, partition: int, at_least: int) -> int:
        """Return the offset of the first record at or after `at_least`, by a direct read; wait until there is one.

        This proves that a gap in the offsets holds only transaction markers and aborted records.
        """
        ...

    async def close(self) -> None:
        """Close the connections; idempotent."""
        ...
