"""`python -m bench.planner CLUSTER.json drain 1 > PLAN.json`: plan on a described cluster, seconds to stderr."""

import argparse
import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.planner_clusters import Sizes, describe, read
from drover.planner.goals import Add, Balance, Drain, Goal
from drover.planner.propose import propose

REFUSED = 2


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


if __name__ == "__main__":
    sys.exit(main())
