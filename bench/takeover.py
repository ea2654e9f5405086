"""How long a plan stands still when its owner is killed: to the first decision and to the first calls of the next."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.results import AtMost, Benchmark, Row, check, percentile, say
from bench.rig import EVEN_COPYING, MANAGED, Rig, drover_on, fresh_cluster
from bench.tail import Seen, Tail
from drover.client.client import Client
from drover.events.base import PartitionEvent
from drover.events.commands import BrokerFailed
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallAccepted
from drover.events.records import AnyEvent
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


@dataclass(frozen=True, slots=True)
class Takeover:
    """Seconds from the SIGKILL to what the successor did first."""

    decision_s: float
    adopted_s: float
    alter_s: float


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Kill the owner again and again, each time with a plan of its own half way."""
    found: list[Takeover] = []
    async with fresh_cluster(EVEN_COPYING) as cluster:
        for number in range(1 if quick else 3):
            found.append(await _once(cluster, number))
            one = found[-1]
            say(f"decision {one.decision_s:.1f} s, adopted {one.adopted_s:.1f} s, next alter {one.alter_s:.1f} s")
    return (
        *_rows("first decision of a command sent after the kill", [one.decision_s for one in found], SESSION_S + 5),
        *_rows("first look at adopted moves, recorded", [one.adopted_s for one in found], SESSION_S + 10),
        *_rows("next alter call, accepted by the controller", [one.alter_s for one in found], None),
    )


def _rows(what: str, seconds: list[float], bound_s: float | None) -> tuple[Row, Row]:
    gate = None if bound_s is None else AtMost(bound_s)
    return (
        Row(f"{what}, median", percentile(seconds, 50), "s"),
        Row(f"{what}, longest", max(seconds), "s", gate=gate),
    )


async def _once(cluster: LocalCluster, number: int) -> Takeover:
    """Run a Drover of its own: a repetition inherits no rebalance of the one before."""
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
        await rig.drover(
            "alter", str(rig.write_plan(plan, targets)), "--plan", plan, "--throttle", THROTTLE, "--reason", "benchmark"
        )
        state = tail.cluster(SHARD, MANAGED)
        await tail.until(lambda: state.plans[plan].completed >= IN_FLIGHT, "the plan to be under way")
        await tail.until(lambda: bool(_copying(tail)), "a move to be copying")
        takeover = await _kill(rig, tail)
        await tail.until(lambda: not state.reassignments, "the plan to end", timeout_s=180)
        check(state.plans[plan].completed == PARTITIONS, "not every partition was moved")
        return takeover


async def _kill(rig: Rig, tail: Tail) -> Takeover:
    owner = tail.folds[SHARD].owner
    killed_s = time.time()
    await rig.end_worker(owner)
    adopted = _copying(tail)
    first = len(tail.seen)
    command = BrokerFailed(
        id=f"after-{owner}", cluster=MANAGED, by="bench@example", reason="benchmark", broker=9, at_ms=1
    )
    async with Client(rig.connection) as client:
        await client.submit(command)

    def after() -> list[Seen]:
        batches = (seen for seen in tail.seen[first:] if seen.valid.shard == SHARD)
        return [seen for seen in batches if seen.owner != owner]

    def decided(seen: Seen) -> bool:
        return any(outcome.id == command.id for outcome in seen.valid.batch.outcomes)

    def looked(seen: Seen) -> bool:
        return any(_is_about(event, adopted) for event in seen.valid.batch.events)

    def called(seen: Seen) -> bool:
        return any(isinstance(event, CallAccepted) for event in seen.valid.batch.events)

    firsts: list[float] = []
    for what in (decided, looked, called):
        await tail.until(partial(_any, what, after), "the successor to take over", timeout_s=60)
        firsts.append(next(seen.received_ms for seen in after() if what(seen)) / 1000 - killed_s)
    return Takeover(*firsts)


def _any(what: Callable[[Seen], bool], batches: Callable[[], list[Seen]]) -> bool:
    return any(map(what, batches()))


def _copying(tail: Tail) -> set[TopicPartition]:
    state = tail.cluster(SHARD, MANAGED)
    return {key for key in state.moves.in_flight if state.reassignments[key].phase is Phase.COPYING}


def _is_about(event: AnyEvent, keys: set[TopicPartition]) -> bool:
    return isinstance(event, PartitionEvent) and event.key in keys


METHOD = f"""\
Two workers with the default session timeout of {SESSION_S:.0f} s; the one that owns the cluster's shard is killed
while a throttled plan has moves in flight and more queued. Seconds from the SIGKILL to the moment at which an
independent consumer got the successor's log record with (a) the outcome of a command that was written after the
kill, (b) the first event about a move that was copying when the owner died, which takes a look at the cluster, (c)
the first alter call that was accepted. Three repetitions, each with topics and workers of its own. The brokers copy in
small fetches, as in the completion benchmark, so that a throttle spreads the moves."""
BENCHMARK = Benchmark("takeover", "Takeover after SIGKILL of the owner", METHOD, run)
