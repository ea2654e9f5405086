"""Judged rows to contributions: what one part of the log adds to every table, in one Spark job."""

import functools
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation gives it

from spark.folding.fold import fold
from spark.folding.rows import NO_TABLE, FoldRow
from spark.rows import EVENT, SAMPLE
from spark.tables.counting import counted

DDL = "table string, document string"
_SCHEMA = pa.schema([("table", pa.string()), ("document", pa.string())])
_ROWS_PER_BATCH = 3000
_NOTHING: Mapping[str, bytes] = {}


def contributions(judged: DataFrame, carry: Mapping[str, bytes] = _NOTHING) -> DataFrame:
    """Return everything that judged rows add to the tables, as rows of (table, JSON of its columns).

    The same for a stream's batch and for a whole log: `carry` is what the parts before this one carried, nothing for a
    log that is read from its beginning. Several rows may be about one row of a table; `spark.merging` joins them.
    """
    counts = counted(judged).select(
        F.coalesce("table", F.lit(NO_TABLE)).alias("table"), F.to_json(F.struct("*")).alias("document")
    )
    return folded(judged, carry).union(counts)


def folded(judged: DataFrame, carry: Mapping[str, bytes] = _NOTHING) -> DataFrame:
    """Return what depends on the order of events: each cluster is folded by one task, in the order of the log."""
    return (
        judged.where(F.col("counts") & F.col("entry").isin(EVENT, SAMPLE))
        .select(*FoldRow._fields, "source")
        .repartition(judged.sparkSession.sparkContext.defaultParallelism, "cluster")
        .sortWithinPartitions("cluster", "source", "shard", "offset", "index")
        .drop("source")
        .mapInArrow(functools.partial(_fold, carry), DDL)
    )


def _fold(carry: Mapping[str, bytes], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    pending: list[tuple[str, str]] = []
    for found in fold(_rows(batches), carry):
        pending.append(found)
        if len(pending) == _ROWS_PER_BATCH:
            yield _batch(pending)
            pending = []
    if pending:
        yield _batch(pending)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[FoldRow]:
    for batch in batches:
        yield from map(FoldRow._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _batch(found: list[tuple[str, str]]) -> pa.RecordBatch:
    tables, documents = zip(*found, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(tables), pa.array(documents)], schema=_SCHEMA)
