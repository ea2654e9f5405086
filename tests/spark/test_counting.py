"""The job's one pass in Spark itself: shards folded as the plain fold does, whole and in parts, a task for each."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from msgspec import msgpack
from pyspark.sql import SparkSession

from drover.events.plans import PlanOpened
from drover.events.reassignments import ReassignmentCreated
from drover.events.records import AnyEvent
from drover.fold.log import ShardFold
from drover.spark.contributions import contributions
from drover.spark.folding.carry import unpacked
from drover.spark.folding.contribution import CARRY, Contribution
from drover.spark.merge import merge, part_of
from drover.spark.schema import TABLES
from drover.spark.tables.registry import CAPABILITIES
from tests.simulation import golden
from tests.spark.comparing import difference
from tests.spark.kafka_rows import NAMES, Stored, acquire, batch, frame, shard
from tests.spark.oracle import Oracle
from tests.spark.pure import tables_of
from tests.spark.simulated import samples_of

pytestmark = pytest.mark.story

OLD, NEW = b"o" * 16, b"n" * 16


def test_a_worker_is_forked_with_what_it_needs(spark: SparkSession) -> None:
    """Importing it takes more than a second of processor time, and would for each worker."""

    def modules(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"module": list(sys.modules)})

    rows = spark.range(1).mapInArrow(modules, "module string").collect()
    assert {row.module for row in rows} >= {"pandas", contributions.__module__, ShardFold.__module__}


def opened(plan: str, partition: int = 0) -> tuple[AnyEvent, ...]:
    """A plan with one reassignment."""
    queued = ReassignmentCreated(
        cluster="local", topic="t", partition=partition, topic_id="id", plan=plan, original=(1, 2), target=(1, 3)
    )
    return PlanOpened(cluster="local", plan=plan, by="ann", reason="drain"), queued


class SparkJob:
    """What a sink would hold after each part of the log, computed in Spark."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.carry: dict[str, bytes] = {}
        self.rows: dict[str, dict[Any, Any]] = {name: {} for name in TABLES}

    def take(self, records: Sequence[Stored]) -> "SparkJob":
        found = contributions(frame(self.session, records), NAMES.progress, self.carry).collect()
        part = part_of(Contribution(row[0], bytes(row[1])) for row in found)
        for name, of_table in part.rows.items():
            merge(TABLES[name], self.rows[name], of_table)
        self.carry |= part.carried
        assert part.newest_ms == max(record.appended_ms for record in records)
        return self

    def table(self, name: str) -> list[dict[str, Any]]:
        return list(self.rows[name].values())


def two_shards() -> list[Stored]:
    """Two simulated shards; a log holds each cluster in one of them."""
    log = golden.read(golden.FOLDER / "seed-81.msgpack.zlib")
    return [one for number, kept in enumerate(log.shards) for one in shard(*kept.records, partition=number)]


def test_simulated_logs_make_every_table_of_the_plain_fold_whole_and_in_parts(spark: SparkSession) -> None:
    records = [*two_shards(), *samples_of(5), *shard(b"\xc1", b"", partition=4)]
    wanted = Oracle().read(records, NAMES.progress).tables()
    assert all(wanted[name] for name in ("refusals", "requests", "takeovers", "undecodable", "ended", "brokers"))
    whole = SparkJob(spark).take(records)
    assert difference(wanted, tables_of(whole.rows)) == []
    parts = SparkJob(spark)
    for first in range(4):
        # Each partition in its order, and no more: the two topics are read side by side.
        of_part = [record for record in records if _quarter(record, records) == first]
        parts.take(of_part)
    assert difference(wanted, tables_of(parts.rows)) == []


def _quarter(record: Stored, records: Sequence[Stored]) -> int:
    beside = [one for one in records if (one.topic, one.partition) == (record.topic, record.partition)]
    return 4 * beside.index(record) // len(beside)


def test_takeovers_and_what_they_fenced_are_counted_and_the_fenced_shows_nowhere_else(spark: SparkSession) -> None:
    kept = batch(1, *opened("kept"), token=OLD)
    log = shard(
        acquire(1, OLD),
        kept,
        acquire(2, NEW),
        batch(2, *opened("fenced"), token=OLD),
        acquire(2, OLD),
        batch(2, *opened("also-kept", partition=1), token=NEW, epoch=2, after=kept),
        batch(3, *opened("fenced-too"), token=OLD, epoch=2),
    )
    job = SparkJob(spark).take(log)
    (counted,) = job.table("takeovers")
    del counted["window_ms"]
    assert counted == {
        "shard": 0,
        "takeovers": 2,
        "lost_acquires": 1,
        "batches": 2,
        "fenced_batches": 2,
        "events": 4,
        "fenced_events": 4,
        "void_records": 0,
    }
    fold, _ = unpacked(job.carry["shard/0"], CAPABILITIES)
    assert (fold.epoch, fold.token) == (2, NEW)
    assert {row["plan"] for row in job.table("plans")} == {"kept", "also-kept"}
    assert {row["plan"] for row in job.table("reassignments")} == {"kept", "also-kept"}
    assert sum(row["accepted"] for row in job.table("plans")) == 2


def test_records_of_a_shard_that_come_in_two_tasks_are_refused() -> None:
    """Each of the two would carry on another state."""
    one = Contribution(CARRY, msgpack.encode([("shard/0", b"")]))
    with pytest.raises(AssertionError, match="shard/0 came in several tasks"):
        part_of([one, one])
