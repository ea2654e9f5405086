"""Only what counts is counted, on frames in Spark itself."""

from pyspark.sql import SparkSession

from events.clusters import ClusterFrozen
from events.codec import encode_progress
from spark.decode import flat_rows
from spark.judging import judge
from spark.tables.counting import takeovers, undecodable
from spark.validity import Ownership
from tests.events.samples import PROGRESS
from tests.spark.kafka_rows import BEGAN_MS, NAMES, acquire, batch, frame, shard

OLD, NEW = b"o" * 16, b"n" * 16
FROZEN = ClusterFrozen(cluster="local", by="ann", reason="incident")


def test_takeovers_and_what_they_fenced_are_counted_and_the_fenced_is_not_valid(spark: SparkSession) -> None:
    log = shard(
        acquire(1, OLD),
        batch(1, FROZEN, FROZEN, token=OLD),
        acquire(2, NEW),
        batch(2, FROZEN, token=OLD),
        acquire(2, OLD),
        batch(2, FROZEN, token=NEW, epoch=2),
        batch(3, FROZEN, token=NEW, epoch=2),
    )
    rows = flat_rows(frame(spark, log), NAMES.progress).persist()
    judged, rules = judge(rows)
    (counted,) = [row.asDict() for row in takeovers(judged).collect()]
    assert counted == {
        "shard": 0,
        "window_ms": BEGAN_MS // 60_000 * 60_000,
        "takeovers": 2,
        "lost_acquires": 1,
        "batches": 3,
        "fenced_batches": 1,
        "events": 4,
        "fenced_events": 1,
    }
    assert rules.ownerships == {0: Ownership(2, NEW)}
    rows.unpersist()


def test_what_cannot_be_read_is_counted_and_stops_nothing(spark: SparkSession) -> None:
    log = [
        *shard(acquire(1, OLD), b"\xc1", None, batch(1, FROZEN, token=OLD)),
        *shard(b"", encode_progress(PROGRESS["progress"]), topic=NAMES.progress),
    ]
    rows = flat_rows(frame(spark, log), NAMES.progress).persist()
    judged, _ = judge(rows)
    found = {(row["source"], row["shard"]): row for row in undecodable(judged).collect()}
    assert {place: (row["records"], row["last_offset"]) for place, row in found.items()} == {
        ("log", 0): (2, 2),
        ("samples", 0): (1, 0),
    }
    assert judged.where("entry = 'event' and counts").count() == 1
    assert judged.where("entry = 'sample' and counts").count() == 1
    rows.unpersist()
