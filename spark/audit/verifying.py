"""The log held against its own rules in Spark: each shard is inspected by one task, all of them side by side.

Around `drover.shard.inspection`, which runs the fold that every reader runs (R8). Spark's workers import this module by
name.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
from msgspec import json
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation gives it

from drover.shard.inspection import Finding, Inspection, Summary

_DDL = "shard int, offset bigint, appended_ms bigint, finding string, summary string"
_SCHEMA = pa.schema(
    [
        ("shard", pa.int32()),
        ("offset", pa.int64()),
        ("appended_ms", pa.int64()),
        ("finding", pa.string()),
        ("summary", pa.string()),
    ]
)
_finding = json.Decoder(Finding)
_summary = json.Decoder(Summary)

_Line = tuple[int, int | None, int | None, str | None, str | None]


class Found(NamedTuple):
    """A finding, and when Kafka appended the record that it is about; ms since epoch."""

    finding: Finding
    appended_ms: int


class Verification(NamedTuple):
    """What an inspection of the log came to: each in the order of shards and offsets."""

    findings: tuple[Found, ...]
    shards: tuple[Summary, ...]


def verify(records: DataFrame, shards: int) -> Verification:
    """Inspect every shard of the log, from the first record to the last that `records` has.

    `records` has the columns of Spark's Kafka source and holds the log's topic only; `shards` is how many partitions
    that has. A shard without any record has no summary.
    """
    lines = inspected(records, shards).collect()
    findings = [Found(_finding.decode(line.finding), line.appended_ms) for line in lines if line.finding is not None]
    summaries = [_summary.decode(line.summary) for line in lines if line.summary is not None]
    return Verification(
        tuple(sorted(findings, key=lambda found: (found.finding.shard, found.finding.offset))),
        tuple(sorted(summaries, key=lambda summary: summary.shard)),
    )


def inspected(records: DataFrame, shards: int) -> DataFrame:
    """Return a row for each finding, and one with the summary for each shard."""
    return (
        records.select("partition", "offset", F.unix_millis("timestamp").alias("appended_ms"), "value")
        .repartition(shards, "partition")
        .sortWithinPartitions("partition", "offset")
        .mapInArrow(functools.partial(_inspect, shards), _DDL)
    )


def _inspect(shards: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    shard, inspection = -1, None
    for batch in batches:
        lines: list[_Line] = []
        for number, offset, appended_ms, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if inspection is None or number != shard:
                lines += _summed_up(inspection)
                shard, inspection = number, Inspection(number, shards)
            for finding in inspection.see(offset, value or b""):
                lines.append((number, offset, appended_ms, json.encode(finding).decode(), None))
        yield _arrow(lines)
    yield _arrow(_summed_up(inspection))


def _summed_up(inspection: Inspection | None) -> list[_Line]:
    if inspection is None:
        return []
    summary = inspection.summary()
    return [(summary.shard, None, None, None, json.encode(summary).decode())]


def _arrow(lines: list[_Line]) -> pa.RecordBatch:
    columns = list(zip(*lines, strict=True)) if lines else [() for _ in _SCHEMA]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
