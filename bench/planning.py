"""The planner on the clusters on which other planners were measured, and on others; no Kafka."""

import asyncio
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.planner_clusters import Description, Judgement, Sizes, describe, judge
from bench.reference import Reference
from bench.results import AtMost, Benchmark, Row, check, percentile, say
from bench.rig import REPOSITORY

REPETITIONS = 3
# The reference is timed so often after each plan.
REFERENCE_RUNS = 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """The most that a plan may do or leave; the first three are about copies.

    `process_s` is for a machine that needs 1 ms for the reference.
    """

    copies: int
    gib: float
    count: float
    disk: float
    leaders: float
    process_s: float
    peak_mib: int = 2048


@dataclass(frozen=True, slots=True)
class Case:
    """A goal on a cluster."""

    name: str
    sizes: Sizes
    goal: tuple[str, ...]
    wanted: Wanted

    @property
    def leaving(self) -> tuple[int, ...]:
        return tuple(map(int, self.goal[1:])) if self.goal[0] == "drain" else ()


SMALL = Sizes(30, 3000, 3, 3, 1)
MEDIUM = Sizes(100, 10000, 3, 5, 2)
LARGE = Sizes(500, 66667, 3, 5, 7)
CASES = (
    Case("30 brokers, one dead", SMALL, ("drain", "1"), Wanted(283, 226.6, 1.112, 1.090, 1.150, 0.4)),
    Case("100 brokers, one dead", MEDIUM, ("drain", "1"), Wanted(319, 260.5, 1.056, 1.205, 1.109, 0.8)),
    Case(
        "3 brokers added to 30",
        Sizes(30, 3000, 3, 3, 1, 3),
        ("add", "31", "32", "33"),
        Wanted(780, 600, 1.045, 1.026, 1.10, 0.54),
    ),
    Case(
        "5 brokers added to 100",
        Sizes(100, 10000, 3, 5, 2, 5),
        ("add", "101", "102", "103", "104", "105"),
        Wanted(1350, 1150, 1.012, 1.08, 1.05, 1.06),
    ),
    Case("30 brokers, nothing wrong", SMALL, ("balance",), Wanted(93, 68.8, 1.086, 1.088, 1.099, 0.95)),
    Case("500 brokers, two drained", LARGE, ("drain", "1", "2"), Wanted(844, 805, 1.2, 1.3, 1.2, 20)),
)
QUICK = CASES[:1]


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Plan each case in a process of its own, and judge the plan without the planner."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="drover-planner-") as folder:
        for number, case in enumerate(QUICK if quick else CASES):
            description = describe(case.sizes)
            path = Path(folder) / f"{number}.json"
            path.write_text(json.dumps(description), encoding="utf-8")
            rows += await _case(case, description, path, 1 if quick else REPETITIONS)
    return tuple(rows)


async def _case(case: Case, description: Description, path: Path, repetitions: int) -> list[Row]:
    runs: list[tuple[bytes, dict[str, float]]] = []
    reference, reference_ms = Reference(), list[float]()
    for _ in range(repetitions):
        runs.append(await _plan(path, case.goal))
        reference_ms += [reference.elapsed_ms() for _ in range(REFERENCE_RUNS)]
    check(len({plan for plan, _ in runs}) == 1, f"{case.name}: two runs made two plans")
    verdict = judge(description, json.loads(runs[0][0]), case.leaving)
    check(verdict.left == 0 and verdict.rack_violations == 0, f"{case.name}: {verdict}")
    process_s = min(seconds["process_s"] for _, seconds in runs)
    peak_mib = max(seconds["peak_mib"] for _, seconds in runs)
    say(f"{case.name}: {verdict}, {process_s:.2f} s, {peak_mib:.0f} MiB")
    # A thousand times the reference: as many seconds as it takes milliseconds.
    time_row = Row(
        f"{case.name}: processor time of the process",
        process_s,
        "s",
        percentile(reference_ms, 50),
        gate=AtMost(case.wanted.process_s),
    )
    return [*_rows(case, verdict, peak_mib), time_row]


def _rows(case: Case, verdict: Judgement, peak_mib: float) -> list[Row]:
    name, wanted = case.name, case.wanted
    return [
        Row(f"{name}: copies", verdict.copies, "replicas", gate=AtMost(wanted.copies)),
        Row(f"{name}: copied", round(verdict.copied_gib, 1), "GiB", gate=AtMost(wanted.gib)),
        _above(f"{name}: most replicas of a broker", verdict.count, wanted.count),
        _above(f"{name}: most bytes of a broker", verdict.disk, wanted.disk),
        _above(f"{name}: most leaders of a broker", verdict.leaders, wanted.leaders),
        Row(f"{name}: peak memory", peak_mib, "MiB", gate=AtMost(wanted.peak_mib)),
    ]


def _above(name: str, share: float, wanted: float) -> Row:
    """Say how far the most loaded broker is above the mean; shares of the mean would all be written as 1.1."""
    return Row(name, round((share - 1) * 100, 1), "% above the mean", gate=AtMost(round((wanted - 1) * 100, 1)))


async def _plan(path: Path, goal: tuple[str, ...]) -> tuple[bytes, dict[str, float]]:
    """Return the plan as it was written, and the seconds and memory that it took."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bench.planner", str(path), *goal),
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    check(process.returncode == 0, f"the planner ended with {process.returncode}: {errors.decode()}")
    seconds: dict[str, float] = json.loads(errors.splitlines()[-1])
    return output, seconds


METHOD = """\
No Kafka: described clusters from a seed (`bench/planner_clusters.py`) with 3 replicas, topics that differ in size by
orders of magnitude, and 3 or 5 racks: 3,000 partitions on 30 brokers, 10,000 on 100, 66,667 on 500. Each plan is made
in a process of its own three times, must come out the same, and is judged by code that does not know the planner.
*Above the mean*: the highest load of a broker that stays, beside the mean of those. Time is processor time of the whole
process, with reading the file, the least of three; memory the most of three. Each plan has no rack violation, and
leaves nothing on a drained broker. The gates are the best figures of other planners on the same clusters, or better:
[planner.md](planner.md#other-planners-on-the-same-clusters). The baseline of the time is a thousand times a fixed piece
of plain Python (`bench/reference.py`), so that it is judged alike in slow hours and in fast ones."""
BENCHMARK = Benchmark("planner", "The planner: copies, balance and time, on described clusters", METHOD, run)
