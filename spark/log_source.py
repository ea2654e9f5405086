"""The log's topics as Spark frames, as a stream or as a batch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from drover.events.topics import TopicNames
from drover.settings.java_options import JavaNeeds, java_client_options, java_needs
from drover.settings.settings import LogSettings

# Spark asks for a partition's end right after reading it, on a connection on which Kafka's consumer already waits for
# more records: by default 500 ms, once for each partition of every batch.
FETCH_WAIT_MS = "10"


@dataclass(frozen=True, slots=True)
class LogSource:
    """The log's Kafka as Spark reaches it.

    `client` holds further options of Spark's Kafka source, those of the Java client with `kafka.` in front; passwords
    may be among them. `java` is what they need of Spark's Java.
    """

    bootstrap: str
    topics: TopicNames = field(default_factory=TopicNames)
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    java: JavaNeeds = field(default_factory=JavaNeeds)

    @classmethod
    def of(cls, log: LogSettings) -> Self:
        """Return the log of these settings. Raises `ConfigurationError` as `java_client_options` does."""
        options = java_client_options(log.security, "log.security")
        client = {f"kafka.{name}": value for name, value in options.items()}
        return cls(log.bootstrap, log.topics, client, java_needs(log.security))

    def options(self, topics: tuple[str, ...]) -> dict[str, str]:
        """Return the options of Spark's Kafka source for these topics: all of them, from the first record on."""
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            "subscribe": ",".join(topics),
            "startingOffsets": "earliest",
            "failOnDataLoss": "true",
            "kafka.fetch.max.wait.ms": FETCH_WAIT_MS,
            **self.client,
        }


def read_batch(
    session: SparkSession,
    source: LogSource,
    topics: tuple[str, ...],
    starts: Mapping[str, Mapping[int, int]] | None = None,
    ends: Mapping[str, Mapping[int, int]] | None = None,
) -> DataFrame:
    """Read topics as they are now; `starts` and `ends` (not included) are offsets by topic and partition.

    The frame has the columns of Spark's Kafka source, and reads Kafka whenever it is used.
    """
    options = source.options(topics)
    if starts is not None:
        options["startingOffsets"] = _offsets(starts)
    if ends is not None:
        options["endingOffsets"] = _offsets(ends)
    return session.read.format("kafka").options(**options).load()


def read_stream(
    session: SparkSession, source: LogSource, topics: tuple[str, ...], max_records_per_batch: int
) -> DataFrame:
    """Read topics from their first record, or from where the query's checkpoint stands, for ever."""
    options = source.options(topics) | {"maxOffsetsPerTrigger": str(max_records_per_batch)}
    return session.readStream.format("kafka").options(**options).load()


def _offsets(by_topic: Mapping[str, Mapping[int, int]]) -> str:
    return json.dumps(
        {
            topic: {str(partition): offset for partition, offset in offsets.items()}
            for topic, offsets in by_topic.items()
        }
    )
