"""R1 and R2 on flat rows: says of each whether it counts, before anything is counted."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation gives it

from spark.rows import ACQUIRE, OF_A_BATCH
from spark.validity import AcquireRecord, Ownerships, Validity, validity

_INTERVAL = pa.schema(
    [
        ("owned_shard", pa.int32()),
        ("owned_token", pa.binary()),
        ("first_offset", pa.int64()),
        ("next_offset", pa.int64()),
    ]
)
_STALE = pa.schema([("stale_shard", pa.int32()), ("stale_offset", pa.int64())])
NO_OWNERS: Ownerships = {}


def acquires_of(rows: DataFrame) -> tuple[AcquireRecord, ...]:
    """Collect the acquire records among flat rows: a handful, whatever the log's length."""
    found = rows.where(F.col("entry") == ACQUIRE).select("shard", "offset", "epoch", "token").collect()
    return tuple(AcquireRecord(row[0], row[1], row[2], bytes(row[3])) for row in found)


def judged(rows: DataFrame, rules: Validity) -> DataFrame:
    """Add the boolean column `counts`: false for what is fenced (R2) and for acquires that lost (R1).

    Everything that is not of a batch and no acquire counts: samples and the undecodable have rules of their own.
    """
    intervals = _local(rows, rules.intervals, _INTERVAL)
    stale = _local(rows, [(one.shard, one.offset) for one in rules.stale], _STALE)
    is_valid = (
        (F.col("shard") == F.col("owned_shard"))
        & (F.col("token") == F.col("owned_token"))
        & (F.col("offset") > F.col("first_offset"))
        & (F.col("next_offset").isNull() | (F.col("offset") < F.col("next_offset")))
    )
    has_lost = (F.col("shard") == F.col("stale_shard")) & (F.col("offset") == F.col("stale_offset"))
    return (
        rows.join(F.broadcast(intervals), is_valid, "left")
        .join(F.broadcast(stale), has_lost, "left")
        .withColumn(
            "counts",
            F.when(F.col("entry").isin(*OF_A_BATCH), F.col("owned_shard").isNotNull())
            .when(F.col("entry") == ACQUIRE, F.col("stale_shard").isNull())
            .otherwise(F.lit(True)),
        )
        .select(*rows.columns, "counts")
    )


def judge(rows: DataFrame, before: Ownerships = NO_OWNERS) -> tuple[DataFrame, Validity]:
    """Judge a part of the log whose rows are worth keeping (persist them: they are read twice)."""
    rules = validity(before, acquires_of(rows))
    return judged(rows, rules), rules


def _local(rows: DataFrame, values: Sequence[tuple[Any, ...]], schema: pa.Schema) -> DataFrame:
    """Make a small frame that the driver holds: from Arrow, since from Python's own rows Spark makes a job of it."""
    columns = list(zip(*values, strict=True)) if values else [() for _ in schema]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return rows.sparkSession.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))
