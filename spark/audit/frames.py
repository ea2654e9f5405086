"""Judged rows to the rows of an audit, where the stream has no table of them: DataFrame to DataFrame functions."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation gives it

from spark.folding.phases import BEGINNINGS, ENDS
from spark.rows import BATCH, EVENT, OUTCOME, REFUSAL, UNDECODABLE

# Events about a partition that are about no reassignment of it.
_BESIDE = ("queue-entry-added", "queue-entry-removed", "foreign-move-seen", "foreign-move-ended", "late-change-found")


def decided(judged: DataFrame) -> DataFrame:
    """Return a row for each outcome and each refusal that counts, and for each record that cannot be read.

    A refusal has the place and the id of its outcome, and its code as `tag`. One frame for all, since each that is
    collected costs a job.
    """
    is_decided = F.col("entry").isin(OUTCOME, REFUSAL) & F.col("counts")
    return judged.where(is_decided | (F.col("entry") == UNDECODABLE)).select(
        *("entry", "at_ms", "shard", "offset", "index", "cluster", "id", "tag", "by", "reason", "plan"),
        *("verdict", "accepted", "unchanged", "topic", "partition", "detail"),
    )


def lives(judged: DataFrame) -> DataFrame:
    """Return a row for each reassignment, ended or not, with what no table of the stream says of it.

    `end_offset` and `end_index` are null for one that has not ended. The cancel is the last that was asked for.
    """
    place = ("cluster", "topic", "partition")
    tag = F.col("tag")
    in_order = Window.partitionBy(*place).orderBy("offset", "index").rowsBetween(Window.unboundedPreceding, 0)
    is_begin = tag.isin(*BEGINNINGS).cast("int")
    is_step = (tag == "call-intended") & (F.col("call") == "step")
    cancel = F.struct("offset", "index", "tag", "by", "reason")
    return (
        judged.where((F.col("entry") == EVENT) & F.col("counts"))
        .where(F.col("topic").isNotNull() & F.col("partition").isNotNull() & ~tag.isin(*_BESIDE))
        .withColumn("number", F.sum(is_begin).over(in_order))
        # Of a reassignment whose beginning could not be read nobody knows what it is.
        .where("number > 0")
        .groupBy(*place, "number")
        .agg(
            F.min("shard").alias("shard"),
            F.min("offset").alias("began_offset"),
            F.max(F.when(tag.isin(*ENDS), F.struct("offset", "index"))).alias("end"),
            F.min(F.when(is_step, F.col("at_ms"))).alias("started_ms"),
            F.coalesce(F.max(F.when(is_step, F.col("step"))), F.lit(0)).alias("steps"),
            F.count_if(tag == "call-rejected").alias("rejected_calls"),
            F.count_if(tag == "reassignment-blocked").alias("blocks"),
            # A request that is tried again does not repeat who made it.
            F.max(F.when(tag.isin("rollback-requested", "stop-requested") & (F.col("by") != ""), cancel)).alias(
                "cancel"
            ),
        )
        .select(
            *(*place, "shard", "number", "began_offset", "started_ms", "steps", "rejected_calls", "blocks"),
            F.col("end.offset").alias("end_offset"),
            F.col("end.index").alias("end_index"),
            F.regexp_extract("cancel.tag", "^(rollback|stop)", 1).alias("cancel_mode"),
            F.col("cancel.by").alias("cancelled_by"),
            F.col("cancel.reason").alias("cancel_reason"),
        )
    )


def bounds(judged: DataFrame, since_ms: int | None, until_ms: int | None) -> DataFrame:
    """Return per shard the first valid batch not before `since_ms`, and the first one after `until_ms`; null for none.

    Times never go back within a shard, so that all between the two was decided between the two moments.
    """
    at_ms, offset = F.col("at_ms"), F.col("offset")
    return (
        judged.where((F.col("entry") == BATCH) & F.col("counts"))
        .groupBy("shard")
        .agg(
            F.min(F.when(at_ms >= F.lit(since_ms), offset)).alias("first"),
            F.min(F.when(at_ms > F.lit(until_ms), offset)).alias("after"),
        )
    )
