"""A broker dies for good on real brokers: how soon it is noticed and healed, for how much, and what producers feel."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from bench.producing import TRAFFIC, producing
from bench.results import AtMost, Benchmark, Row, check, say
from bench.rig import BURST_S, MANAGED, SMALL_FETCHES, drover_on, fresh_cluster
from bench.tail import Tail
from drover.events.healing import (
    BrokerOutageAlarmed,
    BrokerOutageNoted,
    HealAssignment,
    HealChunkBegun,
    HealChunkPlanned,
    HealEnded,
    HealPlanned,
)
from drover.events.reassignments import ReassignmentCompleted
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.local import LocalCluster
from drover.state.scheduling import Limits

SHARD = shard_of(MANAGED, DEFAULT_SHARDS)
BROKERS, DEAD = 5, 5
TOPIC = "orders"
ALARM_MS, INTERVAL_MS = 4000, 8000
RECORDS, ONE_CHUNK = 16, 1000
# In 15 s the 99th percentile is that of a handful of writes.
IDLE_S = 60


@dataclass(frozen=True, slots=True)
class Heal:
    """One heal as the log tells it: delays in ms after the thresholds, seconds, and what was copied."""

    alarm_ms: int
    plan_ms: int
    took_s: float
    bound_s: float
    copies: int
    completed: int
    p99_idle_ms: float
    p99_ms: float


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Kill a broker with a replica of every partition of one topic, once in one chunk and once in chunks of ten."""
    partitions, seconds = (40, 15) if quick else (300, 240)
    rows: list[Row] = []
    for chunk in (ONE_CHUNK, 10):
        async with fresh_cluster(SMALL_FETCHES, BROKERS) as cluster:
            rows += _rows(await _heal(cluster, partitions, chunk, seconds), partitions, chunk)
    return tuple(rows)


def _rows(found: Heal, partitions: int, chunk: int) -> Iterable[Row]:
    name = f"{partitions} partitions, " + ("one chunk" if chunk == ONE_CHUNK else f"chunks of {chunk}")
    yield Row(f"{name}: alarm after its threshold", found.alarm_ms / 1000, "s", gate=AtMost(5))
    yield Row(f"{name}: plan after its threshold", found.plan_ms / 1000, "s", gate=AtMost(5))
    gate = AtMost(1.10) if chunk == ONE_CHUNK else None
    yield Row(f"{name}: first chunk to the end, against the lower bound", found.took_s, "s", found.bound_s, gate)
    without_burst_s = found.bound_s - BURST_S
    yield Row(f"{name}: against the bound less the burst", found.took_s, "s", without_burst_s, goal=AtMost(1.10))
    yield Row(f"{name}: copies, against the fewest", found.completed, "copies", found.copies, AtMost(1))
    yield Row(f"{name}: producer p99 (acks=all), against idle", found.p99_ms, "ms", found.p99_idle_ms, goal=AtMost(1.5))


async def _heal(cluster: LocalCluster, partitions: int, chunk: int, seconds: int) -> Heal:
    layout = {number: (1 + number % (BROKERS - 1), DEAD) for number in range(partitions)}
    # What the busiest broker takes in takes so long: the fullest of four gets a quarter of everything.
    rate = -(-partitions // (BROKERS - 1)) * RECORDS * 64 * 1024 // seconds
    healing = {
        "failure_interval_ms": INTERVAL_MS,
        "alarm_ms": ALARM_MS,
        "chunk_partitions": chunk,
        "throttle_bytes_per_second": rate,
    }
    limits = Limits(max_moves_per_broker=1000)
    async with drover_on(cluster, "healing", limits=limits, healing=healing) as (rig, tail):
        await rig.create_topic(TOPIC, layout)
        await rig.create_topic(TRAFFIC, {number: (1 + number % 4, 1 + (number + 1) % 4) for number in range(4)})
        await rig.fill(TOPIC, dict.fromkeys(layout, RECORDS))
        await rig.start_worker("worker")
        await tail.until(lambda: tail.owners == {"worker"}, "the worker owns every shard")
        state = tail.cluster(SHARD, MANAGED)
        await tail.until(lambda: state.limits.healing is not None, "the settings to be recorded")
        async with producing(rig) as waits:
            await asyncio.sleep(IDLE_S)
            idle_ms = waits.p99_ms()
            await cluster.kill(DEAD)
            await tail.until(lambda: state.heal_running is not None, "the heal to begin", 120)
            waits.skip()
            await tail.until(lambda: DEAD in state.emptied_brokers, "the heal to end", 30 * seconds)
            healing_ms = waits.p99_ms()
    return _told(tail, rate, idle_ms, healing_ms)


def _told(tail: Tail, rate: int, p99_idle_ms: float, p99_ms: float) -> Heal:
    """Read the heal from the log, whose times are the brokers'."""
    times: dict[type, int] = {}
    chunks: list[HealAssignment] = []
    completed, ended_ms = 0, 0
    for seen in tail.seen:
        at_ms = seen.valid.batch.at_ms
        for event in seen.valid.batch.events:
            times.setdefault(type(event), at_ms)
            if isinstance(event, HealChunkPlanned):
                chunks += event.assignments
            elif isinstance(event, ReassignmentCompleted):
                completed += 1
            elif isinstance(event, HealEnded):
                ended_ms = at_ms
    check(completed == len(chunks), f"{completed} of {len(chunks)} partitions were healed")
    noted_ms, took_ms = times[BrokerOutageNoted], ended_ms - times[HealChunkBegun]
    busiest = _busiest_bytes(chunks)
    bound_s = busiest / rate
    say(f"{len(chunks)} partitions in {took_ms / 1000:.1f} s, the bound is {bound_s:.1f} s at {rate:,} bytes/s")
    return Heal(
        alarm_ms=times[BrokerOutageAlarmed] - noted_ms - ALARM_MS,
        plan_ms=times[HealPlanned] - noted_ms - INTERVAL_MS,
        took_s=took_ms / 1000,
        bound_s=bound_s,
        copies=len(chunks),
        completed=completed,
        p99_idle_ms=p99_idle_ms,
        p99_ms=p99_ms,
    )


def _busiest_bytes(chunks: Iterable[HealAssignment]) -> int:
    """Return what the busiest broker must take in or give out: a replica that stays is the source."""
    moved: Counter[tuple[str, int]] = Counter()
    for one in chunks:
        size = one.size_bytes or 0
        for broker in set(one.target) - set(one.original):
            moved["in", broker] += size
        moved["out", min(set(one.target) & set(one.original))] += size
    return max(moved.values())


METHOD = """\
Of five brokers one is killed with SIGKILL for good. It has a replica of each of 300 partitions with two replicas, of 1
MiB each, and some of Drover's own and Kafka's. The heal is throttled so that the busiest broker is busy for four
minutes. *Lower bound*: the bytes that the busiest broker takes in or gives out, at that rate, as in `moving` and as the
plan says it. Kafka's average over eleven seconds lets ten seconds' worth through at once: *less the burst*. Baseline of
the copies: the partitions that the dead broker was in, since each needs one. The time after a threshold is that of the
log's record minus that of the record that noted the absence, minus the threshold. The same once with everything in one
chunk and once with KIP-46's chunks of ten, one after the other, whose busiest broker is another one in each chunk. A
producer in a process of its own sends 1 KiB every 20 ms with acks=all to a topic that does not move; its baseline is
the minute before the death. The brokers fetch 64 KiB of a partition at a time, and have Kafka's own averages."""
BENCHMARK = Benchmark("healing", "A broker that dies for good", METHOD, run)
