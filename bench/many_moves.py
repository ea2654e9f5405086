"""200,000 reassignments on 500 brokers, from the first command to the last completed event, in a process of its own."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from time import process_time
from typing import Any

import psutil

from bench.core_site import CLUSTER, Site
from bench.owner import Owner, Turn
from bench.results import AtMost, Benchmark, Row, check, say
from bench.rig import run_apart
from drover.reconcile.starts.start_pace import MOST_STARTS, WINDOW_MS
from drover.state.scheduling import Limits

# Three seconds of the model's time.
FILLING_LOOKS = 20


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Submit and schedule everything on the model."""
    brokers, partitions = (50, 5_000) if quick else (500, 200_000)
    found = await run_apart("bench.many_moves", str(brokers), str(partitions))
    say(", ".join(f"{name} {value:.2f}" for name, value in found.items()))
    what = f"{partitions:,} reassignments on {brokers} brokers"
    submitted_s, scheduled_s = found["submitted_s"], found["scheduled_s"]
    return (
        Row(f"{what}: decided and ranked", submitted_s, "s"),
        Row(f"{what}: decided, and every slot used for the first time", found["begun_s"], "s", gate=AtMost(60)),
        Row(f"{what}: each one begun, looked at and completed besides", scheduled_s, "s"),
        Row(
            f"{what}: all of it, beside the clock at {MOST_STARTS:,} begun in a second",
            submitted_s + scheduled_s,
            "s",
            partitions / MOST_STARTS * WINDOW_MS / 1000,
            gate=AtMost(1),
        ),
        Row("the same, in seconds", submitted_s + scheduled_s, "s", goal=AtMost(60)),
        Row(f"{what}: the longest draft", found["longest_ms"], "ms"),
        Row(f"{what}: memory of the process, without the model cluster", found["peak_mib"], "MiB"),
    )


async def _measure(brokers: int, partitions: int) -> dict[str, Any]:
    """Play it; the time of the model cluster itself, and of its copies, is not counted."""
    site = Site(brokers=brokers, topics=brokers // 5, partitions=partitions)
    limits = Limits(max_partitions_in_flight=brokers * 5, max_leader_movements=brokers * 5)
    owner = Owner({CLUSTER: limits}, {CLUSTER: site.driver}, site.now)
    state = owner.state(CLUSTER)
    before_mib = _resident_mib()
    began_s = process_time()
    await site.alter_all(owner)
    submitted_s = process_time() - began_s
    check(len(state.reassignments) == partitions, "not everything was accepted")
    turns = await site.step(owner, finishing=0)
    # No more than 1,000 steps begin in a second.
    for _ in range(FILLING_LOOKS):
        turns += await site.step(owner, finishing=0)
    scheduled_s, longest_ms = _core_s(turns), max(turn.draft_ms for turn in turns)
    begun_s = submitted_s + scheduled_s
    peak_mib = _resident_mib() - before_mib
    in_flight = len(state.moves.in_flight)
    while state.reassignments:
        turns = await site.step(owner, finishing=in_flight)
        scheduled_s += _core_s(turns)
        longest_ms = max(longest_ms, *(turn.draft_ms for turn in turns))
        owner.log.clear()  # the log is Kafka's
        peak_mib = max(peak_mib, _resident_mib() - before_mib)
    return {
        "submitted_s": submitted_s,
        "begun_s": begun_s,
        "scheduled_s": scheduled_s,
        "longest_ms": longest_ms,
        "in_flight": in_flight,
        "peak_mib": peak_mib,
    }


def _core_s(turns: Sequence[Turn]) -> float:
    return float(sum(turn.core_ms + turn.fold_ms for turn in turns)) / 1000


def _resident_mib() -> float:
    return float(psutil.Process().memory_info().rss) / 2**20


def main() -> None:
    """Measure once and print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.many_moves")
    parser.add_argument("brokers", type=int)
    parser.add_argument("partitions", type=int)
    options = parser.parse_args()
    json.dump(asyncio.run(_measure(options.brokers, options.partitions)), sys.stdout)


METHOD = """\
No Kafka: the shard core, an in-memory log and a model cluster of 500 brokers in virtual time, in a process of its
own. 200 alters of 1,000 partitions each are decided; then copies end as soon as they have begun, at each look all
that are in flight, until the last of 200,000 reassignments is completed. Five copies per broker and way. Processor
time of the core and of the fold, both for each record; the model cluster's own time is not counted. *All of it*: from
the first command to the last completed event. No more than 1,000 steps begin in a second, to spare the controller, so
by the clock it takes longer: *beside the clock* is the share of one core that it takes meanwhile. Memory: what the
process takes more than before the first command."""
BENCHMARK = Benchmark("scheduling", "200,000 reassignments on 500 brokers", METHOD, run)


if __name__ == "__main__":
    main()
