"""1,500 empty partitions with the default limits beside one request of the stock tool for all of them, by turns."""

import asyncio
import statistics
import time
from collections.abc import Mapping

from bench.alter import back, stock
from bench.results import AtMost, Benchmark, Row, check, say
from bench.rig import MANAGED, Rig, drover_on, fresh_cluster
from bench.tail import Tail
from drover.events.partitions import TopicPartition
from drover.events.topics import DEFAULT_SHARDS, shard_of

PARTITIONS = 1500
TOPIC = "light"
SHARD = shard_of(MANAGED, DEFAULT_SHARDS)
# All that is moved has ended by then, with the margin of a slow machine.
END_S = 240.0
REST_S = 3.0

Layouts = Mapping[TopicPartition, tuple[int, ...]]


def _layouts(count: int) -> tuple[Layouts, Layouts]:
    """Each partition of two replicas has one of them replaced."""
    keys = [TopicPartition(TOPIC, number) for number in range(count)]
    before = {key: (1 + key.partition % 4, 1 + (key.partition + 1) % 4) for key in keys}
    return before, {key: (first, 1 + (key.partition + 2) % 4) for key, (first, _) in before.items()}


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Take the times of both, pair by pair, after one pair that warms everything up."""
    count = 150 if quick else PARTITIONS
    before, after = _layouts(count)
    ours: list[float] = []
    tool: list[float] = []
    async with fresh_cluster() as cluster, drover_on(cluster, "light") as (rig, tail):
        await rig.create_topic(TOPIC, {key.partition: replicas for key, replicas in before.items()})
        await rig.start_worker("worker")
        await tail.until(lambda: tail.owners == {"worker"}, "the worker owns every shard")
        for pair in range(2 if quick else 4):
            ours.append(await _ours(rig, tail, f"plan-{pair}", after))
            await _rest(rig, before)
            tool.append(await _stock(rig, f"plan-{pair}", after))
            await _rest(rig, before)
            say(f"pair {pair}: drover {ours[-1]:.2f} s, stock tool {tool[-1]:.2f} s")
    name = f"start of the process to {count:,} empty partitions moved, default limits"
    return (Row(name, statistics.median(ours[1:]), "s", statistics.median(tool[1:]), gate=AtMost(3.0)),)


async def _ours(rig: Rig, tail: Tail, plan: str, after: Layouts) -> float:
    """Return the seconds until the log says that everything has ended."""
    began_s = await rig.drover("alter", str(rig.write_plan(plan, after)), "--plan", plan, "--reason", "benchmark")
    state = tail.cluster(SHARD, MANAGED)
    await tail.until(lambda: plan in state.plans and not state.reassignments, f"{plan} to end", END_S)
    check(state.plans[plan].completed == len(after), f"not all of {plan} was moved")
    return tail.seen[-1].valid.batch.at_ms / 1000 - began_s


async def _rest(rig: Rig, before: Layouts) -> None:
    """Bring the lists back; every broker must know, or the next plan begins at a list of before."""
    await back(rig, before)
    await asyncio.sleep(REST_S)


async def _stock(rig: Rig, plan: str, after: Layouts) -> float:
    """Return the seconds until the cluster has the layout."""
    began_s = time.monotonic()
    await stock(rig, plan, after)
    return time.monotonic() - began_s


METHOD = """\
1,500 empty partitions with two replicas have one of them replaced; four brokers, one running worker, the default limits
(five slots into each broker and five out of it, of which an empty copy takes a sixteenth). Drover: wall clock from the
start of `drover alter` to the time of the last record of the plan in the log. *Baseline*: the stock tool's
`--execute` on the same file, in one request, from the start of its JVM until the cluster has the layout. By turns,
3 pairs after one for warming up. Medians, and the ratio of the medians."""
BENCHMARK = Benchmark("light", "1,500 empty partitions with default limits", METHOD, run)
