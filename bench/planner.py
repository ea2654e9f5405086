"""The planner on described clusters: the bytes that its plans copy, and how long it takes.

Clusters from a seed (`bench/planner_clusters.py`) with 3 replicas, topics that differ in size by orders of magnitude,
and 3 or 5 racks. Each plan is made in a process of its own and judged by code that does not know the planner. The goals
are the fewest bytes that other planners copied on the same clusters (docs/planning.md). A plan that leaves a cluster
less even than theirs, or a replica on a drained broker, has no figure.

`python -m bench.planner CLUSTER.json drain 1 > PLAN.json` plans on one described cluster, seconds to stderr.
"""

import argparse
import asyncio
import json
import math
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.planner_clusters import Description, Judgement, Sizes, describe, judge, read
from bench.planner_loads import FULL, LoadSizes, describe_loads, judge_loads
from bench.results import AtMost, Benchmark, Row, check, say
from bench.rig import REPOSITORY
from drover.cli.model import parse_model
from drover.planner.goals import Add, Balance, Drain, Goal, Limits
from drover.planner.loads import Load
from drover.planner.propose import propose

REFUSED = 2


@dataclass(frozen=True, slots=True)
class Case:
    """A goal on a cluster, and the most that a plan may copy and leave.

    `count`, `disk` and `leaders` are the highest load of a broker that stays, over the mean of those.
    """

    name: str
    sizes: Sizes
    goal: tuple[str, ...]
    gib: float
    count: float
    disk: float
    leaders: float

    @property
    def leaving(self) -> tuple[int, ...]:
        return tuple(map(int, self.goal[1:])) if self.goal[0] == "drain" else ()

    def is_even(self, verdict: Judgement) -> bool:
        """Whether a plan left no broker more loaded than this case allows, and nothing where nothing may be."""
        loads = ((verdict.count, self.count), (verdict.disk, self.disk), (verdict.leaders, self.leaders))
        return not verdict.left and not verdict.rack_violations and all(load <= most for load, most in loads)


SMALL = Sizes(30, 3000, 3, 3, 1)
MEDIUM = Sizes(100, 10000, 3, 5, 2)
LARGE = Sizes(500, 66667, 3, 5, 7)
ADDED_TO_SMALL, ADDED_TO_MEDIUM = Sizes(30, 3000, 3, 3, 1, 3), Sizes(100, 10000, 3, 5, 2, 5)
FIVE = ("101", "102", "103", "104", "105")
CASES = (
    Case("30 brokers, one drained", SMALL, ("drain", "1"), 226.6, 1.112, 1.090, 1.150),
    Case("100 brokers, one drained", MEDIUM, ("drain", "1"), 260.5, 1.056, 1.205, 1.109),
    Case("3 brokers added to 30", ADDED_TO_SMALL, ("add", "31", "32", "33"), 600, 1.045, 1.026, 1.10),
    Case("5 brokers added to 100", ADDED_TO_MEDIUM, ("add", *FIVE), 1150, 1.012, 1.08, 1.05),
    Case("30 brokers, balanced", SMALL, ("balance",), 68.8, 1.086, 1.088, 1.099),
    Case("500 brokers, two drained", LARGE, ("drain", "1", "2"), 805, 1.2, 1.3, 1.2),
)


@dataclass(frozen=True, slots=True)
class LoadCase:
    """A goal on a cluster with loads, and the most that a plan may copy and leave above fair.

    `within_s` is the processor time after which the best plan so far counts; None is no limit.
    """

    name: str
    sizes: LoadSizes
    goal: Goal
    copied_tb: float
    above: int
    dead: tuple[int, ...] = ()
    within_s: float | None = None


TB = 10**12
UNIFORM, UNEQUAL = LoadSizes(30, 3000, 3, 1), LoadSizes(30, 3000, 3, 2, unequal=True)
HUNDRED, FIVE_HUNDRED = LoadSizes(100, 10_000, 5, 1, unequal=True), LoadSizes(500, 66_667, 5, 7, unequal=True)
NEW = Add((31, 32, 33))
LOAD_CASES = (
    LoadCase("30 uniform brokers by load, balanced", UNIFORM, Balance(), 1.67, 0),
    LoadCase("30 uniform brokers by load, one dead", UNIFORM, Drain((1,)), 4.25, 6, (1,)),
    LoadCase("3 added to 30 uniform brokers by load", replace(UNIFORM, new=3), NEW, 12.7, 10),
    LoadCase("30 unequal brokers by load, balanced", UNEQUAL, Balance(), 45.0, 22),
    LoadCase("30 unequal brokers by load, balanced for 5 TB", UNEQUAL, Balance(5 * TB), 5.0, 45),
    LoadCase("30 unequal brokers by load, balanced for 10 TB", UNEQUAL, Balance(10 * TB), 10.0, 45),
    LoadCase("30 unequal brokers by load, balanced for 20 TB", UNEQUAL, Balance(20 * TB), 20.0, 45),
    LoadCase("30 unequal brokers by load, one dead", UNEQUAL, Drain((1,)), 5.83, 72, (1,)),
    LoadCase("3 added to 30 unequal brokers by load", replace(UNEQUAL, new=3), NEW, 10.3, 60),
    LoadCase("100 unequal brokers by load, balanced", HUNDRED, Balance(), 250.0, 60, within_s=60.0),
    LoadCase("500 unequal brokers by load, balanced", FIVE_HUNDRED, Balance(), 1800.0, 700, within_s=120.0),
)


def _load_rows(case: LoadCase) -> list[Row]:
    """Plan with all orders free, and judge the plan without the planner."""
    description = describe_loads(case.sizes)
    for each in description["brokers"]:
        each["alive"] = each["id"] not in case.dead
    model = parse_model(json.dumps(description), case.name)
    begun = time.process_time()
    limits = Limits(reorder_all=True, limits={Load.DISK: FULL})
    end = math.inf if case.within_s is None else begun + case.within_s
    proposal = propose(model, case.goal, limits, stop=lambda: time.process_time() > end)
    seconds = time.process_time() - begun
    targets = {(topic, number): after for topic, number, after in proposal.targets}
    verdict = judge_loads(description, targets, case.dead)
    say(f"{case.name}: {verdict}, {seconds:.1f} s")
    check(not verdict.rack_violations and not verdict.full, f"{case.name}: {verdict}")
    return [
        Row(f"{case.name}: copied", round(verdict.copied_tb, 2), "TB", goal=AtMost(case.copied_tb)),
        Row(f"{case.name}: above fair", verdict.above, "loads", goal=AtMost(case.above)),
        Row(f"{case.name}: processor time", round(seconds, 1), "s"),
    ]


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Plan each case, and judge the plan without the planner."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="drover-planner-") as folder:
        for case in CASES[:1] if quick else CASES:
            description = describe(case.sizes)
            path = Path(folder) / "cluster.json"
            path.write_text(json.dumps(description), encoding="utf-8")
            rows += await _case(case, description, path)
    for load_case in LOAD_CASES[:1] if quick else LOAD_CASES:
        rows += _load_rows(load_case)
    return tuple(rows)


async def _case(case: Case, description: Description, path: Path) -> list[Row]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bench.planner", str(path), *case.goal),
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
    verdict = judge(description, json.loads(output), case.leaving)
    check(case.is_even(verdict), f"{case.name}: {verdict}")
    seconds = json.loads(errors.splitlines()[-1])["process_s"]
    say(f"{case.name}: {verdict}, {seconds} s")
    rows = [Row(f"{case.name}: copied", round(verdict.copied_gib, 1), "GiB", goal=AtMost(case.gib))]
    if case.sizes == LARGE:
        rows.append(Row(f"{case.name}: processor time", seconds, "s"))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan, or describe a cluster; the exit code is 2 if the goal makes no sense."""
    parser = argparse.ArgumentParser(prog="python -m bench.planner", description="Plan on a described cluster.")
    parser.add_argument("cluster", type=Path, help="the described cluster; `describe` writes it")
    parser.add_argument("goal", choices=("drain", "add", "balance", "describe"))
    parser.add_argument(
        "numbers",
        nargs="*",
        type=int,
        help="brokers; for `describe`: brokers, partitions, replicas, racks, seed, new brokers",
    )
    options = parser.parse_args(arguments)
    if options.goal == "describe":
        if len(options.numbers) not in (5, 6):
            parser.error("describe takes BROKERS PARTITIONS REPLICAS RACKS SEED [NEW]")
        options.cluster.write_text(json.dumps(describe(Sizes(*options.numbers))), encoding="utf-8")
        return 0
    if (options.goal == "balance") == bool(options.numbers):
        parser.error("drain and add take brokers, balance takes none")
    return _plan(options.cluster, _goal(options.goal, tuple(options.numbers)))


def _goal(name: str, brokers: tuple[int, ...]) -> Goal:
    match name:
        case "drain":
            return Drain(brokers)
        case "add":
            return Add(brokers)
        case _:
            return Balance()


def _plan(path: Path, goal: Goal) -> int:
    begun = time.process_time()
    model = read(path)
    read_at = time.process_time()
    proposal = propose(model, goal)
    planned_at = time.process_time()
    partitions = [{"topic": topic, "partition": number, "replicas": after} for topic, number, after in proposal.targets]
    print(json.dumps({"version": 1, "partitions": partitions}))
    for each in proposal.unmet:
        print(f"not met: {each.text}", file=sys.stderr)
    seconds = {
        "read_s": round(read_at - begun, 3),
        "planned_s": round(planned_at - read_at, 3),
        "process_s": round(time.process_time(), 3),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(seconds), file=sys.stderr)
    return REFUSED if proposal.refused else 0


BENCHMARK = Benchmark("planner", run)


if __name__ == "__main__":
    sys.exit(main())
