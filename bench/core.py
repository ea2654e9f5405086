"""Processor time of the shard core at the promised sizes; each case runs in its own process."""

from collections.abc import Sequence
from typing import Any

from bench.core_cases import CASES, sizes
from bench.results import AtLeast, AtMost, Benchmark, Limit, Row, check, percentile, say
from bench.rig import run_apart

Figures = dict[str, Any]
REPETITIONS = 3
# Of a percentile near the worst, more is other work on the machine.
MORE_REPETITIONS = {"unthrottled": 7, "throttled": 7}


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Run case after case, since they share the machine with nobody then."""
    found = {name: await case_least(name, quick=quick) for name in CASES if name != "leaders"}
    size = sizes(quick=quick)
    busy = f"one draft, {size.in_flight:,} in flight and {size.waiting:,} waiting"
    many = f"one draft, {size.many:,} waiting"
    behind = found["behind"]
    return (
        *in_flight_rows(f"{busy}, unthrottled", found["unthrottled"], AtMost(2)),
        *in_flight_rows(f"{busy}, throttled", found["throttled"], AtMost(3)),
        *draft_rows(many, found["waiting"], (50, AtMost(2)), (100, AtMost(10))),
        *draft_rows(f"{many} for a broker that has no room", behind, (50, AtMost(2)), (100, AtMost(10))),
        Row("moves begun of 100 that have room behind those", behind["started"], "moves", gate=AtLeast(100)),
        _held(size.held_partitions, found["held"]),
        _idle(found["idle"]),
        *_finished(size.plans, found["no-plans"], found["finished-plans"]),
        Row("one command from a backlog, 12 to a record", found["backlog"]["ms_per_command_12"], "ms"),
        Row("one command from a backlog, 1,000 to a record", found["backlog"]["ms_per_command_1000"], "ms"),
    )


async def case_least(name: str, *, quick: bool) -> Figures:
    """Take each figure's least of some runs of the same work: whatever else the machine does only adds to it."""
    repetitions = 1 if quick else MORE_REPETITIONS.get(name, REPETITIONS)
    runs = [await _case(name, quick=quick) for _ in range(repetitions)]
    least = runs[0]
    for other in runs[1:]:
        check(other.get("chain") == least.get("chain"), f"{name}: two runs did not do the same")
        least = {key: _less(value, other[key]) for key, value in least.items()}
    say(f"{name}: {', '.join(_summary(key, value) for key, value in least.items() if key != 'chain')}")
    return least


async def _case(name: str, *, quick: bool) -> Figures:
    figures: Figures = await run_apart("bench.core_cases", name, *(("--quick",) if quick else ()))
    return figures


def _less(one: Any, other: Any) -> Any:
    if isinstance(one, list):
        return [min(pair) for pair in zip(one, other, strict=True)]
    return min(one, other)


def _summary(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{name} {percentile(value, 50):.3f} median, {max(value):.3f} worst of {len(value)}"
    return f"{name} {value:.3f}"


def draft_rows(what: str, figures: Figures, *asked: tuple[float, Limit | None]) -> tuple[Row, ...]:
    """Return a row for each percentile that is asked for; its gate is a multiple of the reference beside it."""
    words, reference_ms = {50: "median", 99: "p99", 100: "worst"}, percentile(figures["reference_ms"], 50)
    return tuple(
        Row(f"{what}, {words[int(percent)]}", percentile(figures["draft_ms"], percent), "ms", reference_ms, gate=gate)
        for percent, gate in asked
    )


def in_flight_rows(what: str, figures: Figures, gate: Limit) -> tuple[Row, ...]:
    """Return the rows of a case whose gate is on the p99, with the whole turn."""
    turn_ms, reference_ms = percentile(figures["turn_ms"], 99), percentile(figures["reference_ms"], 50)
    return (
        *draft_rows(what, figures, (99, gate), (50, None)),
        Row(f"{what}: the whole turn, p99", turn_ms, "ms", reference_ms),
    )


def _held(partitions: int, figures: Figures) -> Row:
    more = _median(figures["with"]) - _median(figures["without"])
    return Row(
        f"a turn with 20 held alters of {partitions:,} partitions: more than without", more, "ms", gate=AtMost(0.1)
    )


def _idle(figures: Figures) -> Row:
    beside, alone = _median(figures["beside"]), _median(figures["alone"])
    return Row("a turn beside 50 idle clusters, and without them", beside, "ms", alone, gate=AtMost(1.1))


def _finished(plans: int, without: Figures, figures: Figures) -> tuple[Row, ...]:
    after = f"after {plans:,} finished plans"
    memory_mib = (figures["kib"] - without["kib"]) / 1024
    hash_ms = figures["hash_ms"] - without["hash_ms"]
    snapshot_kib = (figures["snapshot_bytes"] - without["snapshot_bytes"]) / 1024
    return (
        Row(f"{after}: more memory of the process", memory_mib, "MiB", gate=AtMost(24)),
        Row(f"{after}: more time for one state hash", hash_ms, "ms", gate=AtMost(1)),
        Row(f"{after}: more bytes of a snapshot", snapshot_kib, "KiB", gate=AtMost(64)),
        Row(f"{after}: one draft, median", _median(figures["draft_ms"]), "ms", _median(without["draft_ms"])),
    )


def _median(figures: Sequence[float]) -> float:
    return percentile(figures, 50)


METHOD = """\
No Kafka: the shard core, an in-memory log and a model cluster in virtual time; processor time of a process of its own
per case. Every case is run three times, the two *in flight* seven times, and does the same work each time (the chain
hash of its log proves it); of each draft the least counts, since other work on the machine only adds. *One draft*:
what must be seen, and the record made; only drafts that heard something count. *Baseline* of drafts: a fixed piece of
plain Python (`bench/reference.py`), once after each look in the same process. It took 1 ms in the hour of 2026-11-26 in
which the two in flight were last within 2 and 3 ms (1.84 and 2.91); the machine may take twice as long in others.
*The whole turn* adds the fold and the effects. *In flight*: 1,250 moves on 100 brokers and four topics; at each look
five copies end and as many moves begin, after one whole generation for warming up; throttled plans with a rate per
broker. *Waiting*: default limits, 20 brokers with room for about 50 moves; then 99,900 for one broker that has no
room, and 100 behind them for others. *Held*: alters whose `after` names a command that never comes; a turn decides one
other command. *Idle*: the same busy cluster (100 in flight) in two owners by turns. *Finished plans*: a log with 100
of them every half an hour that ended more than a year ago, against the same log without; resident memory. *Backlog*:
from the payload to the settled record, in the core."""
BENCHMARK = Benchmark("core", "The shard core: processor time of a draft", METHOD, run)
