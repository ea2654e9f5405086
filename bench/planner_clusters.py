"""Described clusters, made from a seed or read from a file, and a judge of plans that does not know the planner."""

import json
import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drover.planner.model import Broker, ClusterModel, LogDir, Partition

Description = dict[str, Any]
MIB = 1 << 20
TOPIC_SIZES = (3, 6, 12, 24, 48, 96)
FAN_OUTS = (1, 1, 2, 3)
# Shares of the capacity that an average broker uses.
DISK_USE, NETWORK_USE = 0.5, 0.4


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a described cluster; `new` brokers are empty."""

    brokers: int
    partitions: int
    replicas: int
    racks: int
    seed: int
    new: int = 0


def describe(sizes: Sizes) -> Description:
    """Make a cluster: topics of very different sizes and rates, spread over racks, and not quite even.

    The draws and their order are fixed: the figures of other planners in docs/planning.md are for these clusters.
    """
    draw = random.Random(sizes.seed)
    racks = [[each + 1 for each in range(sizes.brokers) if each % sizes.racks == rack] for rack in range(sizes.racks)]
    partitions = list(_partitions(draw, sizes, racks))
    disk_mb, in_kb = (sizes.replicas * sum(each[name] for each in partitions) for name in ("sizeMB", "inKB"))
    # Only leaders are read from.
    out_kb = in_kb + sum(each["outKB"] for each in partitions)
    capacity = {
        "diskMB": round(disk_mb / sizes.brokers / DISK_USE),
        "inKB": round(in_kb / sizes.brokers / NETWORK_USE),
        "outKB": round(out_kb / sizes.brokers / NETWORK_USE),
    }
    brokers = [
        {
            "id": each + 1,
            "rack": f"r{each % sizes.racks}",
            "state": "NEW" if each >= sizes.brokers else "ALIVE",
            **capacity,
        }
        for each in range(sizes.brokers + sizes.new)
    ]
    return {"brokers": brokers, "partitions": partitions}


def _partitions(draw: random.Random, sizes: Sizes, racks: Sequence[Sequence[int]]) -> Iterator[Description]:
    left, topic = sizes.partitions, 0
    while left:
        count = min(draw.choice(TOPIC_SIZES), left)
        size_mb, in_kb = math.exp(draw.gauss(6.5, 1.0)), math.exp(draw.gauss(4.0, 1.0))
        fan_out, start, shift = draw.choice(FAN_OUTS), draw.randrange(10**6), draw.randrange(10**6)
        for number in range(count):
            replicas = _replicas(draw, sizes, racks, start, shift, number)
            size, rate = (round(mean * draw.uniform(0.7, 1.3), places) for mean, places in ((size_mb, 2), (in_kb, 3)))
            yield {
                "topic": f"t{topic:05d}",
                "partition": number,
                "replicas": replicas,
                "sizeMB": size,
                "inKB": rate,
                "outKB": round(rate * fan_out, 3),
            }
        left -= count
        topic += 1


def _replicas(
    draw: random.Random, sizes: Sizes, racks: Sequence[Sequence[int]], start: int, shift: int, number: int
) -> list[int]:
    chosen: dict[int, None] = {}
    for place in range(sizes.replicas):
        rack = racks[(start + number + place) % sizes.racks]
        step = start // sizes.racks + number // sizes.racks + (shift + 1) * place + number % 7 * place
        chosen[rack[step % len(rack)]] = None
    while len(chosen) < sizes.replicas:
        chosen[draw.choice(range(1, sizes.brokers + 1))] = None
    return list(chosen)


def read(path: Path) -> ClusterModel:
    """Read a described cluster; what its disks hold is the sum of their replicas."""
    return model_of(json.loads(path.read_bytes()))


def model_of(description: Description) -> ClusterModel:
    """Make the planner's model: everybody is in sync, the first replica leads."""
    used_mb: dict[int, float] = {}
    for each in description["partitions"]:
        for number in each["replicas"]:
            used_mb[number] = used_mb.get(number, 0.0) + each["sizeMB"]
    return ClusterModel.of(
        (_broker(each, used_mb.get(each["id"], 0.0)) for each in description["brokers"]),
        (
            Partition(
                topic=each["topic"],
                partition=each["partition"],
                replicas=(replicas := tuple(each["replicas"])),
                leader=replicas[0],
                isr=replicas,
                size_bytes=round(each["sizeMB"] * MIB),
            )
            for each in description["partitions"]
        ),
    )


def _broker(description: Description, used_mb: float) -> Broker:
    total = round(description["diskMB"] * MIB)
    disk = LogDir("data", total, total - round(used_mb * MIB))
    return Broker(description["id"], description["rack"], alive=description["state"] != "DEAD", log_dirs=(disk,))


@dataclass(frozen=True, slots=True)
class Judgement:
    """The effect of a plan on a described cluster; a balance is the highest load over the mean of brokers that stay."""

    copies: int
    copied_gib: float
    leaders_moved: int
    rack_violations: int
    left: int
    count: float
    disk: float
    leaders: float


def judge(description: Description, plan: Mapping[str, Any], leaving: Collection[int] = ()) -> Judgement:
    """Judge a plan in the stock tool's form; `leaving` brokers should hold nothing afterwards."""
    racks = {each["id"]: each["rack"] for each in description["brokers"]}
    staying = [number for number in racks if number not in leaving]
    rack_count = len({racks[number] for number in staying})
    targets = {(each["topic"], each["partition"]): each["replicas"] for each in plan["partitions"]}
    count, disk, leaders = (dict.fromkeys(racks, 0.0) for _ in range(3))
    copies = moved = violations = left = 0
    copied_mb = 0.0
    for each in description["partitions"]:
        before = each["replicas"]
        after = targets.get((each["topic"], each["partition"]), before)
        added = len(set(after) - set(before))
        copies += added
        copied_mb += added * each["sizeMB"]
        moved += before[0] != after[0]
        violations += len({racks[number] for number in after}) < min(len(after), rack_count)
        left += len(set(after) & set(leaving))
        leaders[after[0]] += 1
        for number in after:
            count[number] += 1
            disk[number] += each["sizeMB"]
    highest = (_highest([load[number] for number in staying]) for load in (count, disk, leaders))
    return Judgement(copies, copied_mb / 1024, moved, violations, left, *highest)


def _highest(loads: Sequence[float]) -> float:
    return max(loads) * len(loads) / sum(loads)
