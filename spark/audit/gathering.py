"""One reading of the log, and everything that an audit says of a part of it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation gives it

from spark.audit.facts import Facts, Row
from spark.audit.frames import bounds, decided, lives
from spark.audit.parts import ShardPart, Wish
from spark.decode import flat_rows
from spark.judging import judge
from spark.merging import merge, part_of
from spark.rows import OUTCOME, REFUSAL, UNDECODABLE
from spark.schema import TABLES
from spark.tables.contributing import contributions

Offsets = Mapping[int, int]
# The log has no samples in it: what audits say depends on nothing that is deleted after a week.
_NO_SAMPLES = ""


def gather(records: DataFrame, wish: Wish, starts: Offsets, ends: Offsets) -> Facts:
    """Read the log up to the end of the part that was asked for.

    `records` has the columns of Spark's Kafka source, holds the log's topic only, from its first record on, and is read
    once. `starts` and `ends` are where each shard of it begins and ends.
    """
    with _kept(flat_rows(records, _NO_SAMPLES)) as rows:
        judged, _ = judge(rows)
        found = {}
        if wish.since_ms is not None or wish.until_ms is not None:
            collected = bounds(judged, wish.since_ms, wish.until_ms).collect()
            found = {row["shard"]: (row["first"], row["after"]) for row in collected}
        parts = wish.resolved(starts, ends, found)
        before_end = judged.where(_any_of(parts, from_the_beginning=True))
        inside = judged.where(_any_of(parts, from_the_beginning=False))
        part = part_of((row[0], row[1]) for row in contributions(before_end).collect())
        tables = {name: tuple(merge(table, {}, part.rows.get(name, ())).values()) for name, table in TABLES.items()}
        decisions = _collected(decided(inside))
        return Facts(
            parts,
            tables,
            _collected(lives(before_end)),
            tuple(row for row in decisions if row["entry"] == OUTCOME),
            tuple(row for row in decisions if row["entry"] == REFUSAL),
            sum(row["entry"] == UNDECODABLE for row in decisions),
        )


def _any_of(parts: tuple[ShardPart, ...], *, from_the_beginning: bool) -> Any:
    """Return the condition that a row stands in one of the parts, or before its end."""
    found = F.lit(False)
    for part in parts:
        is_there = (F.col("shard") == part.shard) & (F.col("offset") < part.next_offset)
        if not from_the_beginning:
            is_there &= F.col("offset") >= part.first_offset
        found |= is_there
    return found


def _collected(frame: DataFrame) -> tuple[Row, ...]:
    return tuple(row.asDict() for row in frame.collect())


@contextmanager
def _kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Keep rows that are read several times."""
    kept = rows.persist()
    try:
        yield kept
    finally:
        kept.unpersist()
