"""A hostile writer: steals shards by the rules, and writes batches under tokens that are no longer current."""

import asyncio
import itertools
from dataclasses import dataclass
from random import Random

import msgpack
from aiokafka import AIOKafkaProducer

from drover.events.clusters import ClusterFrozen
from drover.events.codec import encode_record
from drover.events.records import SCHEMA_VERSION, Acquire, Batch, Cursor, Outcome
from drover.journal.connection import LogConnection
from tests.kill.harness import SHARDS, read_topics

EVIL = "evil"


@dataclass
class Claim:
    """What the hostile writer knows of a shard after reading it."""

    epoch: int
    old_token: bytes
    sequence: int
    cursors: tuple[Cursor, ...]


async def look(connection: LogConnection, shard: int) -> Claim:
    stored = (await read_topics(connection, [connection.topics.events]))[connection.topics.events, shard]
    claim, token = Claim(0, b"", 0, ()), b""
    for entry in stored:
        record = msgpack.unpackb(entry.value)
        if record["kind"] == "acquire" and record["epoch"] == claim.epoch + 1:
            claim.epoch, claim.old_token, token = record["epoch"], token, record["token"]
        elif record["kind"] == "batch" and record["token"] == token:
            claim.sequence = record["sequence"]
            claim.cursors = tuple(Cursor(cursor["topic_id"], cursor["next_offset"]) for cursor in record["cursors"])
    return claim


def acquire(epoch: int, group: str, generation: int, number: int) -> bytes:
    return encode_record(
        Acquire(
            schema=SCHEMA_VERSION,
            epoch=epoch,
            token=b"evil-token-%05d" % number,
            owner=EVIL,
            group=group,
            generation=generation,
        )
    )


def fenced_batch(connection: LogConnection, claim: Claim, cluster: str) -> bytes:
    """A batch that would be right in everything but its token: it decides a command and freezes a cluster."""
    outcome = Outcome(
        id=EVIL,
        cluster=cluster,
        type="freeze",
        by=EVIL,
        reason=EVIL,
        topic=connection.topics.commands[1],
        offset=claim.cursors[1].next_offset if claim.cursors else 0,
        verdict="accepted",
        digest=b"x" * 16,
    )
    cursors = tuple(Cursor(cursor.topic_id, cursor.next_offset + 1) for cursor in claim.cursors)
    return encode_record(
        Batch(
            schema=SCHEMA_VERSION,
            token=claim.old_token,
            epoch=claim.epoch,
            sequence=claim.sequence + 1,
            at_ms=2**50,
            cursors=cursors,
            previous_hash=b"",
            outcomes=(outcome,),
            events=(ClusterFrozen(cluster=cluster, by=EVIL, reason=EVIL),),
        )
    )


async def steal(
    connection: LogConnection, producer: AIOKafkaProducer, clusters: tuple[str, ...], random: Random, number: int
) -> None:
    """Steal one shard, or try to under a stale epoch, and forge a batch under the token before."""
    shard = random.randrange(SHARDS)
    claim = await look(connection, shard)
    epoch = claim.epoch + random.choice((1, 1, 1, 0, -1))
    await producer.send_and_wait(connection.topics.events, acquire(epoch, "other", 0, number), partition=shard)
    if claim.old_token:
        batch = fenced_batch(connection, claim, clusters[0])
        await producer.send_and_wait(connection.topics.events, batch, partition=shard)


async def harass(connection: LogConnection, producer: AIOKafkaProducer, clusters: tuple[str, ...], seed: int) -> None:
    """Steal and forge about once a second until cancelled."""
    random = Random(seed)
    for number in itertools.count(1):
        await asyncio.sleep(random.uniform(0.5, 1.5))
        await steal(connection, producer, clusters, random, number)
