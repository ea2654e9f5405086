"""How fast Spark reads the log: as a stream and in an audit, beside a fold in one Python process.

A real four-broker Kafka with a log like that of the replay benchmark, once for a cluster in each of six shards. By the
log's time eight hours pass between two rounds of requests: a day after its end a plan leaves the state, and with it
what the job carries between batches. Fold: `LogReader` and `ShardFold` read the log in one process. Stream: `drover
spark run`, from when its queries run to the last event in the tables. Audit: all of `drover audit --section
requesters`. Start: from the start of the process to the first batch in the tables. Memory: the sum of the resident
sizes of driver, JVM and Python workers, every 0.25 s.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
import psutil
from aiokafka import AIOKafkaProducer

from bench.commands import cluster_names
from bench.log_maker import varied_log
from bench.results import Benchmark, Row, check, say
from bench.rig import POLL_S, REPOSITORY, Rig, fresh_cluster, run_program
from drover.cluster.kafka import KafkaDriver
from drover.errors import ConfigurationError
from drover.events.codec import decode_record, encode_record, record_headers
from drover.events.records import SCHEMA_VERSION, Batch, Genesis, Record
from drover.events.topics import DEFAULT_SHARDS, TopicNames, shard_of
from drover.fold.log import ShardFold
from drover.journal import topics
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.spark.files import JobFiles
from drover.spark.sinks.sqlite import read_rows, read_standing
from drover.spark.view import open_tables

EVENTS = 1_000_000
PAUSE_MS = 8 * 3_600_000
CHUNK = 500
WEIGH_S = 0.25
MEBIBYTE = 1024 * 1024


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Write one log and read it in every way."""
    maker = await varied_log((20_000 if quick else EVENTS) // DEFAULT_SHARDS, PAUSE_MS)
    _, *records = map(decode_record, maker.log)
    async with fresh_cluster() as cluster:
        connection = LogConnection(cluster.bootstrap, TopicNames("spark"))
        rig = Rig(cluster, cluster.directory / "spark", connection, KafkaDriver("observer", cluster.bootstrap))
        rig.directory.mkdir()
        try:
            await write_log(connection, records)
            return await _measure(rig, maker.events * DEFAULT_SHARDS)
        finally:
            await rig.driver.close()


async def _measure(rig: Rig, events: int) -> tuple[Row, ...]:
    folded_s = await _fold(rig.connection)
    say(f"folded in {folded_s:.1f} s")
    async with running_job(rig) as job:
        await job.until(lambda: job.events() > 0, "a first batch")
        start_s = time.monotonic() - job.began_s
        await job.until(lambda: job.events() >= events, "every event in the tables")
        streamed_s = time.monotonic() - job.began_s - job.queries_s
        check(job.events() == events, "events were doubled")
    audited_s = await _audit(rig)
    say(f"started in {start_s:.1f} s, streamed in {streamed_s:.1f} s, audited in {audited_s:.1f} s")
    name = f"of {events:,} events, beside a fold in one process"
    return (
        Row(f"stream {name}", events / streamed_s, "events/s", events / folded_s),
        Row(f"`drover audit` {name}", events / audited_s, "events/s", events / folded_s),
        Row("`drover spark run` until its first batch", start_s, "s"),
        Row("memory of driver, JVM and workers, peak", job.peak_bytes / MEBIBYTE, "MiB"),
    )


async def _fold(connection: LogConnection) -> float:
    folds = {shard: ShardFold(shard, DEFAULT_SHARDS) for shard in range(DEFAULT_SHARDS)}
    async with LogReader(connection) as reader:
        began_s = time.monotonic()
        async for records in reader.read(connection.topics.events, dict.fromkeys(folds, 0)):
            for record in records:
                folds[record.shard].fold(record.offset, record.payload)
        return time.monotonic() - began_s


async def _audit(rig: Rig) -> float:
    began_s = time.monotonic()
    command = (*rig.start_arguments(), "audit", "-o", "json", "--section", "requesters")
    output = await run_program(command, rig.environment)
    seconds = time.monotonic() - began_s
    check(json.loads(output[output.index("{") :])["requesters"], "the audit has no rows")
    return seconds


# -- the log


async def write_log(connection: LogConnection, template: Sequence[Any]) -> None:
    """Make Drover's topics and write the records of a template to each shard, about a cluster of that shard."""
    await topics.init(connection)
    clusters = {shard_of(name, DEFAULT_SHARDS): name for name in cluster_names()}
    topic = connection.topics.events
    async with AIOKafkaProducer(**connection.client_options, enable_idempotence=True, linger_ms=5) as producer:
        for shard, cluster in clusters.items():
            records = shard_log(shard, cluster, template)
            for first in range(0, len(records), CHUNK):
                sent = [
                    await producer.send(
                        topic, encode_record(record), partition=shard, headers=list(record_headers(record))
                    )
                    for record in records[first : first + CHUNK]
                ]
                await asyncio.gather(*sent)


def shard_log(shard: int, cluster: str, template: Sequence[Any]) -> list[Record]:
    """Return the records of a shard after its first one, with the chain and the state hashes of that shard."""
    fold = ShardFold(shard, DEFAULT_SHARDS)
    fold.fold(0, encode_record(Genesis(schema=SCHEMA_VERSION, shards=DEFAULT_SHARDS, shard=shard)))
    records: list[Record] = []
    for original in template:
        record: Record = original
        if isinstance(record, Batch):
            changes: dict[str, Any] = {
                "events": tuple(msgspec.structs.replace(event, cluster=cluster) for event in record.events),
                "outcomes": tuple(msgspec.structs.replace(outcome, cluster=cluster) for outcome in record.outcomes),
            }
            if record.state_hash is not None:
                changes |= {"state_hash": fold.state.hash()}
            record = msgspec.structs.replace(record, sequence=fold.sequence + 1, previous_hash=fold.chain, **changes)
        fold.fold(fold.position, encode_record(record))
        records.append(record)
    return records


# -- the job


@dataclass
class Job:
    """`drover spark run` as a user starts it; times are of the monotonic clock."""

    process: asyncio.subprocess.Process
    files: JobFiles
    began_s: float
    queries_s: float = 0.0
    peak_bytes: int = 0
    output: bytearray = field(default_factory=bytearray)

    async def until(self, condition: Callable[[], bool], event: str, timeout_s: float = 300.0) -> None:
        """Wait until a condition holds; the job must go on meanwhile."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            output = self.output.decode(errors="replace")
            check(self.process.returncode is None, f"the job ended before {event}:\n{output}")
            check(time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {event}\n{output}")
            await asyncio.sleep(POLL_S)

    def events(self) -> int:
        """Return how many events are in the tables."""
        with suppress(ConfigurationError), open_tables(self.files) as connection:
            if read_standing(connection) is not None:
                return sum(row["events"] for row in read_rows(connection, "takeovers"))
        return 0

    async def follow(self) -> None:
        """Keep what the job prints, and note when its queries run."""
        assert self.process.stdout is not None, "it is a pipe"
        async for line in self.process.stdout:
            self.output += line
            if b"Keeping the tables in" in line:
                self.queries_s = time.monotonic() - self.began_s

    async def weigh(self) -> None:
        """Note the memory of all its processes, again and again."""
        while True:
            size = 0
            with suppress(psutil.NoSuchProcess):
                driver = psutil.Process(self.process.pid)
                size = sum(each.memory_info().rss for each in (driver, *driver.children(recursive=True)))
            self.peak_bytes = max(self.peak_bytes, size)
            await asyncio.sleep(WEIGH_S)


@asynccontextmanager
async def running_job(rig: Rig) -> AsyncIterator[Job]:
    """Run a job on a rig's log with the default settings, and stop it as a user would."""
    directory = rig.directory / "job"
    (rig.directory / "drover.toml").write_text(
        f'[log]\nbootstrap = "{rig.connection.bootstrap}"\nprefix = "{rig.connection.topics.prefix}"\n\n'
        f'[spark]\ndirectory = "{directory}"\n',
        encoding="utf-8",
    )
    began_s = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *rig.start_arguments(),
        *("spark", "run"),
        cwd=REPOSITORY,
        env=rig.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    job = Job(process, JobFiles(directory), began_s)
    tasks = [asyncio.create_task(job.follow()), asyncio.create_task(job.weigh())]
    try:
        yield job
    finally:
        process.terminate()
        await process.wait()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


BENCHMARK = Benchmark("spark", run)
