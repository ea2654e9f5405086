"""From a command's record to its durable outcome: latency at a steady rate, and throughput from a backlog."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import psutil

from bench.results import AtLeast, AtMost, Benchmark, Row, check, percentile, say
from bench.rig import Rig, drover_on, fresh_cluster, run_program
from bench.tail import Seen, Tail
from bench.traffic import Sender, Written, cluster_names, mixture
from drover.cluster.topics import TopicSpec, create_topics
from drover.events.topics import DEFAULT_SHARDS
from drover.local import LocalCluster

RATE_PER_S = 200
# A fresh JVM compiles while it serves: the first seconds say nothing about the rest.
WARM_UP_S = 8
LATENCY_S = 15
BACKLOG = 20_000
# Each backlog with its bare loop; one pair says more about the moment than about the code.
PAIRS = 5

Place = tuple[str, int, int]


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Measure latency first, since it suffers most from whatever a cluster has gone through."""
    async with fresh_cluster() as cluster:
        latency = await _latency(cluster, 3 if quick else LATENCY_S)
        count, pairs = (4_000, 1) if quick else (BACKLOG, PAIRS)
        return (*latency, *_rows(count, [await _throughput(cluster, count, number) for number in range(pairs)]))


async def _latency(cluster: LocalCluster, seconds: int) -> tuple[Row, ...]:
    clusters = cluster_names()
    async with drover_on(cluster, "steady", names=clusters) as (rig, tail):
        await _start(rig, tail)
        sender = Sender(rig.connection)
        await sender.start()
        try:
            await sender.at_rate(mixture(WARM_UP_S * RATE_PER_S, clusters, "warm-up"), RATE_PER_S)
            written = await sender.at_rate(mixture(seconds * RATE_PER_S, clusters, "steady"), RATE_PER_S)
        finally:
            await sender.close()
        expected = (WARM_UP_S + seconds) * RATE_PER_S
        await tail.until(lambda: tail.outcomes == expected, "every command to be decided")
        seen = decided(tail)
    durable = [seen[place(one)].received_ms - one.timestamp_ms for one in written]
    appended = [float(seen[place(one)].written_ms - one.timestamp_ms) for one in written]
    rate = f"at {RATE_PER_S} commands/s"
    return (
        Row(f"command record to durable outcome {rate}, p50", percentile(durable, 50), "ms"),
        Row(f"command record to durable outcome {rate}, p99", percentile(durable, 99), "ms", gate=AtMost(200)),
        Row("of that, to the append of the outcome's record, p50", percentile(appended, 50), "ms"),
        Row("of that, to the append of the outcome's record, p99", percentile(appended, 99), "ms"),
    )


@dataclass(frozen=True, slots=True)
class _Pace:
    """How a worker decided a backlog: commands per second, processor time of one, and records of the log."""

    per_s: float
    busy_ms: float
    records: int
    bare: "_Bare"


async def _throughput(cluster: LocalCluster, count: int, number: int) -> _Pace:
    clusters = cluster_names()
    async with drover_on(cluster, f"backlog-{number}", names=clusters) as (rig, tail):
        sender = Sender(rig.connection)
        await sender.start()
        try:
            await sender.backlog(mixture(count, clusters, "backlog"))
        finally:
            await sender.close()
        bare = await _bare(rig, count)
        say(f"a bare loop: {bare.per_s:,.0f} commands/s, {bare.busy_ms:.3f} ms each; now a worker")
        await _start(rig, tail)
        worker = psutil.Process(rig.workers["worker"].pid)
        used_s, done = _processor_s(worker), tail.outcomes
        await tail.until(lambda: tail.outcomes == count, "the backlog to be decided", timeout_s=120)
        used_s, done = _processor_s(worker) - used_s, count - done
        batches = sorted((one for one in tail.seen if one.valid.batch.outcomes), key=lambda one: one.written_ms)
    shards = {one.valid.shard for one in batches}
    check(len(shards) == len(tail.folds), f"only the shards {sorted(shards)} had commands")
    # What the first record decided was done before the clock started.
    later = count - len(batches[0].valid.batch.outcomes)
    seconds = max(1, batches[-1].written_ms - batches[0].written_ms) / 1000
    return _Pace(later / seconds, used_s / done * 1000, len(batches), bare)


def _rows(count: int, paces: Sequence[_Pace]) -> tuple[Row, ...]:
    """Tell the medians of all pairs."""
    per_s, bare_per_s = median(one.per_s for one in paces), median(one.bare.per_s for one in paces)
    busy_ms, bare_busy_ms = median(one.busy_ms for one in paces), median(one.bare.busy_ms for one in paces)
    name = f"commands decided by one worker from a backlog of {count:,}, {os.cpu_count()} cores in all"
    return (
        Row(name, per_s, "commands/s", gate=AtLeast(5000)),
        Row("the same beside a bare loop", per_s, "commands/s", bare_per_s, gate=AtLeast(0.35)),
        Row("processor time of the worker per command, beside the bare loop's", busy_ms, "ms", bare_busy_ms),
        Row("commands per record of the log", count / median(one.records for one in paces), "commands"),
    )


@dataclass(frozen=True, slots=True)
class _Bare:
    """The result of the same backlog in a loop without Drover."""

    per_s: float
    busy_ms: float


async def _bare(rig: Rig, count: int) -> _Bare:
    """Let a process of its own read, decode and produce every command of the backlog."""
    target = TopicSpec(f"{rig.connection.topics.prefix}.bare", DEFAULT_SHARDS, 3, {"min.insync.replicas": "2"})
    answer = (await create_topics(rig.cluster.bootstrap, [target]))[target.name]
    check(answer.accepted, f"topic {target.name}: {answer.message}")
    arguments = (rig.cluster.bootstrap, target.name, str(count), *rig.connection.topics.commands)
    output = await run_program((sys.executable, "-m", "bench.bare_loop", *arguments), os.environ)
    found = json.loads(output.splitlines()[-1])
    return _Bare(found["count"] / found["seconds"], found["busy_s"] / found["count"] * 1000)


async def _start(rig: Rig, tail: Tail) -> None:
    await rig.start_worker("worker")
    await tail.until(lambda: tail.owners == {"worker"}, "the worker owns every shard")


def _processor_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def place(written: Written) -> Place:
    return written.topic, written.shard, written.offset


def decided(tail: Tail) -> dict[Place, Seen]:
    """Say for each command which batch decided it."""
    return {
        (outcome.topic, seen.valid.shard, outcome.offset): seen
        for seen in tail.seen
        for outcome in seen.valid.batch.outcomes
    }


METHOD = """\
One worker, six shards, twelve configured clusters (two per shard, all of them the same Kafka), a mixture of
blacklist, broker-failed, broker-returned, freeze and unfreeze commands, every twentieth a repeated one; brokers,
worker and clients share the machine. *Latency*: for each command of 15 s at 200 commands/s, after 8 s of the same
to warm the brokers up, the moment at which an independent consumer got the log record with its outcome (a consumer
gets only what is replicated) minus the LogAppendTime of the command's own record. *Throughput*: a backlog over all
shards is written first; then a worker is started, and the commands are counted from the LogAppendTime of the first
record with outcomes to that of the last. *Bare loop*: just before, a process with nothing but aiokafka reads the same
backlog, decodes each command and produces one record for each, acknowledged by all in-sync replicas, without waiting
for any before the next. Five pairs by turns, medians, and the ratio of the medians."""
BENCHMARK = Benchmark("commands", "Commands: latency and throughput", METHOD, run)
