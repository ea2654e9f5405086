"""PURE: join contributions into tables in memory, as the sinks do with files and a batch does at once.

A part of the log is one batch of the stream; `Part` is its contribution in a form that any sink can write.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from drover.spark.folding.contribution import CARRY, NEWEST, Contribution, rows_of
from drover.spark.schema import TABLES
from drover.spark.tables.row_buffer import Key, joined
from drover.spark.tables.schema import Table

Row = dict[str, Any]


class Part(NamedTuple):
    """The contribution of one part of the log: rows by table, each with every column, and carried states, by name.

    `newest_ms` is when Kafka appended its newest record, `logged_ms` the newest of the log; 0 where there is none.
    """

    rows: Mapping[str, tuple[Row, ...]]
    carried: Mapping[str, bytes]
    newest_ms: int
    logged_ms: int = 0


def part_of(contributions: Iterable[Contribution]) -> Part:
    """Sort contributions by table, and name the columns of their rows."""
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    carried: dict[str, bytes] = {}
    newest_ms = logged_ms = 0
    for contribution in contributions:
        if contribution.table == CARRY:
            for name, value in rows_of(contribution):
                assert name not in carried, f"the records of {name} came in several tasks"
                carried[name] = value
        elif contribution.table == NEWEST:
            for newest, logged in rows_of(contribution):
                newest_ms, logged_ms = max(newest_ms, newest), max(logged_ms, logged)
        else:
            names = TABLES[contribution.table].names
            rows[contribution.table] += (dict(zip(names, row, strict=True)) for row in rows_of(contribution))
    return Part({name: tuple(of_table) for name, of_table in rows.items() if of_table}, carried, newest_ms, logged_ms)


def merge(table: Table, into: dict[Key, Row], rows: Iterable[Row]) -> dict[Key, Row]:
    """Join rows into `into` by the table's keys, and return it."""
    for row in rows:
        key = tuple(row[name] for name in table.keys)
        present = into.get(key)
        if present is None or _begins_anew(table, present, row):
            present = into[key] = dict.fromkeys(table.names) | {name: row[name] for name in table.keys}
        for column in table.values:
            present[column.name] = joined(column.merge, present[column.name], row[column.name])
    return into


def _begins_anew(table: Table, present: Row, row: Row) -> bool:
    """Whether a row is about another thing of the same name than the present row."""
    if table.begins_by is None:
        return False
    began, begins = present[table.begins_by], row[table.begins_by]
    return began is not None and begins is not None and began != begins
