"""A broker that leads 1,500 partitions gives them up and gets them back, beside a plain loop of the stock tools."""

import asyncio
import json
import os
import statistics
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from bench.alter import TOOL, TOOL_FLAGS
from bench.results import AtMost, Benchmark, BenchmarkError, Row, check, say
from bench.rig import MANAGED, Rig, drover_on, fresh_cluster, run_program
from drover.cluster.port import AlterRequest
from drover.jars import class_path, ensure, find_java
from drover.leadership.order import deprioritise
from drover.state.cluster import ClusterState
from events.partitions import TopicPartition
from events.topics import DEFAULT_SHARDS, shard_of

TOPIC = "orders"
LISTED = 3
OTHERS = (1, 2, 4)
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
# A look at 1,500 partitions takes a quarter of a core at this pace, and as much of a broker; what has ended before the
# first one counts as if it had just ended.
FIRST_LOOK_S, LOOK_EVERY_S = 1.5, 0.1
# A write wakes the fetches of followers, for a thousand partitions each: 200 a second, evenly spaced, take 1.4 of two
# cores before a leader has moved, and 1.1 in four bursts a second. Two bursts leave the machine to what is measured.
WRITES_PER_S = 100
BURSTS_PER_S = 2
SETTLE_S = 4.0

Lists = Mapping[TopicPartition, tuple[int, ...]]
Action = Callable[[], Coroutine[None, None, None]]


@dataclass(slots=True)
class Seen:
    """The observations of a run: how many writes succeeded, those that failed, and partitions without a leader."""

    written: int = 0
    errors: list[str] = field(default_factory=list)
    offline: set[TopicPartition] = field(default_factory=set)


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Measure both by turns on one cluster."""
    count, rounds = (150, 1) if quick else (1500, 4)
    before = {
        TopicPartition(TOPIC, number): (LISTED, OTHERS[number % 3], OTHERS[(number + 1) % 3]) for number in range(count)
    }
    ours: list[tuple[float, float]] = []
    stock: list[tuple[float, float]] = []
    seen = Seen()
    async with fresh_cluster() as cluster, drover_on(cluster, "leaders") as (rig, tail):
        await rig.create_topic(TOPIC, {key.partition: replicas for key, replicas in before.items()})
        await rig.start_worker("worker")
        await tail.until(lambda: tail.owners == {"worker"}, "the worker owns every shard")
        await _lead_the_log_elsewhere(rig)
        async with _writing(rig, count, seen):
            for number in range(rounds + 1):
                ours.append(await _round(rig, before, seen, _demote(rig), _restore(rig)))
                state = tail.cluster(shard_of(MANAGED, DEFAULT_SHARDS), MANAGED)
                await tail.until(partial(_is_at_rest, state), "every order to be back")
                stock.append(await _round(rig, before, seen, _stock(rig, _without(before)), _stock(rig, before)))
                say(f"round {number}: drover {_told(ours[-1])}, stock tools {_told(stock[-1])}")
        check(seen.written, "nothing was written meanwhile")
    first = 0 if quick else 1
    given, restored = (statistics.median(one[side] for one in ours[first:]) for side in (0, 1))
    tools_given, tools_restored = (statistics.median(one[side] for one in stock[first:]) for side in (0, 1))
    return (
        Row(f"start of the command to {count:,} leaders given up", given, "s", tools_given, gate=AtMost(1)),
        Row("the same, by the clock", given, "s", goal=AtMost(2)),
        Row(
            f"start of the command to {count:,} leaders restored, in order",
            restored,
            "s",
            tools_restored,
            gate=AtMost(1),
        ),
        Row("the same, by the clock", restored, "s", goal=AtMost(2)),
        Row("partitions that were seen without a leader", len(seen.offline), "partitions", gate=AtMost(0)),
        Row("writes at acks=all that failed", len(seen.errors), "writes", gate=AtMost(0)),
        Row("writes at acks=all that succeeded meanwhile", seen.written, "writes"),
    )


async def _lead_the_log_elsewhere(rig: Rig) -> None:
    """Let the broker lead none of Drover's own partitions: where it does is drawn when a cluster is made."""
    survey = await rig.driver.survey()
    led = [key for key, facts in survey.partitions.items() if key.topic != TOPIC and facts.leader == LISTED]
    requests = [AlterRequest(key, deprioritise(survey.partitions[key].replicas, {LISTED})) for key in led]
    await rig.driver.alter(requests)
    await rig.driver.elect_leaders(led)
    while led:
        await asyncio.sleep(LOOK_EVERY_S)
        survey = await rig.driver.survey()
        led = [key for key in led if survey.partitions[key].leader == LISTED]


async def _round(
    rig: Rig,
    before: Lists,
    seen: Seen,
    give_up: Action,
    give_back: Action,
) -> tuple[float, float]:
    """Return the seconds from the start of the first process to nothing led, and from the next to all restored."""
    times = []
    for command, is_there in ((give_up, _is_given_up), (give_back, _is_restored)):
        await asyncio.sleep(SETTLE_S)
        began = time.monotonic()
        running = asyncio.create_task(command())
        await asyncio.sleep(FIRST_LOOK_S)
        while not is_there(await _look(rig, before, seen), before):
            check(time.monotonic() - began < 300, "the leaders do not move")
            await asyncio.sleep(LOOK_EVERY_S)
        times.append(time.monotonic() - began)
        await running
    return times[0], times[1]


Found = Mapping[TopicPartition, tuple[int | None, tuple[int, ...]]]


async def _look(rig: Rig, before: Lists, seen: Seen) -> Found:
    survey = await rig.driver.survey()
    found = {key: (survey.partitions[key].leader, survey.partitions[key].replicas) for key in before}
    seen.offline.update(key for key, (leader, _) in found.items() if leader is None)
    return found


def _is_at_rest(state: ClusterState) -> bool:
    return not (state.orders or state.leaders_under_way or state.reassignments)


def _is_given_up(found: Found, _before: Lists) -> bool:
    return all(leader not in {LISTED, None} for leader, _ in found.values())


def _is_restored(found: Found, before: Lists) -> bool:
    return all((leader, replicas) == (LISTED, before[key]) for key, (leader, replicas) in found.items())


def _demote(rig: Rig) -> Action:
    return lambda: _drover(rig, "demote")


def _restore(rig: Rig) -> Action:
    return lambda: _drover(rig, "restore")


async def _drover(rig: Rig, verb: str) -> None:
    await rig.drover("leaders", verb, str(LISTED), "--topic", TOPIC, "--reason", "benchmark")


def _stock(rig: Rig, lists: Lists) -> Action:
    """Make the plain loop: reorder by one tool, then elect by the other, each in a process of its own."""

    async def both() -> None:
        plan = rig.write_plan("reorder", lists)
        elected = rig.directory / "elect.json"
        partitions = [{"topic": key.topic, "partition": key.partition} for key in lists]
        elected.write_text(json.dumps({"partitions": partitions}), encoding="utf-8")
        bootstrap = ("--bootstrap-server", rig.cluster.bootstrap)
        await _tool(TOOL, *bootstrap, "--reassignment-json-file", str(plan), "--execute")
        for is_last in (False, False, True):
            try:
                await _tool(ELECT, *bootstrap, "--election-type", "preferred", "--path-to-json-file", str(elected))
            except BenchmarkError:
                # It fails as a whole where one replica is out of sync at that moment: people call it again.
                if is_last:
                    raise
            else:
                return

    return both


async def _tool(name: str, *arguments: str) -> None:
    environment = {**os.environ, "CLASSPATH": class_path(ensure("kafka"))}
    await run_program((str(find_java()), *TOOL_FLAGS, name, *arguments), environment)


def _without(before: Lists) -> Lists:
    return {key: deprioritise(replicas, {LISTED}) for key, replicas in before.items()}


@asynccontextmanager
async def _writing(rig: Rig, count: int, seen: Seen) -> AsyncIterator[None]:
    """Write to one partition after the other at acks=all; the client retries as it does by default."""
    producer = AIOKafkaProducer(bootstrap_servers=rig.cluster.bootstrap, acks="all")
    await producer.start()
    underway: set[asyncio.Task[None]] = set()

    async def write(partition: int) -> None:
        try:
            await producer.send_and_wait(TOPIC, b"x" * 100, partition=partition)
        except KafkaError as error:
            seen.errors.append(repr(error))
        else:
            seen.written += 1

    async def keep_writing() -> None:
        number = 0
        while True:
            for _ in range(WRITES_PER_S // BURSTS_PER_S):
                task = asyncio.create_task(write(number % count))
                underway.add(task)
                task.add_done_callback(underway.discard)
                number += 7
            await asyncio.sleep(1 / BURSTS_PER_S)

    writing = asyncio.create_task(keep_writing())
    try:
        yield
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await asyncio.gather(*underway)
        await producer.stop()


def _told(times: tuple[float, float]) -> str:
    return f"{times[0]:.2f} s and back {times[1]:.2f} s"


METHOD = """\
Four brokers; broker 3 is the first of 3 replicas of 1,500 partitions and leads them all, while a producer writes 100
records a second at acks=all, in two bursts a second, each record to another partition. *Given up*: from the start of
the process of `drover leaders demote 3` until the metadata shows that it leads none of them. *Restored*: from
`drover leaders restore 3` until every list is in its order and broker 3 leads it again. *Baseline*:
`kafka-reassign-partitions --execute` with the reordered lists, then `kafka-leader-election` with the same partitions,
each in a JVM of its own with the flags of `kafka-run-class.sh`. It knows the lists and the orders beforehand, which
Drover has to find and to keep. The log is on the same brokers, and broker 3 leads no partition of it. By turns, 4
rounds after one for warming up, medians. After a second and a half the metadata is looked at every 100 ms, which
the figures contain."""
BENCHMARK = Benchmark("leaders", "Leaders of a broker given up and restored", METHOD, run)
