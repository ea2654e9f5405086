"""One plan on real brokers, with Drover and with the stock tool: time, rate, extra replicas, producers' latency."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from bench.alter import TOOL, TOOL_FLAGS, TOOL_SAID, stock_tool
from bench.producing import TRAFFIC, Waits, producing
from bench.results import AtLeast, AtMost, Benchmark, Row, check, percentile, say
from bench.rig import BURST_S, MANAGED, RECORD_BYTES, SMALL_FETCHES, Rig, drover_on, fresh_cluster, run_program
from bench.tail import Tail
from bench.watching_moves import Watched, watching
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallAccepted, ReassignmentCompleted
from drover.events.topics import DEFAULT_SHARDS, shard_of

SHARD = shard_of(MANAGED, DEFAULT_SHARDS)
BROKERS = (1, 2, 3, 4)
OURS, THEIRS = "ours", "theirs"
WARMING_UP = "warming-up"
MEDIAN_RECORDS, SIGMA = 12, 1.0
# In 15 s the 99th percentile is that of a handful of writes.
IDLE_S = 60
WARMING_UP_S = 15

Layout = Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The replicas of each partition before and after the plan, and its size in records of 64 KiB."""

    before: Layout
    after: Layout
    records: Mapping[int, int]

    @property
    def busiest(self) -> tuple[str, int]:
        """The direction of a broker, in or out, with the most bytes."""
        return max(self.loads, key=lambda port: (self.loads[port], port))

    def ports(self, number: int) -> list[tuple[str, int]]:
        """List the broker and direction of each end of a partition's copies."""
        added = sorted(set(self.after[number]) - set(self.before[number]))
        return [port for broker in added for port in (("in", broker), ("out", self.before[number][0]))]

    @property
    def loads(self) -> Counter[tuple[str, int]]:
        loads: Counter[tuple[str, int]] = Counter()
        for number, records in self.records.items():
            for port in self.ports(number):
                loads[port] += records * RECORD_BYTES
        return loads


def skewed_plan(partitions: int) -> Plan:
    """Give each partition another second replica; sizes are log-normal, leaders and destinations are drawn."""
    chance = Random(15)
    before: dict[int, tuple[int, ...]] = {}
    after: dict[int, tuple[int, ...]] = {}
    for number in range(partitions):
        leader, follower, added = chance.sample(BROKERS, 3)
        before[number], after[number] = (leader, follower), (leader, added)
    records = {number: max(1, round(MEDIAN_RECORDS * chance.lognormvariate(0, SIGMA))) for number in before}
    return Plan(before, after, records)


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Move the same partitions with Drover and with the stock tool, throttled alike; then with the tool unthrottled."""
    partitions, seconds = (30, 15) if quick else (300, 120)
    plan = skewed_plan(partitions)
    rate = plan.loads[plan.busiest] // seconds
    async with fresh_cluster(SMALL_FETCHES) as cluster, drover_on(cluster, "moving") as (rig, tail):
        for topic in (OURS, THEIRS):
            await rig.create_topic(topic, plan.before)
            await rig.fill(topic, plan.records)
        await rig.create_topic(TRAFFIC, {number: (1 + number, 1 + (number + 1) % 4) for number in range(4)})
        await rig.start_worker("worker")
        await tail.until(lambda: tail.owners == {"worker"}, "the worker owns every shard")
        async with producing(rig) as waits:
            await _warm_up(rig, tail, 10 if quick else 100)
            idle_ms = await _idle(rig, waits)
            throttle = ("--throttle", str(rate))
            ours = await _ours(rig, tail, OURS, plan.after, *throttle)
            ours_ms = waits.p99_ms()
            theirs = await _theirs(rig, THEIRS, plan.after, *throttle)
            theirs_ms = waits.p99_ms()
            # The tool takes its throttle away when everything has ended; then the way back is not throttled.
            await _stock(rig, THEIRS, plan.after, "--verify")
            waits.skip()
            await _theirs(rig, THEIRS, plan.before)
            freely_ms = waits.p99_ms()
        idle = _slot_idle_ms(tail, plan)
    bound_s = plan.loads[plan.busiest] / rate
    say(f"bound {bound_s:.1f} s at {rate:,} bytes/s: drover {ours.seconds:.1f} s, all at once {theirs.seconds:.1f} s")
    share = ours.rate(plan.busiest, plan.after, plan.before) / rate * 100
    name = f"{partitions} skewed partitions, throttled"
    return (
        Row(f"{name}: first to last, against the lower bound", ours.seconds, "s", bound_s, AtMost(1.10)),
        Row(f"{name}: against the bound less the burst", ours.seconds, "s", bound_s - BURST_S, goal=AtMost(1.10)),
        Row(
            "the stock tool with the same throttle: against the bound less the burst",
            theirs.seconds,
            "s",
            bound_s - BURST_S,
        ),
        Row(f"{name}: first to last, against all at once", ours.seconds, "s", theirs.seconds, AtMost(1.03)),
        Row(f"{name}: most extra replicas", ours.peak_extra, "replicas", theirs.peak_extra, AtMost(0.1)),
        Row(f"{name}: slot idle, done to next accepted, p95", percentile(idle, 95), "ms", gate=AtMost(500)),
        Row(f"{name}: bytes per second at the busiest way, least of the limit", share, "%", gate=AtLeast(95)),
        Row(f"{name}: bytes per second at the busiest way, most of the limit", share, "%", gate=AtMost(102)),
        Row(f"{name}: producer p99 (acks=all), against idle", ours_ms, "ms", idle_ms, AtMost(1.5)),
        Row("the stock tool with the same throttle: producer p99, against idle", theirs_ms, "ms", idle_ms),
        Row("the stock tool unthrottled: producer p99, against idle", freely_ms, "ms", idle_ms),
    )


async def _idle(rig: Rig, waits: Waits) -> float:
    """Return what a write waits for while nothing moves; what watches the moves watches then, too."""
    waits.skip()
    async with watching(rig.driver, OURS):
        await asyncio.sleep(IDLE_S)
    return waits.p99_ms()


async def _warm_up(rig: Rig, tail: Tail, partitions: int) -> None:
    """Move partitions there with Drover and back with the stock tool, twice: the brokers' code is warm then."""
    plan = skewed_plan(partitions)
    await rig.create_topic(WARMING_UP, plan.before)
    await rig.fill(WARMING_UP, plan.records)
    throttle = ("--throttle", str(plan.loads[plan.busiest] // WARMING_UP_S))
    for number in range(2):
        await _ours(rig, tail, WARMING_UP, plan.after, *throttle, plan=f"{WARMING_UP}-{number}")
        await _theirs(rig, WARMING_UP, plan.before, *throttle)
        await _stock(rig, WARMING_UP, plan.before, "--verify")


def _targets(topic: str, layout: Layout) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition(topic, number): replicas for number, replicas in layout.items()}


async def _ours(rig: Rig, tail: Tail, topic: str, after: Layout, *options: str, plan: str = OURS) -> Watched:
    file = rig.write_plan(topic, _targets(topic, after))
    async with watching(rig.driver, topic) as watched:
        await rig.drover("alter", str(file), "--plan", plan, *options, "--reason", "benchmark")
        state = tail.cluster(SHARD, MANAGED)
        await tail.until(lambda: plan in state.plans and not state.reassignments, "the plan to end", 1200)
    check(state.plans[plan].completed == len(after), "not every partition was moved")
    return watched


async def _theirs(rig: Rig, topic: str, after: Layout, *options: str) -> Watched:
    async with watching(rig.driver, topic) as watched:
        said = await _stock(rig, topic, after, "--execute", *options)
        check(TOOL_SAID in said, f"the stock tool did not do it: {said}")
        await watched.end()
    return watched


async def _stock(rig: Rig, topic: str, after: Layout, *what: str) -> str:
    file = rig.write_plan(f"{topic}-stock", _targets(topic, after))
    java, environment = stock_tool()
    arguments = ("--bootstrap-server", rig.cluster.bootstrap, "--reassignment-json-file", str(file), *what)
    return await run_program((str(java), *TOOL_FLAGS, TOOL, *arguments), environment)


def _slot_idle_ms(tail: Tail, plan: Plan) -> list[float]:
    """Return how long each step's slots were free before the controller accepted it; the first steps do not count."""
    freed_ms: dict[tuple[str, int], int] = {}
    idle: list[float] = []
    for seen in tail.seen:
        at_ms = seen.valid.batch.at_ms
        for event in seen.valid.batch.events:
            if isinstance(event, ReassignmentCompleted) and event.topic == OURS:
                freed_ms.update(dict.fromkeys(plan.ports(event.partition), at_ms))
            elif isinstance(event, CallAccepted) and event.topic == OURS:
                freed = [freed_ms[port] for port in plan.ports(event.partition) if port in freed_ms]
                idle += [at_ms - max(freed)] if freed else []
    return idle


METHOD = """\
300 partitions with two replicas and 64 KiB to some MiB of data (log-normal, sigma 1), with drawn leaders and
destinations, get another second replica: once with `drover alter` and the default limits, once with the stock tool's
`--execute`, which starts everything at once, with the same throttle, and back with the tool unthrottled. *Bound*: the
bytes of the busiest way into or out of a broker at the throttle, two minutes. Kafka's average over eleven seconds lets
ten seconds' worth through at once, so both could be as much sooner: *less the burst*. *First to last*: from the first
look at Kafka's list of reassignments (every 100 ms) that shows one to the last one that does. *Extra replicas*: those
that are being added. *Slot idle*: from the log record in which the last reassignment is completed that used one of a
partition's two ways to the one that says that the controller accepted the partition's own call. *Bytes per second*:
what is on the disks of the busiest broker, sampled every second, between a fifth and four fifths of it. A producer
in a process of its own sends 1 KiB every 20 ms with acks=all to a topic that does not move; its baseline is the minute
before, in which the benchmark looks at Kafka's list and at the disks as it does later. 100 other partitions were moved
there by Drover and back by the tool twice before that, so that the brokers' code is warm for both. The brokers fetch 64
KiB of a partition at a time, and have Kafka's own averages."""
BENCHMARK = Benchmark("moving", "A whole plan on real brokers, beside the stock tool", METHOD, run)
