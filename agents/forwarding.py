"""Forward commands from a wrong partition to that of their cluster."""

import asyncio
from collections.abc import Sequence

from drover.events.codec import Malformed
from drover.events.topics import TopicNames
from drover.journal.port import Journal
from drover.shard.messages import FORWARDED_HEADER, Arrival


async def forward(journal: Journal, topics: TopicNames, shard: int, commands: Sequence[tuple[Arrival, int]]) -> None:
    """Produce each command to its own shard, started in order, and return once all are acknowledged.

    They are sent concurrently, because a client with another partitioner than Java's misplaces most of its commands. A
    header holds a command's original place as `shard:offset`; bytes and other headers stay as the client sent them. A
    forwarded command is never forwarded again, so that workers that disagree cannot send it back and forth.
    """
    await asyncio.gather(*(_send_on(journal, topics, shard, arrival, target) for arrival, target in commands))


async def _send_on(journal: Journal, topics: TopicNames, shard: int, arrival: Arrival, target: int) -> None:
    assert not arrival.forwarded, "a forwarded command in the wrong place is a dead letter"
    assert not isinstance(arrival.command, Malformed), "what names no cluster has no right place"
    await journal.send(
        topics.commands[arrival.topic_index],
        arrival.payload,
        partition=target,
        key=arrival.command.cluster.encode(),
        headers=(*arrival.headers, (FORWARDED_HEADER, f"{shard}:{arrival.offset}".encode())),
    )
