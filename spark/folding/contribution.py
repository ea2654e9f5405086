"""The contributions of a task: rows by table, and the carried state, on their way from an executor to the driver."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import msgpack

from drover.spark.tables.row_buffer import RowBuffer

# The names of the carried state, and of the times at which Kafka appended the newest record and the log's newest one.
CARRY, NEWEST = "carry", "newest"
_ENCODE = msgpack.Encoder().encode


class Contribution(NamedTuple):
    """Rows of one table in msgpack: a list of lists, whose values are in the order of the table's columns."""

    table: str
    rows: bytes


def contributions(
    buffer: RowBuffer, name: str, carried: bytes, newest_ms: int, logged_ms: int = 0
) -> Iterator[Contribution]:
    """Yield the rows of a buffer, the carried state under its name, and the times of the newest records."""
    for table, rows in buffer.complete():
        yield Contribution(table, _ENCODE(rows))
    yield Contribution(CARRY, _ENCODE([(name, carried)]))
    yield Contribution(NEWEST, _ENCODE([(newest_ms, logged_ms)]))


def rows_of(contribution: Contribution) -> list[list[Any]]:
    """Return the rows of a contribution."""
    rows: list[list[Any]] = msgpack.decode(contribution.rows)
    return rows
