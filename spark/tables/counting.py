"""Tables that only count: one plain aggregation of judged rows, the same for a stream's batch and for an audit."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation gives it

from spark.rows import ACQUIRE, BATCH, EVENT, OUTCOME, REFUSAL, UNDECODABLE
from spark.schema import WINDOW_MS


def counted(judged: DataFrame) -> DataFrame:
    """Count what was taken over, fenced, asked for, refused and unreadable.

    One row per table and key: the columns of the tables `takeovers`, `requests`, `refusals` and `undecodable` beside
    each other, with a column `table` that says which are meant. Every row of the log is counted in one of them, so that
    one pass does for all. `newest_ms` is when the newest record of each group was appended, for whatever table.
    """
    entry, counts, verdict = F.col("entry"), F.col("counts"), F.col("verdict")
    table = (
        F.when(entry == OUTCOME, "requests")
        .when(entry == REFUSAL, "refusals")
        .when(entry == UNDECODABLE, "undecodable")
        .when(entry.isin(ACQUIRE, BATCH, EVENT), "takeovers")
    )
    asks = entry.isin(OUTCOME, REFUSAL)
    # What was asked for is told by the log's own time; who owned a shard by Kafka's, whoever wrote it.
    moment = F.when(asks, F.col("at_ms")).when(table == "takeovers", F.col("appended_ms"))
    return (
        judged.where(counts | ~asks)
        .groupBy(
            table.alias("table"),
            F.when(asks, F.col("cluster")).alias("cluster"),
            window_of(moment).alias("window_ms"),
            F.when(asks, F.col("by")).alias("requester"),
            F.when(entry == REFUSAL, F.col("tag")).alias("code"),
            F.when(entry == UNDECODABLE, F.col("source")).alias("source"),
            F.when(~asks, F.col("shard")).alias("shard"),
        )
        .agg(
            F.count_if((entry == ACQUIRE) & counts).alias("takeovers"),
            F.count_if((entry == ACQUIRE) & ~counts).alias("lost_acquires"),
            F.count_if((entry == BATCH) & counts).alias("batches"),
            F.count_if((entry == BATCH) & ~counts).alias("fenced_batches"),
            F.count_if((entry == EVENT) & counts).alias("events"),
            F.count_if((entry == EVENT) & ~counts).alias("fenced_events"),
            F.count_if(verdict == "accepted").alias("accepted_commands"),
            F.count_if(verdict == "refused").alias("refused_commands"),
            F.count_if(verdict == "duplicate").alias("repeated_commands"),
            F.count_if(entry == REFUSAL).alias("refusals"),
            F.count_if(entry == UNDECODABLE).alias("records"),
            F.max(F.when(entry == UNDECODABLE, F.col("offset"))).alias("last_offset"),
            F.max_by("error", "offset").alias("last_error"),
            F.max("appended_ms").alias("newest_ms"),
        )
    )


def window_of(at_ms: Column) -> Column:
    """Return the beginning of the window that a moment lies in, ms since epoch."""
    return at_ms - at_ms % WINDOW_MS
