"""From a command's record to its durable outcome: latency at a steady rate, and throughput from a backlog.

One worker, six shards, twelve configured clusters (two per shard, all of them the same Kafka), and a mixture of
blacklist, broker-failed, broker-returned, freeze and unfreeze commands, every twentieth a client's retry of the one
before. Latency: the time at which an independent consumer received the log record with the outcome, minus the
LogAppendTime of the command's own record, for 15 s after 8 s of the same that warm the brokers up. Throughput: a
backlog over all shards is written before the worker is started; commands are counted from the LogAppendTime of the
first record with outcomes to that of the last.
"""

import asyncio
import itertools
import time
from collections.abc import Sequence
from random import Random
from typing import Any

from aiokafka import AIOKafkaProducer

from bench.results import AtLeast, AtMost, Benchmark, Row, check, percentile
from bench.rig import Rig, drover_on, fresh_cluster
from bench.tail import Tail
from drover.client.commands import topic_of
from drover.events.codec import encode_command
from drover.events.commands import AnyCommand, Blacklist, BrokerFailed, BrokerReturned, Freeze, Unfreeze
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.journal.connection import LogConnection
from drover.local import LocalCluster

RATE_PER_S = 50
# A fresh JVM compiles while it serves: the first seconds say nothing about the rest.
WARM_UP_S = 8
LATENCY_S = 15
BACKLOG = 20_000
CLUSTERS_PER_SHARD = 2
REPEATED_EVERY = 20
CHUNK = 1000


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Measure latency first, on a cluster that has done nothing else."""
    async with fresh_cluster() as cluster:
        latency = await _latency(cluster, 3 if quick else LATENCY_S)
        return (latency, await _throughput(cluster, 4_000 if quick else BACKLOG))


async def _latency(cluster: LocalCluster, seconds: int) -> Row:
    clusters = cluster_names()
    async with drover_on(cluster, "steady", names=clusters) as (rig, tail):
        await _start(rig, tail)
        warm_up = mixture(WARM_UP_S * RATE_PER_S, clusters, "warm-up")
        await _at_rate(rig.connection, warm_up)
        written = await _at_rate(rig.connection, mixture(seconds * RATE_PER_S, clusters, "steady"))
        await tail.until(lambda: tail.outcomes == len(warm_up) + len(written), "every command to be decided")
        received_ms = {
            (outcome.topic, seen.valid.shard, outcome.offset): seen.received_ms
            for seen in tail.seen
            for outcome in seen.valid.batch.outcomes
        }
    delays_ms = [received_ms[record.topic, record.partition, record.offset] - record.timestamp for record in written]
    name = f"command record to durable outcome at {RATE_PER_S} commands/s"
    return Row(f"{name}, p99", percentile(delays_ms, 99), "ms", goal=AtMost(250))


async def _throughput(cluster: LocalCluster, count: int) -> Row:
    clusters = cluster_names()
    async with drover_on(cluster, "backlog", names=clusters) as (rig, tail):
        commands = mixture(count, clusters, "backlog")
        async with _producer(rig.connection) as producer:
            for first in range(0, count, CHUNK):
                sent = [await _send(producer, rig.connection, each) for each in commands[first : first + CHUNK]]
                await asyncio.gather(*sent)
        await _start(rig, tail)
        await tail.until(lambda: tail.outcomes == count, "the backlog to be decided", timeout_s=120)
        batches = sorted((seen for seen in tail.seen if seen.valid.batch.outcomes), key=lambda seen: seen.written_ms)
    shards = {seen.valid.shard for seen in batches}
    check(len(shards) == DEFAULT_SHARDS, f"only the shards {sorted(shards)} had commands")
    # The commands of the first record were decided before the clock started.
    decided = count - len(batches[0].valid.batch.outcomes)
    seconds = max(1, batches[-1].written_ms - batches[0].written_ms) / 1000
    name = f"commands decided by one worker from a backlog of {count:,}"
    return Row(name, decided / seconds, "commands/s", goal=AtLeast(2000))


async def _start(rig: Rig, tail: Tail) -> None:
    await rig.start_worker("worker")
    await tail.until(lambda: tail.owners == {"worker"}, "the worker owns every shard")


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
    """Make commands of every kind that needs no partition."""
    chance = Random(7)
    commands: list[AnyCommand] = []
    for number in range(count):
        if commands and number % REPEATED_EVERY == 0:
            commands.append(commands[-1])
        else:
            commands.append(_command(f"{prefix}-{number}", chance.choice(clusters), chance, number))
    return commands


def _command(identity: str, cluster: str, chance: Random, number: int) -> AnyCommand:
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


def _producer(connection: LogConnection) -> Any:
    return AIOKafkaProducer(**connection.client_options, enable_idempotence=True)


async def _at_rate(connection: LogConnection, commands: Sequence[AnyCommand]) -> list[Any]:
    """Send at an even rate, however long the answers take, and return where each command stands."""
    acknowledged = []
    async with _producer(connection) as producer:
        began_s = time.monotonic()
        for number, command in enumerate(commands):
            await asyncio.sleep(max(0.0, began_s + number / RATE_PER_S - time.monotonic()))
            acknowledged.append(await _send(producer, connection, command))
        return list(await asyncio.gather(*acknowledged))


async def _send(producer: AIOKafkaProducer, connection: LogConnection, command: AnyCommand) -> "asyncio.Future[Any]":
    sent: asyncio.Future[Any] = await producer.send(
        topic_of(command, connection.topics),
        encode_command(command),
        key=command.cluster.encode(),
        partition=shard_of(command.cluster, DEFAULT_SHARDS),
    )
    return sent


BENCHMARK = Benchmark("commands", run)
