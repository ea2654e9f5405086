"""From the moment at which a partition leaves Kafka's list of reassignments to its completed event."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from bench.results import AtMost, Benchmark, Row, check, percentile, say
from bench.rig import EVEN_COPYING, MANAGED, RECORD_BYTES, drover_on, fresh_cluster
from bench.tail import Tail
from drover.cluster.kafka import KafkaDriver
from drover.events.partitions import TopicPartition
from drover.events.reassignments import ReassignmentCompleted
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.state.scheduling import Limits

TOPIC = "orders"
PLAN = "all-at-once"
SHARD = shard_of(MANAGED, DEFAULT_SHARDS)
LARGEST_RECORDS = 20
POLL_MS = 20


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Let partitions of many sizes be copied at the same time, so that they end one after the other."""
    partitions, seconds = (48, 5) if quick else (200, 20)
    limits = Limits(max_moves_per_broker=1000)
    layout = {number: (1 + number % 4, 1 + (number + 1) % 4) for number in range(partitions)}
    records = {number: 1 + number // 4 * LARGEST_RECORDS // (partitions // 4) for number in layout}
    throttle = sum(records.values()) * RECORD_BYTES // 4 // seconds
    targets = {TopicPartition(TOPIC, number): (*replicas, 1 + (number + 2) % 4) for number, replicas in layout.items()}
    async with (
        fresh_cluster(EVEN_COPYING) as cluster,
        drover_on(cluster, "completion", limits=limits) as (rig, tail),
    ):
        await rig.create_topic(TOPIC, layout)
        await rig.fill(TOPIC, records)
        await rig.start_worker("worker")
        await tail.until(lambda: tail.owners == {"worker"}, "the worker owns every shard")
        file = rig.write_plan(PLAN, targets)
        async with observer(rig.driver) as left_ms:
            await rig.drover("alter", str(file), "--plan", PLAN, "--throttle", str(throttle), "--reason", "benchmark")
            state = tail.cluster(SHARD, MANAGED)
            in_flight = len(state.moves.in_flight)
            await tail.until(lambda: PLAN in state.plans and not state.reassignments, "the plan to end", 20 * seconds)
        completed = completions(tail)
    check(completed.keys() == targets.keys(), "not every partition was completed")
    seen = completed.keys() & left_ms.keys()
    check(len(seen) >= 0.9 * partitions, f"only {len(seen)} of {partitions} were seen on Kafka's list")
    moments = sorted(left_ms[key] for key in seen)
    say(f"{in_flight} in flight; the moves ended within {(moments[-1] - moments[0]) / 1000:.1f} s")
    lags = [completed[key] - left_ms[key] for key in seen]
    name = f"off Kafka's list to completed event, {partitions} in flight"
    return (
        Row(f"{name}, p50", percentile(lags, 50), "ms", gate=AtMost(250)),
        Row(f"{name}, p99", percentile(lags, 99), "ms"),
        Row("time over which the moves ended", (moments[-1] - moments[0]) / 1000, "s"),
    )


def completions(tail: Tail) -> dict[TopicPartition, int]:
    """Return the time of each partition's completed event, ms since the epoch."""
    return {
        event.key: seen.valid.batch.at_ms
        for seen in tail.seen
        for event in seen.valid.batch.events
        if isinstance(event, ReassignmentCompleted)
    }


@asynccontextmanager
async def observer(driver: KafkaDriver) -> AsyncIterator[Mapping[TopicPartition, float]]:
    """Poll Kafka's list; notes of each partition that leaves it when the last answer that still had it came."""
    left_ms: dict[TopicPartition, float] = {}

    async def poll() -> None:
        listed: set[TopicPartition] = set()
        answered_ms = 0.0
        while True:
            began = time.monotonic()
            moves = (await driver.list_moves()).moves
            for key in listed - moves.keys():
                left_ms[key] = answered_ms
            listed, answered_ms = set(moves), time.time() * 1000
            await asyncio.sleep(max(0.0, POLL_MS / 1000 - (time.monotonic() - began)))

    task = asyncio.create_task(poll())
    try:
        yield left_ms
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


METHOD = """\
200 partitions with 64 KiB to 1.25 MiB of data get a third replica, all in flight at the same time under a throttle
that spreads their ends over about 20 s. The controller takes a partition off its list of reassignments when the
last replica has joined the ISR; an observer with connections of its own polls that list every 20 ms. Lag: the time
of the log record with the `reassignment-completed` event minus the arrival of the last answer that still listed the
partition, so it is overstated by up to one poll. The brokers fetch little at a time and average throttles over 3 s,
because with Kafka's defaults data this small is copied in a few bursts."""
BENCHMARK = Benchmark("completion", "From the last replica in sync to the completed event", METHOD, run)
