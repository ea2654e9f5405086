"""`drover alter` of 200 partitions beside the stock tool on the same plan, by turns."""

import asyncio
import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from bench.results import AtMost, Benchmark, Row, check, say
from bench.rig import MANAGED, Rig, drover_on, fresh_cluster, run_program, wait_until
from bench.tail import Tail
from drover.cluster.port import AlterRequest
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallAccepted
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.jars import class_path, ensure, find_java
from drover.state.scheduling import Limits

PARTITIONS = 200
TOPIC = "orders"
SHARD = shard_of(MANAGED, DEFAULT_SHARDS)
SETTLE_S = 0.5
AT_ONCE = 500
# What kafka-run-class.sh gives the tool's JVM, without the time that the shell script itself takes.
TOOL_FLAGS = (
    "-Xmx256M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TOOL_SAID = "Successfully started partition reassignments"

Layouts = Mapping[TopicPartition, tuple[int, ...]]

BEFORE: Layouts = {
    TopicPartition(TOPIC, number): (1 + number % 4, 1 + (number + 1) % 4) for number in range(PARTITIONS)
}
AFTER: Layouts = {key: (*replicas, 1 + (key.partition + 2) % 4) for key, replicas in BEFORE.items()}


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Take the times of both, pair by pair, after one pair that warms everything up."""
    limits = Limits(max_moves_per_broker=1000)
    ours: list[tuple[float, float]] = []
    tool: list[float] = []
    async with fresh_cluster() as cluster, drover_on(cluster, "alter", limits=limits) as (rig, tail):
        await rig.create_topic(TOPIC, {key.partition: replicas for key, replicas in BEFORE.items()})
        await rig.start_worker("worker")
        await tail.until(lambda: tail.owners == {"worker"}, "the worker owns every shard")
        for pair in range(3 if quick else 10):
            ours.append(await _ours(rig, tail, f"plan-{pair}"))
            await back(rig, BEFORE)
            tool.append(await stock(rig, f"plan-{pair}", AFTER))
            await back(rig, BEFORE)
            say(f"pair {pair}: drover {ours[-1][0]:.2f} s (exit {ours[-1][1]:.2f} s), stock tool {tool[-1]:.2f} s")
    accepted = statistics.median(accepted for accepted, _ in ours[1:])
    exits = statistics.median(exit_s for _, exit_s in ours[1:])
    exit_of_tool = statistics.median(tool[1:])
    name = f"start of the process to {PARTITIONS} partitions accepted by the controller"
    return (
        Row(name, accepted, "s", exit_of_tool, gate=AtMost(0.8), goal=AtMost(0.6)),
        Row("start of the process to its exit, the outcome printed", exits, "s", exit_of_tool),
    )


async def _ours(rig: Rig, tail: Tail, plan: str) -> tuple[float, float]:
    """Return the seconds until everything was accepted, and until the command had ended."""
    file = rig.write_plan(plan, AFTER)
    first = len(tail.seen)
    began_s = await rig.drover("alter", str(file), "--plan", plan, "--reason", "benchmark")
    ended_s = time.time()
    state = tail.cluster(SHARD, MANAGED)
    await tail.until(lambda: plan in state.plans and not state.reassignments, f"{plan} to end")
    check(state.plans[plan].completed == PARTITIONS, f"not all of {plan} was moved")
    accepted = {
        event.key: seen.valid.batch.at_ms
        for seen in tail.seen[first:]
        for event in seen.valid.batch.events
        if isinstance(event, CallAccepted)
    }
    check(accepted.keys() == AFTER.keys(), "the log does not hold one accepted call for each partition")
    return max(accepted.values()) / 1000 - began_s, ended_s - began_s


async def stock(rig: Rig, plan: str, after: Layouts) -> float:
    """Let the stock tool do a plan that is written already; return the seconds that its process takes."""
    file = rig.directory / f"{plan}.json"
    arguments = ("--bootstrap-server", rig.cluster.bootstrap, "--reassignment-json-file", str(file), "--execute")
    java, environment = stock_tool()
    began = time.monotonic()
    output = await run_program((str(java), *TOOL_FLAGS, TOOL, *arguments), environment)
    took_s = time.monotonic() - began
    check(TOOL_SAID in output, f"the stock tool did not do it: {output}")
    await _wait_for(rig, after)
    return took_s


def stock_tool() -> tuple[Path, dict[str, str]]:
    """Return Java and the environment in which it finds the stock tool."""
    return find_java(), {**os.environ, "CLASSPATH": class_path(ensure("kafka"))}


async def back(rig: Rig, before: Layouts) -> None:
    """Bring the lists back that were there before, by plain calls, and let the cluster come to rest."""
    requests = [AlterRequest(key, replicas) for key, replicas in before.items()]
    for first in range(0, len(requests), AT_ONCE):
        answers = await rig.driver.alter(requests[first : first + AT_ONCE])
        check(all(answer.accepted for answer in answers.values()), "the way back was refused")
    await _wait_for(rig, before)
    await asyncio.sleep(SETTLE_S)


async def _wait_for(rig: Rig, layouts: Layouts) -> None:
    async def reached() -> bool:
        seen = await rig.driver.observe(list(layouts))
        found = {key: facts.replicas for key, facts in seen.partitions.items() if facts is not None}
        return not seen.moves and found == layouts

    await wait_until(reached, "the cluster to have the layout that was asked for")


METHOD = """\
200 empty partitions with two replicas get a third one; four brokers, one running worker, limits raised so that all
may be in flight. Drover: wall clock from the start of `drover alter` to the time of the log record with the last
`call-accepted` event. *Baseline*: the stock tool's `--execute` on the same file, from the start of its JVM (flags
of `kafka-run-class.sh`) to its exit. By turns, 9 pairs after one for warming up; between two runs the layout is put
back and everything has ended. Medians, and the ratio of the medians."""
BENCHMARK = Benchmark("alter", "drover alter of 200 partitions", METHOD, run)
