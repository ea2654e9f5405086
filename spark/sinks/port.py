"""The interface of a sink to the job, and the promises of every sink.

A batch of the stream is applied whole or not at all, together with its number under the checkpoint's identity, so that
a batch that Spark delivers again after a crash is recognised. With an unknown checkpoint a sink starts over.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from drover.errors import ConfigurationError
from drover.spark.merge import Part, Row


class Position(NamedTuple):
    """The progress of a sink: the last batch applied, and the state carried on after it, by name."""

    batch: int
    carry: Mapping[str, bytes]


# Before the first batch.
BEGINNING = Position(-1, {})


class Applied(NamedTuple):
    """One batch to be applied, and when."""

    batch: int
    part: Part
    applied_ms: int


class Standing(NamedTuple):
    """The progress of the tables: the last batch, the time of its newest record, and when it was written."""

    batch: int
    newest_ms: int
    applied_ms: int


class Sink(Protocol):
    """Tables to which batches are applied; written by one job at a time, and readable meanwhile."""

    @property
    def name(self) -> str:
        """The sink's name, in messages and as the name of its query."""
        ...

    @property
    def keeps_history(self) -> bool:
        """Whether it keeps the tables that grow with the log."""
        ...

    def position(self, checkpoint: str) -> Position | None:
        """Return the progress of this checkpoint; None for an unknown one."""
        ...

    def apply(self, checkpoint: str, applied: Applied) -> bool:
        """Apply a batch, atomically; False, and no effect, if it was applied before.

        Batch 0 of an unknown checkpoint empties every table first. Raises `ConfigurationError` for a batch that does
        not follow the last one, which means that tables and checkpoint do not belong together.
        """
        ...

    def rows(self, table: str) -> tuple[Row, ...]:
        """Read a table, in no order."""
        ...

    def standing(self) -> Standing | None:
        """Return the progress of the tables; None before the first batch."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...


def check_follows(sink: str, place: object, last: int | None, batch: int) -> None:
    """Refuse a batch that does not follow the last one applied (None: no batch of this checkpoint was)."""
    expected = 0 if last is None else last + 1
    if batch != expected:
        raise ConfigurationError(
            f"the {sink} tables in {place} want batch {expected} of this checkpoint, Spark goes on with {batch}: they "
            "are not of one time. Remove the checkpoint; the tables are then made anew from the log."
        )
