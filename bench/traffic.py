"""Commands as many clients would send them: a mixture over clusters of every shard, written by a plain producer."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from aiokafka import AIOKafkaProducer

from drover.client.client import topic_of
from drover.events.codec import encode_command
from drover.events.commands import AnyCommand, Blacklist, BrokerFailed, BrokerReturned, Freeze, Unfreeze
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.journal.connection import LogConnection

CLUSTERS_PER_SHARD = 2
REPEATED_EVERY = 20
BACKLOG_CHUNK = 1000


def cluster_names() -> tuple[str, ...]:
    """Name as many clusters for every shard."""
    free = dict.fromkeys(range(DEFAULT_SHARDS), CLUSTERS_PER_SHARD)
    names: list[str] = []
    for number in itertools.count(1):
        shard = shard_of(f"site-{number}", DEFAULT_SHARDS)
        if free[shard]:
            free[shard] -= 1
            names.append(f"site-{number}")
        if not any(free.values()):
            break
    return tuple(names)


def mixture(count: int, clusters: Sequence[str], prefix: str) -> list[AnyCommand]:
    """Make commands of every kind that needs no partition; every twentieth is a client's retry of the one before."""
    chance = Random(7)
    commands: list[AnyCommand] = []
    for number in range(count):
        if commands and number % REPEATED_EVERY == 0:
            commands.append(commands[-1])
        else:
            commands.append(_one(f"{prefix}-{number}", chance.choice(clusters), chance, number))
    return commands


def _one(identity: str, cluster: str, chance: Random, number: int) -> AnyCommand:
    common: dict[str, Any] = {"id": identity, "cluster": cluster, "by": "bench@example", "reason": "benchmark"}
    broker = chance.randrange(1, 100)
    match chance.randrange(5):
        case 0:
            # Brokers that do not exist: a list of brokers that do would move the leaders of the log itself.
            return Blacklist(brokers=(broker + 1000, broker + 1001), **common)
        case 1:
            return BrokerFailed(broker=broker, at_ms=number, **common)
        case 2:
            return BrokerReturned(broker=broker, at_ms=number, **common)
        case 3:
            return Freeze(**common)
        case _:
            return Unfreeze(**common)


@dataclass(frozen=True, slots=True)
class Written:
    """Where a command stands and the broker's LogAppendTime, ms since the epoch."""

    topic: str
    shard: int
    offset: int
    timestamp_ms: int


class Sender:
    """A producer of commands, without linger and acknowledged by all in-sync replicas."""

    def __init__(self, connection: LogConnection) -> None:
        self._topics = connection.topics
        self._producer = AIOKafkaProducer(**connection.client_options, enable_idempotence=True)

    async def start(self) -> None:
        await self._producer.start()

    async def close(self) -> None:
        await self._producer.stop()

    async def at_rate(self, commands: Sequence[AnyCommand], per_second: float) -> list[Written]:
        """Send at an even rate, whatever the answers take, and return where everything stands."""
        acknowledged = []
        began = time.monotonic()
        for number, command in enumerate(commands):
            await asyncio.sleep(max(0.0, began + number / per_second - time.monotonic()))
            acknowledged.append(await self._send(command))
        return [_written(one) for one in await asyncio.gather(*acknowledged)]

    async def backlog(self, commands: Sequence[AnyCommand]) -> None:
        """Send as fast as they are taken."""
        for first in range(0, len(commands), BACKLOG_CHUNK):
            chunk = [await self._send(command) for command in commands[first : first + BACKLOG_CHUNK]]
            await asyncio.gather(*chunk)

    async def _send(self, command: AnyCommand) -> "asyncio.Future[Any]":
        sent: asyncio.Future[Any] = await self._producer.send(
            topic_of(command, self._topics),
            encode_command(command),
            key=command.cluster.encode(),
            partition=shard_of(command.cluster, DEFAULT_SHARDS),
        )
        return sent


def _written(metadata: Any) -> Written:
    return Written(metadata.topic, metadata.partition, metadata.offset, metadata.timestamp)
