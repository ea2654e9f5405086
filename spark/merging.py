"""PURE: join contributions into tables in memory, as the sinks do with files and a batch does at once.

A part of the log is what one batch of the stream holds; `Part` is everything it adds, as any sink can write it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from drover.spark.folding.contribution import CARRY, NEWEST, Contribution, rows_of
from drover.spark.schema import TABLES
from drover.spark.tables.schema import Table
from drover.spark.tables.sheet import Key, joined

Row = dict[str, Any]


class Part(NamedTuple):
    """What one part of the log adds: rows by table, each with every column, and what is carried on, by name.

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
    for found in contributions:
        if found.table == CARRY:
            for name, value in rows_of(found):
                assert name not in carried, f"the records of {name} came in several tasks"
                carried[name] = value
        elif found.table == NEWEST:
            for newest, logged in rows_of(found):
                newest_ms, logged_ms = max(newest_ms, newest), max(logged_ms, logged)
        else:
            names = TABLES[found.table].names
            rows[found.table] += (dict(zip(names, row, strict=True)) for row in rows_of(found))
    return Part({name: tuple(of_table) for name, of_table in rows.items() if of_table}, carried, newest_ms, logged_ms)


def merge(table: Table, into: dict[Key, Row], rows: Iterable[Row]) -> dict[Key, Row]:
    """Join rows into those that are there, by the table's keys; returns `into`."""
    for row in rows:
        key = tuple(row[name] for name in table.keys)
        known = into.get(key)
        if known is None or _begins_anew(table, known, row):
            known = into[key] = dict.fromkeys(table.names) | {name: row[name] for name in table.keys}
        for column in table.values:
            known[column.name] = joined(column.merge, known[column.name], row[column.name])
    return into


def _begins_anew(table: Table, known: Row, row: Row) -> bool:
    """Whether a row is about something else than the one that is there, of the same name."""
    if table.begins_by is None:
        return False
    began, begins = known[table.begins_by], row[table.begins_by]
    return began is not None and begins is not None and began != begins
