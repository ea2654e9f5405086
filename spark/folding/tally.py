"""Numbers that are summed up while a batch is folded, and contributed once at its end."""

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from spark.folding.rows import Contribution, contribution
from spark.schema import BUCKETS_PER_DOUBLING, TABLES, WINDOW_MS, Merge

Key = tuple[str | int, ...]
# Looked up for every value of every sample.
_MERGES = {name: {column.name: column.merge for column in table.values} for name, table in TABLES.items()}


class Tally:
    """Rows under construction, by table and key; each column joins as the table's schema says."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[Key, dict[str, Any]]] = defaultdict(dict)

    def put(self, table: str, key: Key, **values: Any) -> None:
        """Join values into the row of that key."""
        row = self._rows[table].get(key)
        if row is None:
            row = self._rows[table][key] = dict(zip(TABLES[table].keys, key, strict=True))
        merges = _MERGES[table]
        for name, value in values.items():
            row[name] = joined(merges[name], row.get(name), value)

    def contributions(self) -> Iterator[Contribution]:
        """Yield every row."""
        for table, rows in self._rows.items():
            for row in rows.values():
                yield contribution(table, row)


def joined(merge: Merge, old: Any, new: Any) -> Any:
    """Join one value into what is there, as every sink does."""
    match merge:
        case Merge.SUM:
            return (old or 0) + (new or 0)
        case Merge.MAX:
            return max((value for value in (old, new) if value is not None), default=None)
        case Merge.KEEP:
            return old if new is None else new
        case Merge.REPLACE:
            return new
        case Merge.KEY:
            raise AssertionError("keys are never joined")


def window(at_ms: int) -> int:
    """Return the beginning of the window that a moment lies in."""
    return at_ms - at_ms % WINDOW_MS


def bucket(duration_ms: int) -> int:
    """Return the bucket of a duration: 8 for each doubling, so that a bucket's ends are 9 % apart."""
    return math.floor(math.log2(max(1, duration_ms)) * BUCKETS_PER_DOUBLING)


def bucket_end_ms(number: int) -> float:
    """Return the upper end of a bucket, in ms."""
    return float(2 ** ((number + 1) / BUCKETS_PER_DOUBLING))
