"""Commands as an operator types them: `drover alter` of 200 partitions beside the stock tool, and `drover status`.

200 empty partitions with two replicas get a third one; four brokers, one running worker, limits raised so that all may
be in flight. Drover: wall clock from the start of the process to the time of the log record with the last
`call-accepted` event. Baseline: the stock tool's `--execute` of the same file, from the start of its JVM to its exit.
Between two runs the layout is restored. By turns; medians after one pair that warms everything up. Status: from the
start of the process to the first line that it prints, the median of ten.
"""

import asyncio
import time
from statistics import median

from bench.results import AtMost, Benchmark, Row, check, say
from bench.rig import MANAGED, REPOSITORY, Layouts, Rig, drover_on, fresh_cluster
from bench.tail import Tail
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallAccepted
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.state.scheduling import Limits

PARTITIONS = 200
TOPIC = "orders"
SHARD = shard_of(MANAGED, DEFAULT_SHARDS)

BEFORE: Layouts = {
    TopicPartition(TOPIC, number): (1 + number % 4, 1 + (number + 1) % 4) for number in range(PARTITIONS)
}
AFTER: Layouts = {key: (*replicas, 1 + (key.partition + 2) % 4) for key, replicas in BEFORE.items()}


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Time both, pair by pair."""
    limits = Limits(max_moves_per_broker=1000)
    accepted_s: list[float] = []
    tool_s: list[float] = []
    async with fresh_cluster() as cluster, drover_on(cluster, "alter", limits=limits) as (rig, tail):
        await rig.create_topic(TOPIC, {key.partition: replicas for key, replicas in BEFORE.items()})
        await rig.start_worker("worker")
        await tail.until(lambda: tail.owners == {"worker"}, "the worker owns every shard")
        for pair in range(3 if quick else 10):
            accepted_s.append(await _drover(rig, tail, f"plan-{pair}"))
            await rig.bring_back(BEFORE)
            began_s = time.monotonic()
            await rig.stock_tool(rig.write_plan("stock", AFTER))
            tool_s.append(time.monotonic() - began_s)
            await rig.until_laid_out(AFTER)
            await rig.bring_back(BEFORE)
            say(f"pair {pair}: drover {accepted_s[-1]:.2f} s, stock tool {tool_s[-1]:.2f} s")
        status_s = [await _status(rig) for _ in range(2 if quick else 10)]
    name = f"`drover alter` of {PARTITIONS} partitions until accepted, beside the stock tool"
    return (
        Row(name, median(accepted_s[1:]), "s", median(tool_s[1:]), AtMost(0.6)),
        Row("`drover status` until its first line", median(status_s), "s", goal=AtMost(1)),
    )


async def _drover(rig: Rig, tail: Tail, plan: str) -> float:
    """Return the seconds from the start of the process to the last accepted call."""
    first = len(tail.seen)
    began_s = await rig.drover("alter", str(rig.write_plan(plan, AFTER)), "--plan", plan, "--reason", "benchmark")
    state = tail.cluster(SHARD, MANAGED)
    await tail.until(lambda: plan in state.plans and not state.reassignments, f"{plan} to end")
    check(state.plans[plan].completed == PARTITIONS, f"not all of {plan} was moved")
    accepted_ms = {
        event.key: seen.valid.batch.at_ms
        for seen in tail.seen[first:]
        for event in seen.valid.batch.events
        if isinstance(event, CallAccepted)
    }
    check(accepted_ms.keys() == AFTER.keys(), "the log does not hold one accepted call for each partition")
    return max(accepted_ms.values()) / 1000 - began_s


async def _status(rig: Rig) -> float:
    """Return the seconds from the start of `drover status` to the first line that it prints."""
    began_s = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *rig.start_arguments(), "status", cwd=REPOSITORY, env=rig.environment, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None, "it is a pipe"
    try:
        line = await process.stdout.readline()
        seconds = time.monotonic() - began_s
        await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    check(line and process.returncode == 0, f"drover status ended with {process.returncode}")
    return seconds


BENCHMARK = Benchmark("alter", run)
