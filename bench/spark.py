"""How fast Spark reads the log, as a stream and at once, beside plain readers; what the job costs, idle and busy."""

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition

from bench.results import AtLeast, AtMost, Benchmark, Row, check, percentile, say
from bench.rig import POLL_S, Rig, fresh_cluster, run_program
from bench.spark_job import Job, running_job
from bench.spark_log import PAUSE_MS, PROBES, SAMPLED, UNDER_WAY, Sampling, WrittenLog, script, write_log
from drover.cluster.kafka import KafkaDriver
from drover.events.topics import DEFAULT_SHARDS, TopicNames
from drover.fold.log import ShardFold
from drover.journal.connection import LogConnection
from drover.journal.reader import FETCH_BYTES, LogReader
from drover.local import LocalCluster
from drover.spark.files import JobFiles
from drover.spark.view import open_tables

CLUSTERS = 12
FEW_MS = 10
SETTLE_S = 10
FAST = AtLeast(0.35)
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured: events, partitions moved at a time in making them, repetitions, seconds, samples."""

    events: int
    per_turn: int
    starts: int
    readings: int
    idle_s: int
    warm_s: int
    paced_s: int
    samples: int


FULL = Sizes(1_000_000, per_turn=250, starts=3, readings=3, idle_s=30, warm_s=5, paced_s=20, samples=300_000)
QUICK = Sizes(20_000, per_turn=40, starts=1, readings=1, idle_s=5, warm_s=2, paced_s=4, samples=50_000)


@dataclass(frozen=True, slots=True)
class Small:
    """A job on a log of next to nothing: start and idling, then samples."""

    starts_s: tuple[float, ...]
    idle_percent: float
    delays_s: tuple[float, ...]
    samples_per_s: float


@dataclass(frozen=True, slots=True)
class Reading:
    """One log, read in every way; rates are events/s."""

    log: WrittenLog
    events: int
    drained_per_s: float
    folded_per_s: float
    streamed_per_s: float
    audited_per_s: float
    plan_s: float
    peak_bytes: int
    carried_bytes: int
    probes_s: tuple[float, ...]


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Measure a job on a small log, then read a quarter of a long log and the whole one."""
    sizes = QUICK if quick else FULL
    async with fresh_cluster() as cluster:
        async with _written(cluster, "small", 1, 20) as (rig, log):
            small = await _small(rig, log, sizes)
        async with _written(cluster, "part", sizes.events // 4, sizes.per_turn) as (rig, log):
            part = await _read(rig, log, sizes)
        async with _written(cluster, "whole", sizes.events, sizes.per_turn) as (rig, log):
            whole = await _read(rig, log, sizes)
    return (*_speed(part, whole), *_cost(small, part, whole))


def _speed(part: Reading, whole: Reading) -> tuple[Row, ...]:
    streamed = f"stream, catching up with {whole.events:,} events"
    audited = f"audit of {whole.events:,} events"
    return (
        Row(f"{streamed}, beside a bare drain", whole.streamed_per_s, "events/s", whole.drained_per_s),
        Row(f"{streamed}, beside plain Python", whole.streamed_per_s, "events/s", whole.folded_per_s, goal=FAST),
        Row(f"{streamed}, beside {part.events:,}", whole.streamed_per_s, "events/s", part.streamed_per_s, AtLeast(0.8)),
        Row(f"{audited}, beside a bare drain", whole.audited_per_s, "events/s", whole.drained_per_s),
        Row(f"{audited}, beside plain Python", whole.audited_per_s, "events/s", whole.folded_per_s, goal=FAST),
        Row(f"{audited}, beside {part.events:,}", whole.audited_per_s, "events/s", part.audited_per_s, AtLeast(0.8)),
        Row(f"audit of one plan in {whole.events:,} events, where tables are kept", whole.plan_s, "s", goal=AtMost(20)),
    )


def _cost(small: Small, part: Reading, whole: Reading) -> tuple[Row, ...]:
    probed = f"small batch after {whole.log.finished:,} finished reassignments, beside {part.log.finished:,}, median"
    probe_s, baseline_s = percentile(whole.probes_s, 50), percentile(part.probes_s, 50)
    carried = f"carried between batches after {whole.log.finished:,} finished, beside {part.log.finished:,}"
    return (
        Row(probed, probe_s * 1000, "ms", baseline_s * 1000, goal=AtMost(1.2)),
        Row(carried, whole.carried_bytes, "bytes", part.carried_bytes, gate=AtMost(1.1)),
        Row("samples applied from a backlog", small.samples_per_s, "samples/s", goal=AtLeast(10_000)),
        Row(f"sample to table at {SAMPLED:,} samples/s, median", percentile(small.delays_s, 50), "s"),
        Row(f"sample to table at {SAMPLED:,} samples/s, p95", percentile(small.delays_s, 95), "s", goal=AtMost(5)),
        Row(
            "start of the process to the first batch in the tables, median",
            percentile(small.starts_s, 50),
            "s",
            goal=AtMost(12),
        ),
        Row(
            "processor, idle at the default trigger",
            small.idle_percent,
            "% of a core",
            gate=AtMost(3),
            goal=AtMost(1.5),
        ),
        Row(
            "memory of driver, JVM and workers while catching up, peak",
            whole.peak_bytes / MEBIBYTE,
            "MiB",
            goal=AtMost(1536),
        ),
    )


@asynccontextmanager
async def _written(
    cluster: LocalCluster, prefix: str, events: int, per_turn: int
) -> AsyncIterator[tuple[Rig, WrittenLog]]:
    """Write a log of that many events, over all clusters, under a prefix of its own."""
    directory = cluster.directory / prefix
    directory.mkdir()
    connection = LogConnection(cluster.bootstrap, TopicNames(prefix))
    log = await write_log(connection, await script(events // CLUSTERS, per_turn))
    say(f"{log.events:,} events in {log.records:,} records, {log.finished:,} reassignments finished")
    driver = KafkaDriver("observer", cluster.bootstrap)
    try:
        yield Rig(cluster, directory, connection, driver), log
    finally:
        await driver.close()


# -- a small log: start, idling, samples


async def _small(rig: Rig, log: WrittenLog, sizes: Sizes) -> Small:
    sampling = Sampling(log.connection)
    first, *others = (rig.directory / f"job-{number}" for number in range(sizes.starts))
    starts_s = [await _start(rig, directory) for directory in others]
    async with running_job(rig, first) as job:
        await job.class_archive()
        say("Java's class data archive is there")
    shutil.rmtree(first)
    async with running_job(rig, first) as job:
        starts_s.append(await job.first_batch() - job.began)
        await job.applied(log.events)
        idle_percent = await _idle(job, sizes.idle_s)
        delays_s = await _paced(job, sampling, sizes)
    return Small(tuple(starts_s), idle_percent, delays_s, await _backlog(rig, first, sampling, sizes.samples))


async def _start(rig: Rig, directory: Path) -> float:
    """Return how long it takes from the start of the process to the first batch in the tables."""
    async with running_job(rig, directory) as job:
        took = await job.first_batch() - job.began
    say(f"started in {took:.1f} s")
    return took


async def _idle(job: Job, seconds: int) -> float:
    """Return how much of a core is used when nothing comes, in percent."""
    await asyncio.sleep(SETTLE_S)
    busy_s, began = job.busy_s(), time.monotonic()
    await asyncio.sleep(seconds)
    percent = (job.busy_s() - busy_s) / (time.monotonic() - began) * 100
    say(f"idle: {percent:.2f} % of a core")
    return percent


async def _paced(job: Job, sampling: Sampling, sizes: Sizes) -> tuple[float, ...]:
    """Return how long after it was appended each tick of samples was in the tables, after some to warm up."""
    seen: list[tuple[int, int]] = []

    async def watch() -> None:
        while True:
            standing = job.standing()
            if standing is not None:
                seen.append((standing.newest_ms, time.time_ns() // 1_000_000))
            await asyncio.sleep(POLL_S)

    watching = asyncio.create_task(watch())
    try:
        appended = await sampling.pace(sizes.warm_s + sizes.paced_s)
        await job.until(lambda _: True if seen and seen[-1][0] >= appended[-1] else None, "every sample in the tables")
    finally:
        watching.cancel()
        await asyncio.wait((watching,))
    counted = [moment for moment in appended if moment >= appended[0] + sizes.warm_s * 1000]
    delays_s = tuple((next(at for newest, at in seen if newest >= moment) - moment) / 1000 for moment in counted)
    say(f"samples at {SAMPLED:,}/s are in the tables after {percentile(delays_s, 50):.2f} s")
    return delays_s


async def _backlog(rig: Rig, directory: Path, sampling: Sampling, samples: int) -> float:
    """Return how many samples a second are applied, from when the queries run, of those written while no job ran."""
    last_ms = await sampling.backlog(samples)
    async with running_job(rig, directory) as job:
        began = await job.started()
        took = await job.sampled(SAMPLED, last_ms) - began
    say(f"{samples:,} samples in {took:.1f} s")
    return samples / took


# -- a long log: read in every way


async def _read(rig: Rig, log: WrittenLog, sizes: Sizes) -> Reading:
    events = log.events
    drained: list[float] = []
    folded: list[float] = []
    for _ in range(sizes.readings):
        drained.append(await _drain(log))
        folded.append(await _fold(log))
    say(f"drained in {min(drained):.2f} s, folded in {min(folded):.2f} s")
    async with running_job(rig, rig.directory / "job", FEW_MS) as job:
        began = await job.started()
        streamed = await job.applied(events) - began
        check(job.events() == events, "events were doubled")
        check(job.unreadable() == 0, "there are unreadable records")
        peak_bytes, carried_bytes = job.peak_bytes, job.carried_bytes()
        say(f"streamed in {streamed:.1f} s, at most {peak_bytes / MEBIBYTE:,.0f} MiB, {carried_bytes:,} bytes carried")
        probes_s = [await _probe(job, log) for _ in range(PROBES)]
    audited = await _audit(rig, log)
    plan_s = await _audit_plan(rig)
    say(f"audited in {audited:.1f} s, one plan in {plan_s:.1f} s")
    return Reading(
        log=log,
        events=events,
        drained_per_s=events / percentile(drained, 50),
        folded_per_s=events / percentile(folded, 50),
        streamed_per_s=events / streamed,
        audited_per_s=events / audited,
        plan_s=plan_s,
        peak_bytes=peak_bytes,
        carried_bytes=carried_bytes,
        probes_s=tuple(probes_s),
    )


async def _drain(log: WrittenLog) -> float:
    """Time reading every record with aiokafka, and doing nothing with it."""
    topic = log.connection.topics.events
    consumer = AIOKafkaConsumer(
        **log.connection.client_options,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=FETCH_BYTES,
    )
    await consumer.start()
    try:
        consumer.assign([KafkaPartition(topic, shard) for shard in range(DEFAULT_SHARDS)])
        left = log.records + DEFAULT_SHARDS  # each shard has a first record that was made with the topic
        began = time.monotonic()
        while left:
            fetched = await consumer.getmany(timeout_ms=1000)
            check(fetched, f"{left:,} records never come")
            left -= sum(map(len, fetched.values()))
        return time.monotonic() - began
    finally:
        await consumer.stop()


async def _fold(log: WrittenLog) -> float:
    """Time what every reader of the log does in Python: read, decode, check every rule, have all effects."""
    folds = {shard: ShardFold(shard, DEFAULT_SHARDS) for shard in range(DEFAULT_SHARDS)}
    async with LogReader(log.connection) as reader:
        began = time.monotonic()
        async for records in reader.read(log.connection.topics.events, dict.fromkeys(folds, 0)):
            for record in records:
                folds[record.shard].fold(record.offset, record.payload)
        took = time.monotonic() - began
    check(sum(fold.position for fold in folds.values()) == log.records + DEFAULT_SHARDS, "the log was not read")
    return took


async def _probe(job: Job, log: WrittenLog) -> float:
    """Return how long one small record takes into the tables when the job waits for it."""
    sent = await log.probe()
    return await job.applied(log.events) - sent


async def _audit(rig: Rig, log: WrittenLog) -> float:
    """Time `drover audit` from its start to its exit."""
    began = time.monotonic()
    command = (*rig.start_arguments(), "audit", "-o", "json", "--section", "requesters")
    output = await run_program(command, rig.environment)
    took = time.monotonic() - began
    rows = json.loads(output[output.index("{") :])["requesters"]
    ended = sum(row["completed"] + row["rolled_back"] for row in rows)
    check(ended == log.finished, f"the audit tells of {ended:,} finished reassignments, not of {log.finished:,}")
    return took


async def _audit_plan(rig: Rig) -> float:
    """Time `drover audit --plan` from its start to its exit, of the plan that began a reassignment last."""
    with open_tables(JobFiles(rig.directory / "job")) as connection:
        (plan,) = connection.execute("select plan from reassignments order by began_ms desc limit 1").fetchone()
    began = time.monotonic()
    output = await run_program((*rig.start_arguments(), "audit", "--plan", plan, "-o", "json"), rig.environment)
    took = time.monotonic() - began
    found = json.loads(output[output.index("{") :])["plans"]
    check(found and {row["plan"] for row in found} == {plan}, f"the audit does not tell of plan {plan}")
    return took


PAUSE_H = PAUSE_MS // 3_600_000
METHOD = f"""\
A real four-broker Kafka. A log like that of the replay benchmark, of twelve clusters in six shards, and one of a
quarter of its length; both end with {UNDER_WAY} reassignments under way in each cluster, all others have finished. By
the log's time {PAUSE_H} hours pass between two rounds of requests, so that plans grow old: a day after its end a plan
leaves the state, and what is carried between batches.
*Bare drain*: aiokafka reads every record, and nothing is done with it. *Plain Python*: every record is read, decoded
and folded by all rules (`LogReader`, `ShardFold`) in one process; both are the median of {FULL.readings}. *Stream*:
`drover spark run` as a user starts it, from when its queries run to the last event in the tables, the warming up of
the JVM included. *Audit*: all of `drover audit --section requesters`, from the start of its process to its exit.
*Audit of one plan*: the same for `drover audit --plan`, after that audit has kept what it knew on its way.
*Small batch*: a record of one event is appended while the job waits, {PROBES} times; from sending it to its row, with
a trigger of {FEW_MS} ms. *Memory*: the sum of the resident sizes of all its processes, every 0.25 s; pages that forked
workers share are counted for each. *Samples*: of {SAMPLED:,} copies, each sampled once a second; the backlog of
{FULL.samples:,} is timed from when the queries run; the delays, from append to table, are of {FULL.paced_s} s after
{FULL.warm_s} s of the same. *Start*: on a log of next to nothing, {FULL.starts} times, once
an earlier job has made Java's class data archive. *Idle*: {FULL.idle_s} s in which
nothing comes, from {SETTLE_S} s after the last batch on."""
BENCHMARK = Benchmark("spark", "Progress tables and audits with Spark", METHOD, run)
