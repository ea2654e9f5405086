"""What the rest of Drover needs of the Kafka that holds the log; `kafka.py` and `memory.py` both provide it."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from drover.errors import DroverError
from drover.journal.reader import LogRecord

Headers = tuple[tuple[str, bytes], ...]


class RecordTooLargeError(DroverError):
    """A record is larger than the producer sends or the broker takes: known not to have been written."""


@dataclass(frozen=True, slots=True)
class TailRecord:
    """One record of the event log as the tail delivers it."""

    shard: int
    offset: int
    payload: bytes


class Reading(Protocol):
    """Finite readings of any of Drover's topics, one at a time; `LogReader` says what each does."""

    async def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """Count the partitions of topics, 0 for one that is not there."""
        ...

    async def end_offsets(self, topic: str, shards: Collection[int]) -> dict[int, int]:
        """Return the next offset to be written, per shard."""
        ...

    def read(self, topic: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        """Read these shards from these offsets up to the end as it is now."""
        ...


class Sending(Protocol):
    """Producing beside the log, on a connection of its own, so that large records keep no decision waiting."""

    async def send(
        self, topic: str, value: bytes, *, partition: int | None = None, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        """Produce one record and return its offset; errors as `Journal.append`, and none of them is fatal here."""
        ...


class Journal(Protocol):
    """The event log and the topics beside it.

    Records of one shard are delivered in offset order, each once, from where `seek` set it on. Nothing here
    judges them: `drover.journal.folding` does. Every method raises `LogUnavailableError` when Kafka does not answer in
    time.
    """

    shards: int

    async def start(self) -> None:
        """Connect; the tail begins before the first record of every shard."""
        ...

    def seek(self, positions: Sequence[int]) -> None:
        """Let the tail go on at these offsets, one per shard."""
        ...

    def reader(self, *, is_committed: bool = False) -> AbstractAsyncContextManager[Reading]:
        """Return a connection for finite readings; with `is_committed` without what transactions aborted."""
        ...

    def aside(self) -> AbstractAsyncContextManager[Sending]:
        """Return a connection for large records that nobody waits for."""
        ...

    async def append(self, shard: int, payload: bytes, headers: Headers) -> int:
        """Append one record to a shard and return its offset once min ISR replicas hold it.

        Raises `AppendUnknownError` when the outcome is unknown: the process must exit and replay (R7). Raises
        `RecordTooLargeError` when nothing was written.
        """
        ...

    async def send(
        self, topic: str, value: bytes, *, partition: int | None = None, key: bytes | None = None, headers: Headers = ()
    ) -> None:
        """Produce one record to any topic and return once it is acknowledged; errors as `append`."""
        ...

    def broker_time_ms(self) -> int | None:
        """Return the time of the log's brokers, by the last acknowledgement and how long ago that was.

        None while nothing has been appended, or where brokers do not say.
        """
        ...

    async def next_records(self) -> Sequence[TailRecord]:
        """Return what the log has got since; waits up to half a second, then returns nothing."""
        ...

    async def ends(self) -> tuple[int, ...]:
        """Return the end offset of every shard as it is now."""
        ...

    async def has_reached(self, ends: Sequence[int]) -> bool:
        """Whether everything before these offsets was delivered; markers at the end are not waited for."""
        ...

    async def bounds(self, topic: str, at_least: Sequence[int] | None = None) -> tuple[tuple[int, int], ...]:
        """Return first and end offset of each partition of a topic that has as many partitions as there are shards.

        `at_least` are ends that are known to be there, one per shard: a lower one may be a stale leader's, and is asked
        for again until it has lasted.
        """
        ...

    async def first_offset(self, topic: str, partition: int, at_least: int) -> int:
        """Return the offset of the first record at or after `at_least` by one direct read, waiting until there is one.

        This proves an offset gap empty: transaction markers and aborted records take offsets but are no records.
        """
        ...

    async def close(self) -> None:
        """Let go of connections; idempotent."""
        ...
