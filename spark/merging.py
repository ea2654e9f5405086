"""Contributions joined into tables, in memory; what the sinks do with files and what a batch does at once. Pure.

A part of the log is what one batch of the stream holds; `Part` is everything it adds, as any sink can write it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import json

from spark.folding.rows import CARRY, NO_TABLE, Carried, Contribution
from spark.folding.tally import Key, joined
from spark.schema import TABLES, Table

Row = dict[str, Any]
_document = json.Decoder(Row)
_carried = json.Decoder(Carried)


class Part(NamedTuple):
    """What one part of the log adds: rows by table, each with every column, and what is carried on; None forgets.

    `newest_ms` is when Kafka appended its newest record, 0 for an empty part.
    """

    rows: Mapping[str, tuple[Row, ...]]
    carried: Mapping[str, bytes | None]
    newest_ms: int


def part_of(contributions: Iterable[tuple[str, str]]) -> Part:
    """Sort contributions by table and give each row all its columns, those it does not speak of as None."""
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    carried: dict[str, bytes | None] = {}
    newest_ms = 0
    for found in map(Contribution._make, contributions):
        if found.table == CARRY:
            one = _carried.decode(found.document)
            carried[one.key] = one.value
            continue
        document = _document.decode(found.document)
        newest_ms = max(newest_ms, document.get("newest_ms", 0))
        if found.table != NO_TABLE:
            rows[found.table].append({name: document.get(name) for name in TABLES[found.table].names})
    return Part({name: tuple(of_table) for name, of_table in rows.items() if of_table}, carried, newest_ms)


def merge(table: Table, into: dict[Key, Row], rows: Iterable[Row]) -> dict[Key, Row]:
    """Join rows into those that are there, by the table's keys; returns `into`."""
    for row in rows:
        key = tuple(row[name] for name in table.keys)
        known = into.get(key)
        if known is None:
            known = into[key] = dict.fromkeys(table.names) | {name: row[name] for name in table.keys}
        for column in table.values:
            known[column.name] = joined(column.merge, known[column.name], row[column.name])
    return into


def carry_on(carry: Mapping[str, bytes], carried: Mapping[str, bytes | None]) -> dict[str, bytes]:
    """Return what is carried after a part of the log."""
    return {key: value for key, value in {**carry, **carried}.items() if value is not None}
