"""The job's own fold without Spark: records to rows, judged and folded in this process."""

from collections.abc import Iterable, Mapping
from typing import Any

from spark.folding.fold import fold
from spark.folding.rows import FoldRow
from spark.merging import Part, carry_on, merge, part_of
from spark.rows import ACQUIRE, EVENT, LOG, PLACE, SAMPLE, SAMPLES, Row, Source, rows_of
from spark.schema import TABLES
from spark.validity import AcquireRecord, Ownerships, Validity, validity
from tests.spark.comparing import Rows
from tests.spark.kafka_rows import NAMES, Stored

FOLDED = ("reassignments", "samples", "plans", "brokers", "durations", "throttles", "ended")


class PureJob:
    """What a sink would hold after each part of the log."""

    def __init__(self) -> None:
        self.carry: dict[str, bytes] = {}
        self.owners: Ownerships = {}
        self.rows: dict[str, dict[Any, Any]] = {name: {} for name in TABLES}

    def take(self, records: Iterable[Stored]) -> "PureJob":
        part = self._part(list(records))
        for name, rows in part.rows.items():
            merge(TABLES[name], self.rows[name], rows)
        self.carry = carry_on(self.carry, part.carried)
        return self

    def _part(self, records: list[Stored]) -> Part:
        flat = [row for record in records for row in _rows(record)]
        acquires = [
            AcquireRecord(_of(row, "shard"), _of(row, "offset"), _of(row, "epoch"), _of(row, "token"))
            for row in flat
            if _of(row, "entry") == ACQUIRE
        ]
        rules = validity(self.owners, acquires)
        self.owners = rules.ownerships
        wanted = [
            row for row in flat if _of(row, "entry") == SAMPLE or (_of(row, "entry") == EVENT and _counts(rules, row))
        ]
        wanted.sort(key=lambda row: [_of(row, name) for name in ("cluster", "source", "shard", "offset", "index")])
        return part_of(fold((FoldRow._make(_fold_values(row)) for row in wanted), self.carry))

    def tables(self) -> dict[str, Rows]:
        return tables_of(self.rows)


def tables_of(rows: Mapping[str, Mapping[Any, Mapping[str, Any]]]) -> dict[str, Rows]:
    """Leave the keys out of the rows, as the oracle does."""
    return {
        name: {
            key: {column: value for column, value in row.items() if column not in TABLES[name].keys}
            for key, row in of_table.items()
        }
        for name, of_table in rows.items()
    }


def _rows(record: Stored) -> Iterable[Row]:
    source = SAMPLES if record.topic == NAMES.progress else LOG
    return rows_of(Source(source, record.partition, record.offset, record.appended_ms), record.value)


def _of(row: Row, name: str) -> Any:
    return row[PLACE[name]]


def _fold_values(row: Row) -> Iterable[Any]:
    for name in FoldRow._fields:
        value = _of(row, name)
        yield [{"broker": broker, "bytes": size} for broker, size in value or ()] if name == "adding" else value


def _counts(rules: Validity, row: Row) -> bool:
    return any(
        interval.shard == _of(row, "shard")
        and interval.token == _of(row, "token")
        and interval.first_offset < _of(row, "offset")
        and (interval.next_offset is None or _of(row, "offset") < interval.next_offset)
        for interval in rules.intervals
    )
