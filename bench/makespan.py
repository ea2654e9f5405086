"""The time of a whole plan: on a model beside the bound that no schedule beats, and on real brokers.

Model, without a Kafka: the real shard core in virtual time, with a plan throttled to the rate of a port, drives a model
cluster of twelve brokers (`bench/makespan_model.py`): 63 instances from seeds with 300 moves each, where one stream
fills a whole port, a third or an eighth of one. Drover's limits are those that docs/limits.md advises. The bound is the
busiest port or uplink, or the longest single copy.

Empty partitions: 1,500 partitions with two replicas have one of them replaced, with the default limits, from the start
of the process to the last record of the plan. Baseline: the stock tool's `--execute` of the same file, from the start
of its JVM until the cluster has the layout. By turns; medians after one pair that warms everything up.

Real data: 60 partitions with 64 KiB to some MiB (log-normal) under a throttle that keeps the busiest broker busy for a
minute, with Drover and its default limits, and with the stock tool, which starts everything at once. From the first
poll of Kafka's list that shows a move to the last one.
"""

import math
import time
from collections import Counter
from collections.abc import Mapping
from random import Random
from statistics import mean, median

from bench.makespan_drover import Drive
from bench.makespan_model import Instance, instances
from bench.results import AtMost, Benchmark, Row, check, say
from bench.rig import (
    MANAGED,
    RECORD_BYTES,
    SMALL_FETCHES,
    Layouts,
    Rig,
    WatchedMoves,
    drover_on,
    fresh_cluster,
    moves_watched,
)
from bench.tail import Tail
from drover.events.clusters import Budgets
from drover.events.partitions import TopicPartition
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.state.scheduling import Limits

MOVES, SEEDS = 300, 3
# Copies are about as large if the largest is not so many times as large as the median.
ALIKE = 3
EMPTY, OURS, THEIRS, WARMING_UP = "empty", "ours", "theirs", "warming-up"
MEDIAN_RECORDS, SIGMA = 12, 1.0
SHARD = shard_of(MANAGED, DEFAULT_SHARDS)


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Play every instance of the model, then move real partitions."""
    ratios = [await _play(instance) for instance in instances(*((1, 60) if quick else (SEEDS, MOVES)))]
    name = f"plan on {len(ratios)} model instances, time over the lower bound"
    async with fresh_cluster(SMALL_FETCHES) as cluster, drover_on(cluster, "makespan") as (rig, tail):
        await rig.start_worker("worker")
        await tail.until(lambda: tail.owners == {"worker"}, "the worker owns every shard")
        empty = await _empty(rig, tail, 150 if quick else 1500, pairs=2 if quick else 4)
        real = await _real(rig, tail, *((12, 10) if quick else (60, 60)))
    return (
        Row(f"{name}, mean", mean(ratios), "", goal=AtMost(1.05)),
        Row(f"{name}, worst", max(ratios), "", goal=AtMost(1.20)),
        real,
        empty,
    )


# -- the model


async def _play(instance: Instance) -> float:
    seconds = round(await Drive(instance, advised_limits(instance)).run(), 3)
    say(f"{instance.name}: {seconds:.0f} s, bound {instance.bound_s:.0f} s")
    return seconds / instance.bound_s


def advised_limits(instance: Instance) -> Limits:
    """Return the limits as docs/limits.md advises: as many copies per broker as fill a port, in whole steps.

    A half more where all copies are about as large. Where racks have uplinks, as many copies per rack as its uplink is
    ports wide.
    """
    streams, replicas = instance.streams_per_port, max(len(shift.added) for shift in instance.shifts)
    sizes = [shift.bytes for shift in instance.shifts]
    is_even = max(sizes) < ALIKE * median(sizes)
    copies = math.ceil(streams * (1.5 if is_even else 1) / replicas) * replicas if streams > 1 else replicas
    if copies == 1:
        copies = Limits().max_moves_per_broker
    between_racks = None if instance.uplink is None else round(copies * instance.uplink / instance.port)
    return Limits(
        max_replicas_per_step=replicas,
        max_moves_per_broker=copies,
        budgets=Budgets(max_moves_per_rack=between_racks),
    )


# -- empty partitions


async def _empty(rig: Rig, tail: Tail, count: int, *, pairs: int) -> Row:
    keys = [TopicPartition(EMPTY, number) for number in range(count)]
    before = {key: (1 + key.partition % 4, 1 + (key.partition + 1) % 4) for key in keys}
    after = {key: (first, 1 + (key.partition + 2) % 4) for key, (first, _) in before.items()}
    await rig.create_topic(EMPTY, {key.partition: replicas for key, replicas in before.items()})
    ours: list[float] = []
    tool: list[float] = []
    for pair in range(pairs):
        began_s = time.time()
        await _drover(rig, tail, f"{EMPTY}-{pair}", after)
        ours.append(tail.seen[-1].valid.batch.at_ms / 1000 - began_s)
        await rig.bring_back(before)
        began_s = time.monotonic()
        await rig.stock_tool(rig.write_plan(EMPTY, after))
        await rig.until_laid_out(after)
        tool.append(time.monotonic() - began_s)
        await rig.bring_back(before)
        say(f"{count:,} empty partitions: drover {ours[-1]:.2f} s, stock tool {tool[-1]:.2f} s")
    name = f"{count:,} empty partitions moved, beside the stock tool"
    return Row(name, median(ours[1:]), "s", median(tool[1:]), goal=AtMost(3))


# -- real data


async def _real(rig: Rig, tail: Tail, partitions: int, seconds: int) -> Row:
    """Move partitions with Drover and as many with the stock tool, after a few that warm the brokers up."""
    before, after, records = skewed_plan(partitions)
    throttle = ("--throttle", str(busiest_bytes(before, after, records) // seconds))
    for topic in (WARMING_UP, OURS, THEIRS):
        await rig.create_topic(topic, before)
        await rig.fill(topic, records)
    await _drover(rig, tail, WARMING_UP, _layouts(WARMING_UP, after))
    async with moves_watched(rig.driver) as ours:
        await _drover(rig, tail, OURS, _layouts(OURS, after), *throttle)
    target = _layouts(THEIRS, after)
    async with moves_watched(rig.driver) as theirs:
        await rig.stock_tool(rig.write_plan("stock", target), *throttle)
        await rig.until_laid_out(target)
    name = f"{partitions} partitions with data, throttled, beside the stock tool"
    return Row(name, _seconds(ours), "s", _seconds(theirs), goal=AtMost(1.05))


def skewed_plan(
    partitions: int,
) -> tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]], dict[int, int]]:
    """Return replicas before and after, and records of 64 KiB: each partition gets another second replica."""
    chance = Random(15)
    before: dict[int, tuple[int, ...]] = {}
    after: dict[int, tuple[int, ...]] = {}
    for number in range(partitions):
        leader, follower, added = chance.sample((1, 2, 3, 4), 3)
        before[number], after[number] = (leader, follower), (leader, added)
    records = {number: max(1, round(MEDIAN_RECORDS * chance.lognormvariate(0, SIGMA))) for number in before}
    return before, after, records


def busiest_bytes(
    before: Mapping[int, tuple[int, ...]], after: Mapping[int, tuple[int, ...]], records: Mapping[int, int]
) -> int:
    """Return the bytes that enter or leave the busiest broker."""
    loads: Counter[tuple[str, int]] = Counter()
    for number, count in records.items():
        for broker in set(after[number]) - set(before[number]):
            loads["in", broker] += count * RECORD_BYTES
            loads["out", before[number][0]] += count * RECORD_BYTES
    return max(loads.values())


def _layouts(topic: str, layout: Mapping[int, tuple[int, ...]]) -> Layouts:
    return {TopicPartition(topic, number): replicas for number, replicas in layout.items()}


def _seconds(watched: WatchedMoves) -> float:
    check(watched.first_ms is not None and watched.left_ms, "Kafka's list never showed a move")
    assert watched.first_ms is not None, "checked"
    return (max(watched.left_ms.values()) - watched.first_ms) / 1000


async def _drover(rig: Rig, tail: Tail, plan: str, after: Layouts, *options: str) -> None:
    file = rig.write_plan(plan, after)
    await rig.drover("alter", str(file), "--plan", plan, *options, "--reason", "benchmark")
    state = tail.cluster(SHARD, MANAGED)
    await tail.until(lambda: plan in state.plans and not state.reassignments, f"{plan} to end", 1200)
    check(state.plans[plan].completed == len(after), f"not all of {plan} was moved")


BENCHMARK = Benchmark("makespan", run)
