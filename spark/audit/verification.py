"""Verification of the log by its own rules in Spark: each shard is inspected by one task, all of them in parallel.

It runs `drover.fold.inspection`, which runs the fold of every reader (R8). Spark's workers import this module by
name.
"""

import functools
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import pyarrow as pa
from msgspec import json
from pyspark.sql import DataFrame

from drover.fold.inspection import Finding, Inspection, Summary
from drover.spark.contributions import records_in, stored

_NO_SAMPLES = ""

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
    """A finding, and the time at which Kafka appended its record (ms since epoch)."""

    finding: Finding
    appended_ms: int


class Verification(NamedTuple):
    """The result of an inspection of the log, in the order of shards and offsets."""

    findings: tuple[Found, ...]
    shards: tuple[Summary, ...]


def verify(records: DataFrame, shards: int) -> Verification:
    """Inspect every shard of the log, from the first record to the last that `records` has.

    `records` has the columns of Spark's Kafka source and holds the log's topic only; `shards` is the number of its
    partitions. The frame's partitions are as `drover.spark.contributions.contributions` needs them. An empty shard has
    no summary.
    """
    lines = inspected(records, shards).collect()
    findings = [Found(_finding.decode(line.finding), line.appended_ms) for line in lines if line.finding is not None]
    summaries = [_summary.decode(line.summary) for line in lines if line.summary is not None]
    return Verification(
        tuple(sorted(findings, key=lambda entry: (entry.finding.shard, entry.finding.offset))),
        tuple(sorted(summaries, key=lambda summary: summary.shard)),
    )


def inspected(records: DataFrame, shards: int) -> DataFrame:
    """Return a row for each finding, and one with the summary for each shard."""
    return stored(records, _NO_SAMPLES).mapInArrow(functools.partial(_inspect, shards), _DDL)


def _inspect(shards: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number, of_shard in groupby(records_in(batches), attrgetter("partition")):
        inspection = Inspection(number, shards)
        lines: list[_Line] = [
            (number, offset, appended_ms, json.encode(finding).decode(), None)
            for _, _, offset, appended_ms, value in of_shard
            for finding in inspection.see(offset, value or b"")
        ]
        yield _arrow([*lines, *_summed_up(inspection)])


def _summed_up(inspection: Inspection) -> list[_Line]:
    summary = inspection.summary()
    return [(summary.shard, None, None, None, json.encode(summary).decode())]


def _arrow(lines: list[_Line]) -> pa.RecordBatch:
    columns = list(zip(*lines, strict=True)) if lines else [() for _ in _SCHEMA]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
