"""Records to contributions inside Spark: `mapInArrow` around the pure `drover.spark.folding`, one task for each shard.

Runs in Spark's Python workers, which import this module by name: it must not open a session when it is imported.
"""

import functools
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation gives it

from drover.spark.folding.contribution import Contribution
from drover.spark.folding.parts import Stored, folded

DDL = "table string, rows binary"
_SCHEMA = pa.schema([("table", pa.string()), ("rows", pa.binary())])


def contributions(
    records: DataFrame, samples_topic: str, carry: Mapping[str, bytes], *, keeps_history: bool = True
) -> DataFrame:
    """Return the contributions of records to the tables, as rows of (table, its rows in msgpack); see `folded`.

    `records` has the columns of Spark's Kafka source. All records of a shard must be in one partition of the frame,
    shard by shard in the order of their offsets, as the source returns them with a task for each of its partitions.
    """
    return stored(records, samples_topic).mapInArrow(functools.partial(_fold, carry, keeps_history), DDL)


def stored(records: DataFrame, samples_topic: str) -> DataFrame:
    """Select the columns of `Stored`; records of `samples_topic` are byte samples, all others are the log's."""
    is_sample = (F.col("topic") == samples_topic).alias("is_sample")
    return records.select(is_sample, "partition", "offset", F.unix_millis("timestamp").alias("appended_ms"), "value")


def records_in(batches: Iterator[pa.RecordBatch]) -> Iterator[Stored]:
    """Yield the records of Arrow's batches, which have the columns of `Stored`."""
    for batch in batches:
        yield from map(Stored._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _fold(
    carry: Mapping[str, bytes],
    keeps_history: bool,  # noqa: FBT001 - bound by `partial`
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for contribution in folded(records_in(batches), carry, keeps_history=keeps_history):
        yield _arrow(contribution)


def _arrow(contribution: Contribution) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([contribution.table]), pa.array([contribution.rows], pa.binary())], schema=_SCHEMA
    )
