"""Worker processes to be killed, the commands they are fed, and plain readers and writers of Drover's topics."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import msgpack
import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition

from drover.events.codec import encode_command
from drover.events.commands import TYPES_BY_TOPIC, AnyCommand, Freeze
from drover.events.topics import TopicNames, shard_of
from drover.journal import topics
from drover.journal.connection import LogConnection
from drover.testing.commands import DroverProcess, PythonCommands
from tests.integration.support import DEADLINE_S
from tests.integration.support import wait_for as wait_until_holds

SHARDS = 6
SESSION_TIMEOUT_S = 3.0
# What no client would send.
NO_COMMANDS = (b"\xc1", b'{"id": 7', b"")
WORKER = ("-m", "tests.kill.worker_main")


def cluster_names(per_shard: int = 2) -> tuple[str, ...]:
    """Names of clusters that live in every shard, as many in each."""
    by_shard: dict[int, list[str]] = {shard: [] for shard in range(SHARDS)}
    number = 0
    while any(len(names) < per_shard for names in by_shard.values()):
        names = by_shard[shard_of(f"c{number}", SHARDS)]
        if len(names) < per_shard:
            names.append(f"c{number}")
        number += 1
    return tuple(name for names in by_shard.values() for name in names)


async def wait_for(condition: Callable[[], object], what: str, timeout_s: float = DEADLINE_S) -> float:
    """Wait until a condition holds and return the seconds it took; fails with `what` at the deadline."""

    async def holds() -> bool:
        return bool(condition())

    return await wait_until_holds(holds, what, timeout_s)


@dataclass
class Workers:
    """Worker processes of one Drover, each with a log file of its own."""

    connection: LogConnection
    directory: Path
    clusters: tuple[str, ...]
    processes: dict[str, DroverProcess] = field(default_factory=dict)

    def start(self, name: str, instance_id: str | None = None) -> None:
        names = (self.connection.bootstrap, self.connection.topics.prefix, name, str(SESSION_TIMEOUT_S))
        arguments = (*names, ",".join(self.clusters), *([instance_id] if instance_id else []))
        self.processes[name] = DroverProcess(arguments, {}, self.directory / f"{name}.log", PythonCommands())
        self.processes[name].start(WORKER)

    def said(self, name: str, words: str) -> int:
        """How often a worker has logged these words."""
        return self.processes[name].log_text().count(words)

    def logs(self) -> list[str]:
        """Return the log of each worker, of all processes that have had its name."""
        return [process.log_text() for process in self.processes.values()]

    def send(self, name: str, number: signal.Signals) -> None:
        self.processes[name].send_signal(number)

    async def ends_cleanly(self, name: str) -> None:
        """Fail with the end of the worker's log when it exits with anything but 0."""
        code = await self.processes[name].stop()
        assert code == 0, f"{name} ended with {code}:\n{self.processes[name].log_text()[-4000:]}"

    async def end_all(self) -> None:
        for process in self.processes.values():
            await process.kill()


@dataclass
class Feeder:
    """Sends commands as any client would: msgpack and JSON, some ids twice, and counts what was acknowledged."""

    producer: AIOKafkaProducer
    names: TopicNames
    clusters: tuple[str, ...]
    random: Random
    sent: list[tuple[str, int, int, str]] = field(default_factory=list)
    _commands: list[AnyCommand] = field(default_factory=list)

    def command(self) -> AnyCommand:
        if self._commands and self.random.random() < 0.03:
            return self.random.choice(self._commands)
        number = len(self._commands)
        content: dict[str, object] = {
            "id": f"k{number}",
            "cluster": self.random.choice(self.clusters),
            "by": "kill-test",
            "reason": f"command {number}",
        }
        match self.random.randrange(5):
            case 0:
                content["type"] = self.random.choice(("freeze", "unfreeze"))
            case 1:
                content |= {"type": "blacklist", "brokers": sorted(self.random.sample(range(9), 3))}
            case 2 | 3:
                content["type"] = self.random.choice(("broker-failed", "broker-returned"))
                content |= {"broker": self.random.randrange(9), "at_ms": 1_000_000 + number}
            case _:
                content |= {"type": "cancel", "mode": "rollback", "plan": "nowhere"}
        made: AnyCommand = msgspec.convert(content, AnyCommand)
        self._commands.append(made)
        return made

    @staticmethod
    def freeze(identity: str, cluster: str) -> Freeze:
        return Freeze(id=identity, cluster=cluster, by="kill-test", reason="to be decided")

    async def send(self, command: AnyCommand, *, partition: int | None = None) -> tuple[int, int]:
        """Produce a command, to its own shard unless told otherwise; returns where it stands."""
        topic = self.names.commands[_topic_index(command)]
        home = shard_of(command.cluster, SHARDS)
        value = encode_command(command, as_json=self.random.random() < 0.5)
        return await self.send_raw(topic, value, home if partition is None else partition, command.id)

    async def send_raw(self, topic: str, value: bytes, partition: int, identity: str = "") -> tuple[int, int]:
        answer = await self.producer.send_and_wait(topic, value, partition=partition)
        self.sent.append((topic, answer.partition, answer.offset, identity))
        return answer.partition, answer.offset


def _topic_index(command: AnyCommand) -> int:
    return next(index for index, types in enumerate(TYPES_BY_TOPIC) if isinstance(command, types))


@dataclass
class Drill:
    """Everything a kill test has at hand."""

    connection: LogConnection
    workers: Workers
    feeder: Feeder
    producer: AIOKafkaProducer

    @property
    def names(self) -> TopicNames:
        return self.connection.topics

    async def read(self, *names: str) -> dict[tuple[str, int], list[ConsumerRecord]]:
        return await read_topics(self.connection, names)

    async def batches(self) -> list[tuple[int, dict[str, Any]]]:
        """Every batch on the log with its shard, valid or not."""
        stored = await self.read(self.names.events)
        decoded = [(shard, msgpack.unpackb(entry.value)) for (_, shard), entries in stored.items() for entry in entries]
        return [(shard, record) for shard, record in decoded if record["kind"] == "batch"]

    async def until_decided(self, count: int) -> None:
        """Wait until that many outcomes are in the log."""
        await self._until(lambda batches: sum(len(batch.get("outcomes", ())) for _, batch in batches) >= count)

    async def until_passed(self, topic: str, shard: int, offset: int) -> None:
        """Wait until a cursor stands at or behind an offset."""
        index = self.names.commands.index(topic)
        await self._until(
            lambda batches: any(
                number == shard and batch["cursors"][index]["next_offset"] >= offset for number, batch in batches
            )
        )

    async def _until(self, holds: Callable[[list[tuple[int, dict[str, Any]]]], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                if holds(await self.batches()):
                    return
                await asyncio.sleep(0.2)


@asynccontextmanager
async def drill(bootstrap: str, prefix: str, directory: Path, seed: int = 1) -> AsyncIterator[Drill]:
    """Topics of its own, a producer, and workers that are all ended in the end, come what may."""
    connection = LogConnection(bootstrap, TopicNames(prefix))
    await topics.init(connection, SHARDS)
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, acks="all", max_request_size=2**22
    )
    await producer.start()
    clusters = cluster_names()
    workers = Workers(connection, directory, clusters)
    try:
        yield Drill(connection, workers, Feeder(producer, connection.topics, clusters, Random(seed)), producer)
    finally:
        await workers.end_all()
        await producer.stop()


async def read_topics(connection: LogConnection, names: Sequence[str]) -> dict[tuple[str, int], list[ConsumerRecord]]:
    """Read topics from first to last record, by a consumer without a group; committed records only."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=connection.bootstrap, enable_auto_commit=False, isolation_level="read_committed"
    )
    try:
        await consumer.start()
        partitions: list[TopicPartition] = []
        for name in names:
            await consumer._client._wait_on_metadata(name)
            partitions += [TopicPartition(name, number) for number in consumer.partitions_for_topic(name) or ()]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        found: dict[tuple[str, int], list[ConsumerRecord]] = {
            (where.topic, where.partition): [] for where in partitions
        }
        while any([await consumer.position(where) < ends[where] for where in partitions]):
            for where, records in (await consumer.getmany(timeout_ms=300)).items():
                found[where.topic, where.partition] += records
        return found
    finally:
        await consumer.stop()
