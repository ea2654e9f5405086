"""What one task adds: rows by table, and what is carried on, on their way from an executor to the driver."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import msgpack

from drover.spark.tables.row_buffer import RowBuffer

# Under these names travel what is carried on, and when Kafka appended the newest record, and the newest of the log.
CARRY, NEWEST = "carry", "newest"
_ENCODE = msgpack.Encoder().encode


class Contribution(NamedTuple):
    """Rows of one table in msgpack: a list of lists, whose values are in the order of the table's columns."""

    table: str
    rows: bytes


def contributions(
    buffer: RowBuffer, name: str, carried: bytes, newest_ms: int, logged_ms: int = 0
) -> Iterator[Contribution]:
    """Yield what a buffer holds, what is carried on under a name, and of when its newest record is, and the log's."""
    for table, rows in buffer.complete():
        yield Contribution(table, _ENCODE(rows))
    yield Contribution(CARRY, _ENCODE([(name, carried)]))
    yield Contribution(NEWEST, _ENCODE([(newest_ms, logged_ms)]))


def rows_of(contribution: Contribution) -> list[list[Any]]:
    """Return the rows of a contribution."""
    rows: list[list[Any]] = msgpack.decode(contribution.rows)
    return rows
