"""Frames as Spark's Kafka source gives them, made by hand."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from drover.events.codec import chain_hash, encode_record
from drover.events.records import Acquire, AnyEvent, Batch, Outcome
from drover.events.topics import TopicNames

NAMES = TopicNames()
COLUMNS = "topic string, partition int, offset bigint, timestamp timestamp, value binary"
BEGAN_MS = 1_790_000_000_000


class Stored(NamedTuple):
    """One record as it stands in Kafka."""

    topic: str
    partition: int
    offset: int
    appended_ms: int
    value: bytes | None


def frame(session: SparkSession, records: Iterable[Stored]) -> DataFrame:
    rows = [
        (one.topic, one.partition, one.offset, datetime.fromtimestamp(one.appended_ms / 1000, UTC), one.value)
        for one in records
    ]
    place = ("topic", "partition")
    cores = session.sparkContext.defaultParallelism
    return session.createDataFrame(rows, COLUMNS).repartition(cores, *place).sortWithinPartitions(*place, "offset")


def acquire(epoch: int, token: bytes, resumes_after: int | None = None) -> bytes:
    return encode_record(
        Acquire(schema=1, epoch=epoch, token=token, owner="w", group="g", generation=epoch, resumes_after=resumes_after)
    )


def batch(
    sequence: int,
    *events: AnyEvent,
    token: bytes,
    epoch: int = 1,
    at_ms: int = BEGAN_MS,
    outcomes: tuple[Outcome, ...] = (),
    after: bytes | None = None,
) -> bytes:
    """Make a batch that follows the one before it, by its payload."""
    return encode_record(
        Batch(
            schema=1,
            token=token,
            epoch=epoch,
            sequence=sequence,
            at_ms=at_ms,
            cursors=(),
            previous_hash=chain_hash(after) if after is not None else b"",
            outcomes=outcomes,
            events=events,
        )
    )


def shard(*payloads: bytes | None, partition: int = 0, topic: str = NAMES.events) -> list[Stored]:
    """Put payloads one after the other into one partition, a second apart."""
    return [
        Stored(topic, partition, offset, BEGAN_MS + offset * 1000, payload) for offset, payload in enumerate(payloads)
    ]
