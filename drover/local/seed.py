"""A topic with data on a local cluster, to have something to move; its replica lists are always the same."""

import asyncio
import os
from collections.abc import Callable

from drover.cluster.topics import TOPIC_ALREADY_EXISTS, TopicSpec, create_topics
from drover.errors import ConfigurationError
from drover.journal.connection import LogConnection
from drover.journal.producer import LogProducer
from drover.journal.topics import nothing_told

RECORD_BYTES = 256 * 1024
MEGABYTE = 1024 * 1024


def assignment(partition: int, brokers: int, replicas: int) -> tuple[int, ...]:
    """Return the replicas of a partition: 1, 2, 3 for partition 0, 2, 3, 4 for partition 1, and so on in a ring."""
    return tuple(1 + (partition + place) % brokers for place in range(replicas))


async def seed(
    connection: LogConnection,
    topic: str,
    *,
    partitions: int,
    replicas: int,
    megabytes: int,
    tell: Callable[[str], None] = nothing_told,
) -> None:
    """Create a topic and write `megabytes` of random data to each partition; `tell` hears how far it is.

    Raises `ConfigurationError` if the topic exists or the replicas do not fit on the brokers.
    """
    brokers = len(connection.bootstrap.split(","))
    if not 1 <= replicas <= brokers:
        raise ConfigurationError(f"{replicas} replicas do not fit on {brokers} brokers: use --replicas 1 to {brokers}")
    layout = {number: assignment(number, brokers, replicas) for number in range(partitions)}
    spec = TopicSpec(name=topic, partitions=partitions, replication_factor=replicas, assignments=layout)
    answer = (await create_topics(connection.bootstrap, [spec], connection.security))[topic]
    if answer.code == TOPIC_ALREADY_EXISTS:
        raise ConfigurationError(f"topic {topic} exists already: choose another name")
    if not answer.accepted:
        raise ConfigurationError(f"topic {topic} cannot be created: Kafka error {answer.code} ({answer.message})")
    tell(f"Writing {megabytes} MB to each of {partitions} partitions ...")
    written = 0
    producer = LogProducer(connection, "drover-seed")
    await producer.start()
    try:
        for done in asyncio.as_completed([_fill(producer, topic, number, megabytes) for number in layout]):
            number = await done
            written += 1
            tell(f"{topic}:{number} is filled, {written} of {partitions} ...")
    finally:
        await producer.close()


async def _fill(producer: LogProducer, topic: str, partition: int, megabytes: int) -> int:
    """Fill a partition, and return its number."""
    record = os.urandom(RECORD_BYTES)
    for _ in range(megabytes * MEGABYTE // RECORD_BYTES):
        await producer.send(topic, record, partition=partition)
    return partition
