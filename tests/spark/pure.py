"""The job's own fold without Spark: records grouped by shard, folded in this process."""

from collections.abc import Iterable, Mapping
from typing import Any

from drover.spark.folding.parts import Stored as InTask
from drover.spark.folding.parts import folded
from drover.spark.merge import merge, part_of
from drover.spark.schema import TABLES
from tests.spark.comparing import Rows
from tests.spark.kafka_rows import NAMES, Stored


class PureJob:
    """What a sink would hold after each part of the log."""

    def __init__(self) -> None:
        self.carry: dict[str, bytes] = {}
        self.rows: dict[str, dict[Any, Any]] = {name: {} for name in TABLES}

    def take(self, records: Iterable[Stored]) -> "PureJob":
        part = part_of(folded(in_order(records), self.carry))
        for name, rows in part.rows.items():
            merge(TABLES[name], self.rows[name], rows)
        self.carry |= part.carried
        return self

    def tables(self) -> dict[str, Rows]:
        return tables_of(self.rows)


def in_order(records: Iterable[Stored]) -> list[InTask]:
    """One shard after the other, as a task of Spark gets them."""
    found = [
        InTask(one.topic == NAMES.progress, one.partition, one.offset, one.appended_ms, one.value) for one in records
    ]
    return sorted(found, key=lambda one: one[:3])


def tables_of(rows: Mapping[str, Mapping[Any, Mapping[str, Any]]]) -> dict[str, Rows]:
    """Leave the keys out of the rows, as the oracle does."""
    return {
        name: {
            key: {column: value for column, value in row.items() if column not in TABLES[name].keys}
            for key, row in of_table.items()
        }
        for name, of_table in rows.items()
    }
