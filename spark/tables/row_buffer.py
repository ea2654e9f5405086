"""Rows under construction: the contribution of one part of the log to the tables, joined by their schemas."""

from collections.abc import Iterator, Mapping
from typing import Any

from drover.spark.tables.schema import Merge, Table

Key = tuple[str | int, ...]
Row = dict[str, Any]
_REPLACE, _SUM, _MAX = Merge.REPLACE, Merge.SUM, Merge.MAX
# The most that a column of integers holds. Sums of samples, which any client may send, stop here.
MOST = 2**63 - 1


class RowBuffer:
    """Rows by table and key, in `rows`; a row has only the columns that were put."""

    __slots__ = ("_merges", "_tables", "rows")

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables
        self._merges = {name: {column.name: column.merge for column in table.values} for name, table in tables.items()}
        self.rows: dict[str, dict[Key, Row]] = {name: {} for name in tables}

    def keeps(self, table: str) -> bool:
        """Whether this table is wanted; callers skip building expensive rows otherwise."""
        return table in self.rows

    def put(self, table: str, key: Key, **values: Any) -> None:
        """Join values into the row of that key."""
        rows = self.rows[table]
        row = rows.get(key)
        if row is None:
            rows[key] = values
            return
        merges = self._merges[table]
        for name, value in values.items():
            # `joined`, inlined for present values, because every event comes here.
            merge, old = merges[name], row.get(name)
            if value is None:
                row[name] = None if merge is _REPLACE else old
            elif old is None or (merge is not _SUM and merge is not _MAX):
                row[name] = value
            elif merge is _SUM:
                row[name] = min(old + value, MOST)
            elif value > old:
                row[name] = value

    def replace(self, table: str, key: Key, row: Row) -> None:
        """Replace the row of that key, in a table whose columns are all replaced by later ones."""
        self.rows[table][key] = row

    def complete(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """Yield each table that has rows; their values are in the order of its columns, None for no value."""
        for name, rows in self.rows.items():
            if rows:
                values = [column.name for column in self._tables[name].values]
                yield name, [(*key, *map(row.get, values)) for key, row in rows.items()]


def joined(merge: Merge, old: Any, new: Any) -> Any:
    """Join a value into the present one, as every sink does."""
    match merge:
        case Merge.SUM:
            return min((old or 0) + (new or 0), MOST)
        case Merge.MAX:
            return max((value for value in (old, new) if value is not None), default=None)
        case Merge.KEEP:
            return old if new is None else new
        case Merge.REPLACE:
            return new
        case Merge.KEY:
            raise AssertionError("keys are never joined")
