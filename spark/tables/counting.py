"""Tables that only count: plain aggregations of judged rows, the same for a stream's batch and for an audit."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation gives it

from spark.rows import ACQUIRE, BATCH, EVENT, OUTCOME, REFUSAL, UNDECODABLE

WINDOW_MS = 60_000


def window_of(at_ms: Column) -> Column:
    """Return the beginning of the window that a moment lies in, ms since epoch."""
    return F.floor(at_ms / WINDOW_MS) * WINDOW_MS


def takeovers(judged: DataFrame) -> DataFrame:
    """Count, per shard and window of Kafka's own time, who took shards over, who lost, and what was fenced."""
    entry, counts = F.col("entry"), F.col("counts")
    return (
        judged.where(entry.isin(ACQUIRE, BATCH, EVENT))
        .groupBy("shard", window_of(F.col("appended_ms")).alias("window_ms"))
        .agg(
            F.count_if((entry == ACQUIRE) & counts).alias("takeovers"),
            F.count_if((entry == ACQUIRE) & ~counts).alias("lost_acquires"),
            F.count_if((entry == BATCH) & counts).alias("batches"),
            F.count_if((entry == BATCH) & ~counts).alias("fenced_batches"),
            F.count_if((entry == EVENT) & counts).alias("events"),
            F.count_if((entry == EVENT) & ~counts).alias("fenced_events"),
        )
    )


def requests(judged: DataFrame) -> DataFrame:
    """Count, per cluster, window and requester, what became of commands."""
    verdict = F.col("verdict")
    return (
        judged.where((F.col("entry") == OUTCOME) & F.col("counts"))
        .groupBy("cluster", window_of(F.col("at_ms")).alias("window_ms"), F.col("by").alias("requester"))
        .agg(
            F.count_if(verdict == "accepted").alias("accepted_commands"),
            F.count_if(verdict == "refused").alias("refused_commands"),
            F.count_if(verdict == "duplicate").alias("repeated_commands"),
        )
    )


def refusals(judged: DataFrame) -> DataFrame:
    """Count refusals per cluster, window, requester and code."""
    return (
        judged.where((F.col("entry") == REFUSAL) & F.col("counts"))
        .groupBy(
            "cluster",
            window_of(F.col("at_ms")).alias("window_ms"),
            F.col("by").alias("requester"),
            F.col("tag").alias("code"),
        )
        .agg(F.count("*").alias("refusals"))
    )


def facts(judged: DataFrame) -> DataFrame:
    """Tell of these rows when the newest record was appended; one row."""
    return judged.agg(F.max("appended_ms").alias("newest_ms"))


def undecodable(judged: DataFrame) -> DataFrame:
    """Count, per shard, what could not be read, with the last such record and why."""
    last = F.max_by(F.col("error"), F.col("offset"))
    return (
        judged.where(F.col("entry") == UNDECODABLE)
        .groupBy("source", "shard")
        .agg(F.count("*").alias("records"), F.max("offset").alias("last_offset"), last.alias("last_error"))
    )
