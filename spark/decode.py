"""Kafka records to flat rows inside Spark: `mapInArrow` around the pure `spark.rows`.

Runs in Spark's Python workers, which import this module by name: it must not open a session when it is imported.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation gives it

from spark.rows import COLUMNS, DDL, LOG, SAMPLES, Row, Source, rows_of

_SCALARS = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
}
_PARTITION = pa.struct([("topic", pa.string()), ("partition", pa.int32())])
_REPLICA_BYTES = pa.struct([("broker", pa.int32()), ("bytes", pa.int64())])
_ARROW = {
    **_SCALARS,
    "array<int>": pa.list_(pa.int32()),
    "array<struct<topic:string,partition:int>>": pa.list_(_PARTITION),
    "array<struct<broker:int,bytes:bigint>>": pa.list_(_REPLICA_BYTES),
}
SCHEMA = pa.schema([(column.name, _ARROW[column.type]) for column in COLUMNS])


def flat_rows(records: DataFrame, samples_topic: str) -> DataFrame:
    """Decode Kafka records into the flat rows of `spark.rows`; the same for a stream and a batch.

    `records` has the columns of Spark's Kafka source (`topic`, `partition`, `offset`, `timestamp`, `value`).
    What stands in `samples_topic` is read as byte samples, everything else as records of the log. The rows of a record
    stand beside each other, in its order; nothing that the records hold makes this fail.
    """
    narrow = records.select(
        F.when(F.col("topic") == samples_topic, SAMPLES).otherwise(LOG).alias("source"),
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("appended_ms"),
        "value",
    )
    return narrow.mapInArrow(_decode, DDL)


def _decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        names = ("source", "partition", "offset", "appended_ms", "value")
        rows: list[Row] = []
        for *place, value in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
            rows += rows_of(Source(*place), value)
        yield arrow_rows(rows)


def arrow_rows(rows: list[Row]) -> pa.RecordBatch:
    """Turn rows into columns."""
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [() for _ in COLUMNS]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
