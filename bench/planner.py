"""`python -m bench.planner CLUSTER.json drain 1 > PLAN.json`: plan on a described cluster; seconds go to stderr."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drover.planning.goals import Add, Balance, Drain, Goal
from drover.planning.model import Broker, ClusterModel, LogDir, Partition
from drover.planning.propose import propose

MIB = 1 << 20


def main(arguments: Sequence[str] | None = None) -> int:
    path, verb, *rest = arguments if arguments is not None else sys.argv[1:]
    t0 = time.process_time()
    model = read(Path(path))
    t1 = time.process_time()
    goal: Goal = {"drain": lambda: Drain(tuple(map(int, rest))), "add": lambda: Add(tuple(map(int, rest))), "balance": Balance}[verb]()
    proposal = propose(model, goal)
    t2 = time.process_time()
    plan = {"version": 1, "partitions": [{"topic": m.topic, "partition": m.partition, "replicas": m.after} for m in proposal.moves]}
    print(json.dumps(plan))
    print(f"read {t1 - t0:.2f} s, planned {t2 - t1:.2f} s; whole process {time.process_time():.2f} s", file=sys.stderr)
    for u in proposal.unmet[:10]: print(u.text, file=sys.stderr)
    return 0


def read(path: Path) -> ClusterModel:
    content: dict[str, Any] = json.loads(path.read_bytes())
    used: dict[int, float] = {}
    for each in content["partitions"]:
        for broker in each["replicas"]:
            used[broker] = used.get(broker, 0.0) + each["sizeMB"]
    brokers = [
        Broker(
            id=each["id"],
            rack=each["rack"],
            alive=each["state"] != "DEAD",
            log_dirs=(LogDir("data", round(each["diskMB"] * MIB), round((each["diskMB"] - used.get(each["id"], 0)) * MIB)),),
        )
        for each in content["brokers"]
    ]
    partitions = [
        Partition(
            topic=each["topic"],
            partition=each["partition"],
            replicas=tuple(each["replicas"]),
            leader=each["replicas"][0],
            isr=tuple(each["replicas"]),
            size_bytes=round(each["sizeMB"] * MIB),
            ingest_bytes_per_s=each["inKB"] * 1024,
        )
        for each in content["partitions"]
    ]
    return ClusterModel.of(brokers, partitions)


if __name__ == "__main__":
    sys.exit(main())
