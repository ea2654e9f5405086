"""Reads the log once and makes the audit of a part of it, with one Spark task per shard.

Runs in Spark's Python workers, which import this module by name: it must not open a session when it is imported.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa
from msgspec import msgpack
from pyspark.sql import DataFrame

from drover.spark.audit.kept import NOTHING_KEPT, Kept, KeptShard
from drover.spark.audit.parts import AuditSpan
from drover.spark.audit.report import Offsets, Report, report
from drover.spark.audit.shard_report import ShardReport, Wanted
from drover.spark.audit.shards import Line, Stale, audited
from drover.spark.contributions import records_in, stored


class Gathered(NamedTuple):
    """The results of one reading: the audit, the states of shards to keep for later audits, and stale shards.

    A shard is stale if its kept state is of another log. The audit lacks stale shards.
    """

    report: Report
    kept: tuple[Kept, ...]
    stale: tuple[int, ...]


# The log has no samples, so that audits do not depend on records that are deleted after a week.
_NO_SAMPLES = ""
_DDL = "line binary"
_SCHEMA = pa.schema([("line", pa.binary())])
_encoder = msgpack.Encoder()
_decoder: msgpack.Decoder[Line] = msgpack.Decoder(Line)


def gather(
    records: DataFrame,
    span: AuditSpan,
    wanted: Wanted,
    starts: Offsets,
    ends: Offsets,
    kept: Mapping[int, KeptShard] = NOTHING_KEPT,
) -> Gathered:
    """Read the log up to the end of the part `span`, and report the rows that are `wanted`.

    `records` has the columns of Spark's Kafka source, holds the log's topic only, and is read once. It begins with the
    first record of each shard, or where it was kept; its partitions are as `drover.spark.contributions.contributions`
    needs them. `starts` and `ends` are the first and the end offset of each shard of the log.
    """
    collected = stored(records, _NO_SAMPLES).mapInArrow(functools.partial(_audit, span, wanted, kept), _DDL).collect()
    lines = [_decoder.decode(line) for (line,) in collected]
    shards = [line for line in lines if isinstance(line, ShardReport)]
    return Gathered(
        report(shards, span, starts, ends, wanted.sections),
        tuple(line for line in lines if isinstance(line, Kept)),
        tuple(line.shard for line in lines if isinstance(line, Stale)),
    )


def _audit(
    span: AuditSpan, wanted: Wanted, kept: Mapping[int, KeptShard], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for line in audited(records_in(batches), span, wanted, kept):
        yield pa.RecordBatch.from_arrays([pa.array([_encoder.encode(line)], pa.binary())], schema=_SCHEMA)
