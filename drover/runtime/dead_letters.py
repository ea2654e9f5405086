"""Records that are not commands, kept for people; with Connect's header names, so that existing tools show them."""

import asyncio
from collections.abc import Sequence

import structlog

from drover.journal.port import Headers, Journal
from drover.shard.messages import Arrival
from events.codec import Malformed
from events.topics import TopicNames

MAX_PAYLOAD_BYTES = 64 * 1024
_log = structlog.get_logger(__name__)


async def bury(journal: Journal, topics: TopicNames, shard: int, letters: Sequence[tuple[Arrival, str]]) -> None:
    """Produce each dead letter, payload cut to 64 KiB, and return once all are acknowledged; one log line each."""
    await asyncio.gather(*(_bury_one(journal, topics, shard, arrival, reason) for arrival, reason in letters))


async def _bury_one(journal: Journal, topics: TopicNames, shard: int, arrival: Arrival, reason: str) -> None:
    topic = topics.commands[arrival.topic_index]
    _log.warning(
        "a record is not a command and went to the dead letters",
        topic=topic,
        partition=shard,
        offset=arrival.offset,
        id=arrival.command.id,
        cluster=arrival.command.cluster,
        reason=reason,
    )
    await journal.send(
        topics.dead_letters,
        arrival.payload[:MAX_PAYLOAD_BYTES],
        partition=0,
        headers=headers(topic, shard, arrival, reason),
    )


def headers(topic: str, partition: int, arrival: Arrival, reason: str) -> Headers:
    """Say where a dead letter came from, and why it is one."""
    malformed = isinstance(arrival.command, Malformed)
    return (
        ("__connect.errors.topic", topic.encode()),
        ("__connect.errors.partition", str(partition).encode()),
        ("__connect.errors.offset", str(arrival.offset).encode()),
        ("__connect.errors.connector.name", b"drover"),
        ("__connect.errors.task.id", str(partition).encode()),
        ("__connect.errors.stage", b"VALUE_CONVERTER" if malformed else b"TASK_PUT"),
        ("__connect.errors.class.name", type(arrival.command).__qualname__.encode()),
        ("__connect.errors.exception.class.name", b"Malformed" if malformed else b"Misplaced"),
        ("__connect.errors.exception.message", reason.encode()),
    )
