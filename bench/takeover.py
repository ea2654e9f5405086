"""How long a plan stands still when the owner of its shard is killed.

Two workers with the default session timeout; the one that owns the cluster's shard is killed while a throttled plan has
moves in flight and more queued. Seconds from the SIGKILL to the time at which an independent consumer received the
successor's log record with the outcome of a command that was sent after the kill, and the one with the first accepted
alter call. The longest of three repetitions, each with topics and workers of its own.
"""

import time
from collections.abc import Callable

from bench.results import AtMost, Benchmark, Row, check, say
from bench.rig import EVEN_COPYING, MANAGED, Rig, drover_on, fresh_cluster
from bench.tail import Seen, Tail
from drover.client.client import Client
from drover.events.commands import BrokerFailed
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallAccepted
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.local import LocalCluster
from drover.settings.settings import WorkerSettings
from drover.state.phase import Phase
from drover.state.scheduling import Limits

SHARD = shard_of(MANAGED, DEFAULT_SHARDS)
SESSION_S = WorkerSettings().session_timeout_ms / 1000
PARTITIONS = 48
RECORDS = 16
THROTTLE = "1MiB"
IN_FLIGHT = 4


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Kill the owner again and again, each time with a plan half way."""
    takeovers: list[tuple[float, float]] = []
    async with fresh_cluster(EVEN_COPYING) as cluster:
        for number in range(1 if quick else 3):
            takeovers.append(await _take_over(cluster, number))
            say("decision {:.1f} s, next alter {:.1f} s".format(*takeovers[-1]))
    goal = AtMost(SESSION_S + 3)
    return (
        Row("SIGKILL of the owner to its successor's first decision", max(first for first, _ in takeovers), "s",
            goal=goal),
        Row("SIGKILL of the owner to its successor's first alter call", max(call for _, call in takeovers), "s",
            goal=goal),
    )  # fmt: skip


async def _take_over(cluster: LocalCluster, number: int) -> tuple[float, float]:
    topic, plan = f"orders-{number}", f"plan-{number}"
    layout = {index: (1 + index % 4, 1 + (index + 1) % 4) for index in range(PARTITIONS)}
    targets = {TopicPartition(topic, index): (1 + (index + 2) % 4, 1 + (index + 1) % 4) for index in range(PARTITIONS)}
    limits = Limits(max_partitions_in_flight=IN_FLIGHT)
    async with drover_on(cluster, f"takeover-{number}", limits=limits) as (rig, tail):
        await rig.create_topic(topic, layout)
        await rig.fill(topic, dict.fromkeys(layout, RECORDS))
        workers = {"first", "second"}
        for worker in workers:
            await rig.start_worker(worker)
        await tail.until(lambda: tail.owners == workers, "both workers own shards")
        file = rig.write_plan(plan, targets)
        await rig.drover("alter", str(file), "--plan", plan, "--throttle", THROTTLE, "--reason", "benchmark")
        state = tail.cluster(SHARD, MANAGED)
        await tail.until(lambda: state.plans[plan].completed >= IN_FLIGHT, "the plan to be under way")
        await tail.until(
            lambda: any(state.reassignments[key].phase is Phase.COPYING for key in state.moves.in_flight),
            "a move to be copying",
        )
        takeover = await _kill(rig, tail)
        await tail.until(lambda: not state.reassignments, "the plan to end", timeout_s=180)
        check(state.plans[plan].completed == PARTITIONS, "not every partition was moved")
        return takeover


async def _kill(rig: Rig, tail: Tail) -> tuple[float, float]:
    owner = tail.folds[SHARD].owner
    killed_s = time.time()
    await rig.kill_worker(owner)
    first = len(tail.seen)
    command = BrokerFailed(
        id=f"after-{owner}", cluster=MANAGED, by="bench@example", reason="benchmark", broker=9, at_ms=1
    )
    async with Client(rig.connection) as client:
        await client.submit(command)

    def matching(condition: Callable[[Seen], bool]) -> list[Seen]:
        """Return the successor's batches that meet a condition."""
        batches = (seen for seen in tail.seen[first:] if seen.valid.shard == SHARD and seen.owner != owner)
        return [seen for seen in batches if condition(seen)]

    async def first_s(condition: Callable[[Seen], bool]) -> float:
        await tail.until(lambda: bool(matching(condition)), "the successor to take over", timeout_s=60)
        return matching(condition)[0].received_ms / 1000 - killed_s

    return (
        await first_s(lambda seen: any(outcome.id == command.id for outcome in seen.valid.batch.outcomes)),
        await first_s(lambda seen: any(isinstance(event, CallAccepted) for event in seen.valid.batch.events)),
    )


BENCHMARK = Benchmark("takeover", run)
