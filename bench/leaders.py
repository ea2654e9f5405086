"""A broker that leads 1,500 partitions gives them up and gets them back, beside a plain loop of the stock tools."""

import asyncio
import json
import os
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from bench.alter import TOOL, TOOL_FLAGS
from bench.results import AtMost, Benchmark, BenchmarkError, Row, check, say
from bench.rig import MANAGED, Rig, drover_on, fresh_cluster, run_program
from bench.tail import Tail
from drover.cluster.port import AlterRequest
from drover.decide.leader_order import deprioritise
from drover.events.partitions import TopicPartition
from drover.events.topics import COMMAND_KINDS, DEFAULT_SHARDS, shard_of
from drover.jars import class_path, ensure, find_java
from tests.integration.story import read_all

TOPIC = "orders"
LISTED = 3
OTHERS = (1, 2, 4)
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
# A look at 1,500 partitions at this pace takes a quarter of a core, and as much of a broker.
LOOK_EVERY_S = 0.1
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


@dataclass(frozen=True, slots=True)
class Handover:
    """One way to move the leaders off the broker, or back to it.

    `command` runs the tool. `seems_over` takes the task that runs it, and returns when a look at the metadata is
    likely to show the result.
    """

    command: Action
    seems_over: Callable[[asyncio.Task[None]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Taken:
    """How long something took, and when it ended, in seconds since the epoch."""

    seconds: float
    ended_s: float


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Measure both by turns on one cluster."""
    count, rounds, warming_up = (150, 1, 1) if quick else (1500, 8, 4)
    before = {
        TopicPartition(TOPIC, number): (LISTED, OTHERS[number % 3], OTHERS[(number + 1) % 3]) for number in range(count)
    }
    ours: list[tuple[Taken, Taken]] = []
    stock: list[tuple[Taken, Taken]] = []
    seen = Seen()
    async with fresh_cluster() as cluster, drover_on(cluster, "leaders") as (rig, tail):
        await rig.create_topic(TOPIC, {key.partition: replicas for key, replicas in before.items()})
        await rig.start_worker("worker")
        await tail.until(lambda: tail.owners == {"worker"}, "the worker owns every shard")
        await _lead_the_log_elsewhere(rig)
        async with _writing(rig, count, seen):
            for number in range(warming_up + rounds):
                is_watched = number < warming_up
                ours.append(
                    await _round(rig, before, seen, *_drover_handovers(rig, tail, count), is_watched=is_watched)
                )
                stock.append(await _round(rig, before, seen, *_stock_handovers(rig, before), is_watched=is_watched))
                say(f"round {number}: drover {_told(ours[-1])}, stock tools {_told(stock[-1])}")
        check(seen.written, "nothing was written meanwhile")
        written_ms = await _command_times(rig)
    rows: list[Row] = []
    for side, what in enumerate((f"{count:,} leaders given up", f"{count:,} leaders restored, in order")):
        process, record, tools = _medians(side, ours[warming_up:], stock[warming_up:], written_ms[2 * warming_up :])
        rows += (
            Row(f"start of the command's process to {what}", process, "s", tools, gate=AtMost(1)),
            Row("the same, by the clock", process, "s", goal=AtMost(2)),
            Row(f"the command's record to {what}", record, "s", goal=AtMost(2)),
        )
    return (
        *rows,
        Row("partitions that were seen without a leader", len(seen.offline), "partitions", gate=AtMost(0)),
        Row("writes at acks=all that failed", len(seen.errors), "writes", gate=AtMost(0)),
        Row("writes at acks=all that succeeded meanwhile", seen.written, "writes"),
    )


def _medians(
    side: int,
    ours: Sequence[tuple[Taken, Taken]],
    stock: Sequence[tuple[Taken, Taken]],
    written_ms: Sequence[int],
) -> tuple[float, float, float]:
    """Return the seconds from the start of our process, from the command's record, and from the start of the tools."""
    records = written_ms[side::2]
    check(len(records) == len(ours), f"{len(records)} commands were written in {len(ours)} rounds")
    return (
        statistics.median(one[side].seconds for one in ours),
        statistics.median(one[side].ended_s - record / 1000 for one, record in zip(ours, records, strict=True)),
        statistics.median(one[side].seconds for one in stock),
    )


async def _command_times(rig: Rig) -> list[int]:
    """Return when each command was written, by the broker: demote and restore by turns."""
    topic = rig.connection.topics.commands[COMMAND_KINDS.index("blacklist")]
    found = await read_all(rig.connection, topic)
    return sorted(record.timestamp for records in found.values() for record in records)


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
    rig: Rig, before: Lists, seen: Seen, give_up: Handover, give_back: Handover, *, is_watched: bool
) -> tuple[Taken, Taken]:
    """Time both handovers, each from the start of its process until the metadata shows the result.

    In a round that `is_watched` the metadata is polled from the start, which slows it down; in the others only once the
    handover seems to be over.
    """
    times = []
    for handover, is_there in ((give_up, _is_given_up), (give_back, _is_restored)):
        await asyncio.sleep(SETTLE_S)
        began = time.monotonic()
        running = asyncio.create_task(handover.command())
        if not is_watched:
            await handover.seems_over(running)
        while not is_there(await _look(rig, before, seen), before):
            check(time.monotonic() - began < 300, "the leaders do not move")
            await asyncio.sleep(LOOK_EVERY_S)
        times.append(Taken(time.monotonic() - began, time.time()))
        await running
        await handover.seems_over(running)
    return times[0], times[1]


Found = Mapping[TopicPartition, tuple[int | None, tuple[int, ...]]]


async def _look(rig: Rig, before: Lists, seen: Seen) -> Found:
    survey = await rig.driver.survey()
    found = {key: (survey.partitions[key].leader, survey.partitions[key].replicas) for key in before}
    seen.offline.update(key for key, (leader, _) in found.items() if leader is None)
    return found


def _is_given_up(found: Found, _before: Lists) -> bool:
    return all(leader not in {LISTED, None} for leader, _ in found.values())


def _is_restored(found: Found, before: Lists) -> bool:
    return all((leader, replicas) == (LISTED, before[key]) for key, (leader, replicas) in found.items())


def _drover_handovers(rig: Rig, tail: Tail, count: int) -> tuple[Handover, Handover]:
    """Make Drover's two commands; each seems to be over when the log says so."""
    state = tail.cluster(shard_of(MANAGED, DEFAULT_SHARDS), MANAGED)

    def until(orders: int) -> Callable[[asyncio.Task[None]], Awaitable[None]]:
        def is_there() -> bool:
            return len(state.orders) == orders and not (state.leaders_under_way or state.reassignments)

        return lambda _: tail.until(is_there, f"{orders} orders, and no call under way")

    return (
        Handover(partial(_drover, rig, "demote"), until(count)),
        Handover(partial(_drover, rig, "restore"), until(0)),
    )


async def _drover(rig: Rig, verb: str) -> None:
    await rig.drover("leaders", verb, str(LISTED), "--topic", TOPIC, "--reason", "benchmark")


def _stock_handovers(rig: Rig, before: Lists) -> tuple[Handover, Handover]:
    """Make the two plain loops: each is over when its processes are."""

    async def ended(running: asyncio.Task[None]) -> None:
        await running

    there, back = (_stock(rig, lists) for lists in (_without(before), before))
    return Handover(there, ended), Handover(back, ended)


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


def _told(times: tuple[Taken, Taken]) -> str:
    return f"{times[0].seconds:.2f} s and back {times[1].seconds:.2f} s"


METHOD = """\
Four brokers; broker 3 is the first of 3 replicas of 1,500 partitions and leads them all, while a producer writes 100
records a second at acks=all, in two bursts a second, each record to another partition. *Given up*: from the start of
the process of `drover leaders demote 3` until the metadata shows that it leads none of them. *Restored*: from
`drover leaders restore 3` until every list is in its order and broker 3 leads it again. *The command's record*: the
same from the broker's time of the record in the command topic, as any client sends it. *Baseline*:
`kafka-reassign-partitions --execute` with the reordered lists, then `kafka-leader-election` with the same partitions,
each in a JVM of its own with the flags of `kafka-run-class.sh`. It knows the lists and the orders beforehand, which
Drover has to find and to keep. The log is on the same brokers, and broker 3 leads no partition of it. By turns, 8
rounds after four for warming up, medians: the brokers' code gets faster for about four rounds, as that of brokers that
have run for a day has. In the first four the metadata is looked at every 100 ms from the start, for partitions without
a leader; in the others when the log says that all is done, or the tools have ended, and from then on until it is so."""
BENCHMARK = Benchmark("leaders", "Leaders of a broker given up and restored", METHOD, run)
