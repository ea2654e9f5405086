"""A whole Drover to measure: a local cluster, settings, workers, topics to move, and the stock tool beside it."""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.results import check
from bench.tail import Tail
from drover.cluster.kafka import KafkaDriver
from drover.cluster.port import AlterRequest
from drover.cluster.topics import TopicSpec, create_topics
from drover.events.partitions import TopicPartition
from drover.events.topics import TopicNames
from drover.jars import class_path, ensure, find_java
from drover.journal import topics as own_topics
from drover.journal.connection import LogConnection
from drover.journal.producer import LogProducer
from drover.local import LocalCluster, local_cluster
from drover.local.layout import Layout
from drover.state.scheduling import Limits
from tests.memory import memory_directory

REPOSITORY = Path(__file__).parents[1]
MANAGED = "local"
RECORD_BYTES = 64 * 1024
POLL_S = 0.02

AT_ONCE = 500
# Until then every broker knows the lists; a plan that is made from older ones would begin there.
SETTLE_S = 3

# A follower's first fetch ignores the throttle, so it must be small.
SMALL_FETCHES = {"replica.fetch.max.bytes": RECORD_BYTES, "replica.fetch.response.max.bytes": 4 * RECORD_BYTES}
# Kafka averages a throttle over eleven seconds, so that little data comes in bursts with pauses of ten seconds between.
EVEN_COPYING = {**SMALL_FETCHES, "replication.quota.window.num": 3}

STOCK_TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
# The flags that kafka-run-class.sh gives the tool's JVM, without the time that the shell script itself takes.
STOCK_TOOL_FLAGS = (
    "-Xmx256M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)

Layouts = Mapping[TopicPartition, tuple[int, ...]]


@dataclass
class Rig:
    """One Drover with topics of its own on a cluster."""

    cluster: LocalCluster
    directory: Path
    connection: LogConnection
    driver: KafkaDriver
    workers: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    # -- processes

    def start_arguments(self) -> tuple[str, ...]:
        """Return the command line that stands for `drover`."""
        return (sys.executable, "-m", "drover")

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "NO_COLOR": "1", "DROVER_CONFIG": str(self.directory / "drover.toml")}

    async def start_worker(self, name: str) -> None:
        """Start a worker; its log is in the rig's directory."""
        with (self.directory / f"{name}.log").open("ab") as log_file:
            self.workers[name] = await asyncio.create_subprocess_exec(
                *self.start_arguments(),
                *("worker", "--name", name, "--listen", "127.0.0.1:0"),
                cwd=REPOSITORY,
                env=self.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log_file.fileno(),
                stderr=log_file.fileno(),
            )

    async def kill_worker(self, name: str) -> None:
        """Kill a worker and wait until it is gone."""
        process = self.workers.pop(name)
        if process.returncode is None:
            process.kill()
        await process.wait()

    async def drover(self, *arguments: str) -> float:
        """Run a command to its end and return when it was started, in seconds since the epoch."""
        began_s = time.time()
        await run_program((*self.start_arguments(), *arguments), self.environment)
        return began_s

    # -- topics and plans

    async def create_topic(self, topic: str, layout: Mapping[int, tuple[int, ...]]) -> None:
        """Create an empty topic with these replicas and wait until every partition has a leader."""
        spec = TopicSpec(topic, len(layout), len(layout[0]), assignments=layout)
        answer = (await create_topics(self.cluster.bootstrap, [spec]))[topic]
        check(answer.accepted, f"topic {topic}: {answer.message}")
        keys = [TopicPartition(topic, number) for number in layout]

        async def led() -> bool:
            seen = await self.driver.observe(keys)
            facts = [seen.partitions.get(key) for key in keys]
            return all(fact is not None and fact.leader is not None for fact in facts)

        await wait_until(led, f"every partition of {topic} to have a leader")

    async def fill(self, topic: str, records: Mapping[int, int]) -> None:
        """Write so many records of 64 KiB to each partition."""
        producer = LogProducer(self.connection, "filler")
        await producer.start()
        record = os.urandom(RECORD_BYTES)
        try:
            for number, count in records.items():
                await asyncio.gather(*(producer.send(topic, record, partition=number) for _ in range(count)))
        finally:
            await producer.close()

    async def until_laid_out(self, layouts: Layouts) -> None:
        """Wait until nothing moves and the cluster has these replica lists."""

        async def reached() -> bool:
            seen = await self.driver.observe(list(layouts))
            lists = {key: facts.replicas for key, facts in seen.partitions.items() if facts is not None}
            return not seen.moves and lists == layouts

        await wait_until(reached, "the cluster to have the layout", 600)

    async def bring_back(self, before: Layouts) -> None:
        """Restore these replica lists by plain calls, and let the cluster come to rest."""
        requests = [AlterRequest(key, replicas) for key, replicas in before.items()]
        for first in range(0, len(requests), AT_ONCE):
            answers = await self.driver.alter(requests[first : first + AT_ONCE])
            check(all(answer.accepted for answer in answers.values()), "the way back was refused")
        await self.until_laid_out(before)
        await asyncio.sleep(SETTLE_S)

    async def stock_tool(self, file: Path, *options: str) -> None:
        """Let the stock tool execute a plan file; returns when its process has ended."""
        arguments = ("--bootstrap-server", self.cluster.bootstrap, "--reassignment-json-file", str(file), "--execute")
        environment = {**os.environ, "CLASSPATH": class_path(ensure("kafka"))}
        output = await run_program((str(find_java()), *STOCK_TOOL_FLAGS, STOCK_TOOL, *arguments, *options), environment)
        check("Successfully started partition reassignments" in output, f"the stock tool failed: {output}")

    def write_plan(self, name: str, targets: Layouts) -> Path:
        """Write a plan file in the stock tool's format."""
        partitions = [
            {"topic": key.topic, "partition": key.partition, "replicas": list(replicas)}
            for key, replicas in targets.items()
        ]
        file = self.directory / f"{name}.json"
        file.write_text(json.dumps({"version": 1, "partitions": partitions}), encoding="utf-8")
        return file


async def wait_until(condition: Callable[[], Awaitable[bool]], event: str, timeout_s: float = 60.0) -> None:
    """Ask until a condition holds; at the deadline `BenchmarkError` names the event."""
    deadline = time.monotonic() + timeout_s
    while not await condition():
        check(time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {event}")
        await asyncio.sleep(POLL_S)


async def run_program(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run a program from the repository to its end and return all that it printed; it must succeed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=REPOSITORY,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    check(process.returncode == 0, f"{' '.join(command)} failed: {output}")
    return output


@asynccontextmanager
async def fresh_cluster(broker_settings: Mapping[str, object] | None = None) -> AsyncIterator[LocalCluster]:
    """Run a cluster of four brokers in a temporary directory; `broker_settings` are added to the brokers' files."""
    with tempfile.TemporaryDirectory(prefix="drover-bench-", dir=memory_directory()) as directory:
        async with local_cluster(Path(directory), brokers=4) as cluster:
            if broker_settings:
                await _set(cluster, broker_settings)
            yield cluster


async def _set(cluster: LocalCluster, settings: Mapping[str, object]) -> None:
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    for broker in cluster.spec.brokers:
        with Layout(cluster.directory).settings_file(str(broker.id)).open("a", encoding="utf-8") as file:
            file.write(lines)
        await cluster.kill(broker.id)
    for broker in cluster.spec.brokers:
        await cluster.start(broker.id)


@asynccontextmanager
async def drover_on(
    cluster: LocalCluster,
    prefix: str,
    *,
    names: Sequence[str] = (MANAGED,),
    limits: Limits | None = None,
) -> AsyncIterator[tuple[Rig, Tail]]:
    """Make topics and settings under a prefix of their own; the clusters of these names are all this one.

    Workers end with the block. Nothing but the limits differs from the product's defaults.
    """
    allowed = limits or Limits()
    directory = cluster.directory / prefix
    directory.mkdir()
    tables = [f'[log]\nbootstrap = "{cluster.bootstrap}"\nprefix = "{prefix}"']
    tables += [
        f'[clusters.{name}]\nbootstrap = "{cluster.bootstrap}"\n'
        f"max_partitions_in_flight = {allowed.max_partitions_in_flight}\n"
        f"max_moves_per_broker = {allowed.max_moves_per_broker}"
        for name in names
    ]
    (directory / "drover.toml").write_text("\n\n".join(tables) + "\n", encoding="utf-8")
    connection = LogConnection(cluster.bootstrap, TopicNames(prefix))
    rig = Rig(cluster, directory, connection, KafkaDriver("observer", cluster.bootstrap))
    try:
        await own_topics.init(connection)
        async with Tail(connection) as tail:
            yield rig, tail
    finally:
        for name in tuple(rig.workers):
            await rig.kill_worker(name)
        await rig.driver.close()


@dataclass
class WatchedMoves:
    """Kafka's list of reassignments over time, in ms since the epoch.

    `first_ms` is when the list first named a partition; `left_ms` is, for each partition that has left the list, when
    the last answer that still named it arrived.
    """

    first_ms: float | None = None
    left_ms: dict[TopicPartition, float] = field(default_factory=dict)


@asynccontextmanager
async def moves_watched(driver: KafkaDriver) -> AsyncIterator[WatchedMoves]:
    """Poll Kafka's list of reassignments as long as the context lasts."""
    watched = WatchedMoves()
    is_over = False

    async def poll() -> None:
        listed: set[TopicPartition] = set()
        answered_ms = 0.0
        while not is_over:
            began_s = time.monotonic()
            moves = (await driver.list_moves()).moves
            watched.left_ms.update(dict.fromkeys(listed - moves.keys(), answered_ms))
            listed, answered_ms = set(moves), time.time() * 1000
            if listed and watched.first_ms is None:
                watched.first_ms = answered_ms
            await asyncio.sleep(max(0.0, POLL_S - (time.monotonic() - began_s)))

    task = asyncio.create_task(poll())
    try:
        yield watched
    finally:
        is_over = True
        await task
