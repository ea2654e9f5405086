"""The cases of the core's benchmark: each runs in a process of its own and prints its figures as JSON.

Time is virtual and nothing is random, so every run does the same work: its records say so (`chain`).
"""

import argparse
import asyncio
import gc
import json
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import psutil

from bench.core_site import CLUSTER, Site
from bench.finished_plans import aged_fold
from bench.owner import Owner, Turn
from bench.reference import Reference
from bench.results import check
from bench.traffic import mixture
from drover.events.codec import decode_command, encode_command
from drover.events.commands import Alter, Blacklist, Demote, PartitionTarget, Restore
from drover.fold.snapshot import encode_fold
from drover.reconcile.messages import Moment
from drover.service.process import collect_rarely
from drover.shard.inbox import Inbox
from drover.shard.messages import Arrival
from drover.state.scheduling import Limits

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of each case."""

    in_flight: int = 1_250
    waiting: int = 10_000
    many: int = 100_000
    held_partitions: int = 5_000
    plans: int = 500_000
    listed: int = 10_000


def sizes(*, quick: bool) -> Sizes:
    """Return what is promised, or a tenth of it to see that it works."""
    return Sizes(125, 1_000, 10_000, 500, 50_000, 1_000) if quick else Sizes()


class Watched:
    """The turns of an owner, look after look, with the reference beside each look."""

    def __init__(self, site: Site, owner: Owner) -> None:
        self.turns: list[Turn] = []
        self._site, self._owner = site, owner
        self._reference, self._reference_ms = Reference(), list[float]()

    async def look(self, finishing: int) -> None:
        """Let one look reach the owner, in which so many copies have ended."""
        self.turns += await self._site.step(self._owner, finishing)
        self._reference_ms.append(self._reference.elapsed_ms())

    def figures(self) -> Figures:
        """Return the times of the turns and of the reference."""
        return {**_timed(self.turns, self._owner), "reference_ms": self._reference_ms}


IDLE = tuple(f"idle-{number}" for number in range(50))


async def steady(throttle: int | None, *, quick: bool) -> Figures:
    """Keep 1,250 in flight with 10,000 waiting: per look a few copies end and as many begin."""
    size, looks = sizes(quick=quick), 40 if quick else 200
    in_flight, waiting = size.in_flight, size.waiting
    finishing = 5
    # Each of these moves takes its leader along.
    limits = Limits(max_partitions_in_flight=in_flight, max_moves_per_broker=40, max_leader_movements=in_flight)
    site = Site(brokers=100, topics=4, partitions=in_flight * 2 + waiting + finishing * looks)
    owner = Owner({CLUSTER: limits}, {CLUSTER: site.driver}, site.now)
    await site.alter_all(owner, throttle)
    # What was begun together is looked at together: one whole generation ends before anything is measured.
    while site.ended < in_flight:
        await site.step(owner, finishing=25)
    watched = Watched(site, owner)
    flying: list[int] = []
    for _ in range(looks):
        await watched.look(finishing)
        flying.append(len(owner.state(CLUSTER).moves.in_flight))
    check(min(flying) >= in_flight - 2 * finishing, f"only {min(flying)} were in flight at times")
    check(len(owner.state(CLUSTER).moves.pending) >= waiting * 0.95, "too few are waiting")
    return watched.figures()


async def many_waiting(*, quick: bool) -> Figures:
    """Let 100,000 wait for room on brokers, with the default limits on twenty of them."""
    waiting, looks = sizes(quick=quick).many, 40 if quick else 200
    site = Site(brokers=20, topics=4, partitions=waiting + 2_000)
    owner = Owner({CLUSTER: Limits()}, {CLUSTER: site.driver}, site.now)
    await site.alter_all(owner)
    for _ in range(20):
        await site.step(owner, finishing=5)
    watched = Watched(site, owner)
    for _ in range(looks):
        await watched.look(finishing=5)
    check(len(owner.state(CLUSTER).moves.pending) >= waiting, "too few are waiting")
    return watched.figures()


async def behind_a_full_broker(*, quick: bool) -> Figures:
    """Let 99,900 wait for one broker and 100 behind them for others: these must not wait for that broker."""
    waiting, looks = sizes(quick=quick).many, 50
    free = 100
    site = Site(brokers=20, topics=4, partitions=waiting, hot=waiting - free)
    owner = Owner({CLUSTER: Limits()}, {CLUSTER: site.driver}, site.now)
    await site.alter_all(owner)
    watched = Watched(site, owner)
    for _ in range(looks):
        await watched.look(finishing=5)
    left = sum(1 for key in owner.state(CLUSTER).moves.pending if site.is_free(key))
    return {**watched.figures(), "started": free - left}


async def held(*, quick: bool) -> Figures:
    """Hold 20 alters of 5,000 partitions whose `after` names a command that never comes, beside an owner without."""
    commands, partitions, turns = 20, sizes(quick=quick).held_partitions, 50
    site = Site(brokers=20, topics=1, partitions=partitions)
    with_held = Owner({CLUSTER: Limits()}, {CLUSTER: site.driver}, site.now)
    without = Owner({CLUSTER: Limits()}, {CLUSTER: site.driver}, site.now)
    targets = tuple(
        PartitionTarget(topic="topic-0", partition=number, replicas=(1, 2, 3)) for number in range(partitions)
    )
    for number in range(commands):
        alter = Alter(id=f"alter-{number}", cluster=CLUSTER, by="ana", reason="x", partitions=targets, after=("never",))
        await with_held.decide(alter)
    check(len(with_held.state(CLUSTER).deferred) == commands, "not every command is held")
    found: dict[str, list[Turn]] = {"with": [], "without": []}
    gc.collect()
    for number in range(turns):
        command = Blacklist(id=f"blacklist-{number}", cluster=CLUSTER, by="ana", reason="x", brokers=(number + 1,))
        for name, owner in (("with", with_held), ("without", without)):
            found[name].append(await owner.turn((owner.arrival(command),)))
        site.model.advance(20)
    check(len(with_held.state(CLUSTER).deferred) == commands, "the held commands were let go while this was measured")
    return {name: [turn.core_ms for turn in those] for name, those in found.items()} | {"chain": _chain(with_held)}


async def idle_beside_busy(*, quick: bool) -> Figures:
    """Drive the same busy cluster twice by turns: alone, and beside 50 configured clusters on which nothing happens."""
    looks = 40 if quick else 200
    limits = Limits(max_partitions_in_flight=100, max_moves_per_broker=40)
    found: dict[str, list[float]] = {}
    owners: dict[str, tuple[Site, Owner]] = {}
    for name, others in (("alone", ()), ("beside", IDLE)):
        site = Site(brokers=20, topics=4, partitions=100 + 1000 + 5 * looks * 2)
        clusters = {CLUSTER: limits, **{other: Limits() for other in others}}
        owner = Owner(clusters, {CLUSTER: site.driver, **dict.fromkeys(others, site.driver)}, site.now)
        for other in others:
            owner.deliver(site.identified(other))
        await site.alter_all(owner)
        owners[name], found[name] = (site, owner), []
    for look in range(looks + 40):
        for name, (site, owner) in owners.items():
            turns = await site.step(owner, finishing=5)
            if look >= 40:
                found[name] += [turn.core_ms for turn in turns]
    return {**found, "chain": "".join(_chain(owner) for _, owner in owners.values())}


async def finished_plans(count: int) -> Figures:
    """Own a shard whose log has so many finished plans, long ago, and weigh what is left of them."""
    site = Site(brokers=20, topics=4, partitions=1_000)
    before_kib = _resident_kib()
    fold = aged_fold(count)
    owner = Owner({CLUSTER: Limits()}, {CLUSTER: site.driver}, site.now, fold)
    await site.alter_all(owner)
    turns: list[Turn] = []
    for _ in range(50):
        turns += await site.step(owner, finishing=2)
    gc.collect()
    held_kib = _resident_kib() - before_kib
    hashing: list[float] = []
    for _ in range(7):
        started = process_time()
        fold.state.hash()
        hashing.append((process_time() - started) * 1000)
    return {
        "kib": held_kib,
        "hash_ms": min(hashing),
        "snapshot_bytes": encode_fold(fold).body_bytes,
        **_timed(turns, owner),
    }


async def backlog(*, quick: bool) -> Figures:
    """Decide a backlog of commands, in records of the size that a worker's backlog makes, and in full ones."""
    count = 4_000 if quick else 20_000
    clusters = tuple(f"site-{number}" for number in range(2))
    payloads = [(command, encode_command(command)) for command in mixture(count, clusters, "backlog")]
    found: Figures = {}
    for per_record in (12, 1_000):
        clock = _Clock()
        owner = Owner({name: Limits() for name in clusters}, {}, clock.now)
        inbox = Inbox()
        gc.collect()
        spent_s = 0.0
        for first in range(0, count, per_record):
            chunk = [owner.arrival(command) for command, _ in payloads[first : first + per_record]]
            started = process_time()
            for one in chunk:
                command = decode_command(one.payload)
                inbox.add(Arrival(one.topic_index, one.offset, one.timestamp_ms, one.payload, command))
            arrivals = inbox.take(owner.core.next_offsets)
            spent_s += process_time() - started
            turn = await owner.turn(arrivals)
            spent_s += (turn.core_ms + turn.fold_ms) / 1000
            inbox.settle(turn.taken)
            clock.ms += 1
        found[f"ms_per_command_{per_record}"] = spent_s / count * 1000
    return found


async def leaders(*, quick: bool) -> Figures:
    """Let a broker that leads a seventh of 10,000 partitions give them up, and get them back."""
    size = sizes(quick=quick).listed
    site = Site(brokers=7, topics=4, partitions=size)
    owner = Owner({CLUSTER: Limits()}, {CLUSTER: site.driver}, site.now)
    await site.step(owner, finishing=0)
    demote = Demote(id="demote", cluster=CLUSTER, by="ana", reason="slow disk", broker=3)
    restore = Restore(id="restore", cluster=CLUSTER, by="ana", reason="new disk", broker=3)
    watched = Watched(site, owner)
    taken: list[int] = []
    led = site.leads(3)
    for command, leads in ((demote, 0), (restore, led)):
        await owner.decide(command)
        first, state = len(watched.turns), owner.state(CLUSTER)
        while site.leads(3) != leads or state.leaders_under_way or state.reassignments or (leads and state.orders):
            await watched.look(finishing=0)
            check(len(watched.turns) - first < 1000, "the leaders do not move")
        taken.append(len(watched.turns) - first)
    return {**watched.figures(), "turns": taken}


class _Clock:
    def __init__(self) -> None:
        self.ms = 0

    def now(self) -> Moment:
        return Moment(1_700_000_000_000 + self.ms, self.ms)


def _timed(turns: Sequence[Turn], owner: Owner) -> Figures:
    # A draft that heard nothing has less to do: it would only make the figures look better.
    heard = [turn for turn in turns if turn.inputs]
    return {
        "draft_ms": [turn.draft_ms for turn in heard],
        "turn_ms": [turn.core_ms + turn.fold_ms for turn in heard],
        "chain": _chain(owner),
    }


def _chain(owner: Owner) -> str:
    return owner.fold.chain.hex()


def _resident_kib() -> int:
    return psutil.Process().memory_info().rss // 1024


CASES: dict[str, Callable[..., Coroutine[Any, Any, Figures]]] = {
    "unthrottled": lambda *, quick: steady(None, quick=quick),
    "throttled": lambda *, quick: steady(50_000_000, quick=quick),
    "waiting": many_waiting,
    "behind": behind_a_full_broker,
    "held": held,
    "idle": idle_beside_busy,
    "no-plans": lambda **_: finished_plans(0),
    "finished-plans": lambda *, quick: finished_plans(sizes(quick=quick).plans),
    "backlog": backlog,
    "leaders": leaders,
}


def main() -> None:
    """Run one case."""
    parser = argparse.ArgumentParser(prog="python -m bench.core_cases")
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    collect_rarely()  # as a worker does
    json.dump(asyncio.run(CASES[options.case](quick=options.quick)), sys.stdout)


if __name__ == "__main__":
    main()
