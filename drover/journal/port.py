"""What the rest of Drover needs of the Kafka that holds the log; `kafka.py` and `memory.py` both provide it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from drover.errors import DroverError

Headers = tuple[tuple[str, bytes], ...]


class RecordTooLargeError(DroverError):
    """A record is larger than the producer sends: known not to have been sent."""


@dataclass(frozen=True, slots=True)
class TailRecord:
    """One record of the event log as the tail delivers it."""

    shard: int
    offset: int
    payload: bytes


class Journal(Protocol):
    """The event log and the topics beside it.

    Records of one shard are delivered in offset order, each once, beginning with offset 0. Nothing here judges them:
    `drover.journal.folding` does. Every method raises `LogUnavailableError` when Kafka does not answer in time.
    """

    shards: int

    async def start(self) -> None:
        """Connect; the tail stands before the first record of every shard."""
        ...

    async def append(self, shard: int, payload: bytes, headers: Headers) -> int:
        """Append one record to a shard and return its offset once min ISR replicas hold it.

        Raises `AppendUnknownError` when the outcome is unknown: the process must exit and replay (R7). Raises
        `RecordTooLargeError` when nothing was sent.
        """
        ...

    async def send(
        self, topic: str, value: bytes, *, partition: int | None = None, key: bytes | None = None, headers: Headers = ()
    ) -> None:
        """Produce one record to any topic and return once it is acknowledged; errors as `append`."""
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

    async def bounds(self, topic: str) -> tuple[tuple[int, int], ...]:
        """Return first and end offset of each partition of a topic that has as many partitions as there are shards."""
        ...

    async def first_offset(self, topic: str, partition: int, at_least: int) -> int:
        """Return the offset of the first record at or after `at_least` by one direct read, waiting until there is one.

        This proves an offset gap empty: transaction markers and aborted records take offsets but are no records.
        """
        ...

    async def close(self) -> None:
        """Let go of connections; idempotent."""
        ...
