"""A whole Drover on the local cluster: settings, worker processes, the command line, and plain looks at Kafka."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drover.client.history import FoldedLog, open_log, read_log
from drover.cluster.kafka import KafkaDriver
from drover.cluster.port import ThrottleChange
from drover.cluster.topics import TopicSpec, create_topics
from drover.events.partitions import TopicPartition
from drover.events.topics import DEFAULT_SHARDS, TopicNames, shard_of
from drover.facts import BrokerRates, PartitionFacts, ThrottledReplicas
from drover.journal import topics as own_topics
from drover.journal.connection import LogConnection
from drover.journal.producer import LogProducer
from drover.journal.reader import LogReader
from drover.local import LocalCluster
from drover.state.cluster import ClusterState
from drover.state.plans import Plan
from tests.architecture.repository import ROOT
from tests.commands import Finished, Running, run_drover, start_drover
from tests.topics import delete_topics

MANAGED = "local"
DROVER = ("-m", "drover")
RECORD_BYTES = 64 * 1024
# A machine that hangs for ten seconds is no reason for a topic to be missing.
CREATED_WITHIN_MS = 60_000
# More would not all be written in the time that a record has, on a busy machine.
RECORDS_AT_ONCE = 32
# Between two looks that each start a process: it is what all others wait for meanwhile.
LOOK_S = 0.5
# A deadline only ends a hang: a machine that others use as well may do nothing for ten seconds, and then elect leaders.
DEADLINE_S = 120.0
# Whoever waits pauses for a share of what it has waited, up to the longest pause.
PAUSED_SHARE, LONGEST_PAUSE_S = 0.15, 0.5


async def holds_within(condition: Callable[[], Awaitable[bool]], timeout_s: float, pause_s: float = 0.05) -> bool:
    """Wait until a condition holds, at most so long; return whether it does.

    The longer it takes, the longer the pauses: most conditions ask a cluster that has other things to do.
    """
    began = time.monotonic()
    while not await condition():
        waited_s = time.monotonic() - began
        if waited_s >= timeout_s:
            return False
        await asyncio.sleep(max(pause_s, min(waited_s * PAUSED_SHARE, LONGEST_PAUSE_S)))
    return True


async def wait_for(
    condition: Callable[[], Awaitable[bool]], what: str, timeout_s: float = DEADLINE_S, pause_s: float = 0.05
) -> float:
    """Wait until a condition holds and return the seconds it took; fails with `what` at the deadline."""
    began = time.monotonic()
    assert await holds_within(condition, timeout_s, pause_s), f"not within {timeout_s:.0f} s: {what}"
    return time.monotonic() - began


class FollowedLog:
    """Every shard of a log, folded on from where it was folded last, by one connection that is kept."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection = connection
        self._one_at_a_time = asyncio.Lock()
        self._reader: LogReader | None = None
        self._log = FoldedLog({})

    async def up_to_now(self) -> FoldedLog:
        """Fold what is new; whoever fails to read begins anew the next time."""
        async with self._one_at_a_time:
            is_whole = False
            try:
                log = await self._read_on()
                is_whole = True
                return log
            finally:
                if not is_whole:
                    await self.close()

    async def _read_on(self) -> FoldedLog:
        if self._reader is None:
            reader = await LogReader(self._connection).__aenter__()
            self._reader = reader
            self._log = await open_log(reader, self._connection)
        async for _ in read_log(self._reader, self._connection, self._log):
            pass
        return self._log

    async def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.__aexit__(None, None, None)


@dataclass
class Installation:
    """One Drover with topics of its own, so that tests on the shared cluster do not meet."""

    cluster: LocalCluster
    directory: Path
    names: TopicNames
    config: Path
    driver: KafkaDriver
    workers: dict[str, asyncio.subprocess.Process | Running] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    _followed: FollowedLog | None = None

    @property
    def connection(self) -> LogConnection:
        return LogConnection(self.cluster.bootstrap, self.names)

    # -- processes

    async def drover(self, *arguments: str, stdin: str | None = None) -> Finished:
        """Run a command to its end."""
        return await run_drover(arguments, self._settings, stdin)

    async def start_worker(self, name: str, *options: str, program: Sequence[str] = DROVER) -> None:
        """Start a worker, by another program if wanted; its log is in the directory."""
        await self.start(name, *program, "worker", "--name", name, "--listen", "127.0.0.1:0", *options)

    async def start(self, name: str, *arguments: str) -> None:
        """Start any long-running command; it is ended with the workers, its log is in the directory."""
        log = self.directory / f"{name}.log"
        if arguments[: len(DROVER)] == DROVER:
            self.workers[name] = start_drover(arguments[len(DROVER) :], self._settings, log)
            return
        with log.open("ab") as log_file:
            self.workers[name] = await asyncio.create_subprocess_exec(
                *(sys.executable, *arguments), cwd=ROOT, env={**os.environ, **self._settings},
                stdin=asyncio.subprocess.DEVNULL, stdout=log_file.fileno(), stderr=log_file.fileno(),
            )  # fmt: skip

    async def start_projector(self, name: str, *, program: Sequence[str] = DROVER) -> None:
        """Start `drover project`, by another program if wanted; it is ended as a worker is."""
        await self.start(name, *program, "project", "--listen", "127.0.0.1:0")

    @property
    def _settings(self) -> Mapping[str, str]:
        return {"NO_COLOR": "1", "COLUMNS": "200", "DROVER_CONFIG": str(self.config)}

    def signal(self, worker: str, number: signal.Signals) -> None:
        self.workers[worker].send_signal(number)

    async def gone(self, worker: str) -> int:
        """Wait for a worker's end."""
        async with asyncio.timeout(DEADLINE_S):
            return await self.workers.pop(worker).wait()

    async def end_workers(self) -> None:
        for process in self.workers.values():
            if process.returncode is None:
                process.kill()
            await process.wait()
        self.workers.clear()

    async def close(self) -> None:
        """End every process and every connection."""
        await self.end_workers()
        if self._followed is not None:
            await self._followed.close()
        await self.driver.close()

    def delete_topics(self) -> None:
        """Delete every topic that it made: they make the shared cluster slow, and get into the plans of other tests."""
        prefix = f"{self.names.prefix}."
        delete_topics(self.cluster.bootstrap, lambda name: name in self.topics or name.startswith(prefix))

    def worker_log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text()

    # -- what the log says, read without a process of its own, since many wait for it

    async def log(self) -> FoldedLog:
        """The log folded up to its present end; what was read before is not read again."""
        if self._followed is None:
            self._followed = FollowedLog(self.connection)
        return await self._followed.up_to_now()

    async def managed(self) -> ClusterState:
        """The managed cluster as the log says it is."""
        fold = (await self.log()).folds[shard_of(MANAGED, DEFAULT_SHARDS)]
        return fold.state.clusters.get(MANAGED) or ClusterState(MANAGED)

    async def plan(self, name: str) -> Plan:
        """A plan as the log says it is."""
        return (await self.managed()).plans[name]

    async def owners(self) -> Mapping[int, str]:
        """Who owns each shard."""
        return {number: fold.owner for number, fold in (await self.log()).folds.items()}

    async def wait_until_owned(self, *workers: str) -> None:
        """Wait until exactly these workers own all shards."""

        async def owned() -> bool:
            return set((await self.owners()).values()) == set(workers)

        await wait_for(owned, f"{workers} own every shard")

    # -- the managed cluster

    async def create_topic(self, name: str, layout: Mapping[int, Sequence[int]], kilobytes: int = 0) -> None:
        """Create a topic with named replicas and write data to each partition."""
        assignments = {number: tuple(replicas) for number, replicas in layout.items()}
        spec = TopicSpec(name, len(layout), len(assignments[0]), assignments=assignments)
        answers = await create_topics(self.cluster.bootstrap, [spec], timeout_ms=CREATED_WITHIN_MS)
        assert answers[name].accepted
        self.topics.add(name)

        async def shown() -> bool:
            seen = await self.driver.observe([TopicPartition(name, number) for number in layout])
            return all(facts is not None and facts.leader is not None for facts in seen.partitions.values())

        await wait_for(shown, f"topic {name} to be there")
        if kilobytes:
            await self.fill(name, layout, kilobytes)

    async def fill(self, name: str, layout: Mapping[int, Sequence[int]], kilobytes: int) -> None:
        """Write so much to each partition."""
        producer = LogProducer(self.connection, "filler")
        await producer.start()
        record = os.urandom(RECORD_BYTES)
        wanted = [number for number in layout for _ in range(kilobytes * 1024 // RECORD_BYTES)]
        for first in range(0, len(wanted), RECORDS_AT_ONCE):
            part = wanted[first : first + RECORDS_AT_ONCE]
            await asyncio.gather(*(producer.send(name, record, partition=number) for number in part))
        await producer.close()

    async def facts(self, key: TopicPartition) -> PartitionFacts:
        """What Kafka shows of a partition; asked again while its two lists disagree."""
        found: list[PartitionFacts | None] = []

        async def judged() -> bool:
            seen = await self.driver.observe([key])
            found[:] = [seen.partitions[key]] if key in seen.partitions else []
            return bool(found)

        await wait_for(judged, f"{key} to be seen")
        (facts,) = found
        assert facts is not None, f"{key} does not exist"
        return facts

    async def replicas(self, key: TopicPartition) -> tuple[int, ...]:
        return (await self.facts(key)).replicas

    async def throttles(self, topic: str) -> tuple[Mapping[int, BrokerRates], ThrottledReplicas]:
        rates = await self.driver.broker_rates((1, 2, 3, 4))
        return rates, (await self.driver.throttled_replicas([topic]))[topic]

    async def change_throttles(self, *changes: ThrottleChange) -> None:
        """Change throttles as another operator would; a broker that has not heard of a new topic is asked again."""

        async def accepted() -> bool:
            return all(result.accepted for result in (await self.driver.change_throttles(changes)).values())

        await wait_for(accepted, f"{changes} to be accepted")

    # -- plans

    async def alter(self, plan: str, targets: Mapping[TopicPartition, Sequence[int]], *options: str) -> Finished:
        """Write a plan file in the stock tool's format and submit it."""
        file = self.directory / f"{plan}.json"
        partitions = [
            {"topic": key.topic, "partition": key.partition, "replicas": list(replicas)}
            for key, replicas in targets.items()
        ]
        file.write_text(json.dumps({"version": 1, "partitions": partitions}))
        return await self.drover("alter", str(file), "--plan", plan, "--reason", "integration test", *options)

    async def status(self) -> Any:
        return (await self.drover("status", "-o", "json")).document

    async def wait_until_settled(self, timeout_s: float = DEADLINE_S) -> float:
        """Wait until nothing is under way and no throttle is left in the ledger."""

        async def settled() -> bool:
            state = await self.managed()
            if state.reassignments or state.broker_throttles or state.topic_throttles:
                return False
            return not (await self.status())["reassignments"]

        return await wait_for(settled, "every reassignment to end and every throttle to be taken back", timeout_s)


def observer(cluster: LocalCluster) -> KafkaDriver:
    """Return a test's own driver: a worker looks again where a test would fail, and brokers may be busy for seconds."""
    return KafkaDriver("observer", cluster.bootstrap, call_timeout_ms=20_000)


@asynccontextmanager
async def installation(
    cluster: LocalCluster,
    directory: Path,
    prefix: str,
    *,
    session_timeout_ms: int = 3000,
    healing: Mapping[str, int] | None = None,
    bootstrap: str | None = None,
    **limits: int,
) -> AsyncIterator[Installation]:
    """Make topics and a settings file of its own; workers are ended with it.

    `bootstrap` is where the managed cluster is reached, if not as its log is.
    """
    names = TopicNames(prefix)
    config = directory / "drover.toml"
    settings = [
        f'[log]\nbootstrap = "{cluster.bootstrap}"\nprefix = "{prefix}"',
        f'[clusters.{MANAGED}]\nbootstrap = "{bootstrap or cluster.bootstrap}"',
        *(f"{name} = {str(value).lower()}" for name, value in limits.items()),
        f"[worker]\nsession_timeout_ms = {session_timeout_ms}",
    ]
    if healing is not None:
        settings += [f"[clusters.{MANAGED}.healing]", *(f"{name} = {value}" for name, value in healing.items())]
    config.write_text("\n".join(settings) + "\n")
    made = Installation(cluster, directory, names, config, observer(cluster))
    await own_topics.init(made.connection)
    try:
        yield made
    finally:
        await made.close()
    made.delete_topics()
