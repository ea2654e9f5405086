"""Described clusters with loads, made from a seed, and a judge of plans by load that does not know the planner.

Topics differ in rates, retention and consumers by orders of magnitude, one in 25 is hot. Placement is what Kafka gives
a new topic; one topic in seven was moved by hand, and the heads of a fifth of the lists were chosen anew. Of unequal
clusters three brokers in ten have four times the disk and twice the network. The draws and their order are fixed: the
figures of other planners in docs/planning.md are for these clusters.
"""

import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Description = dict[str, Any]
TOPIC_PARTITIONS = (3, 6, 12, 24, 48, 96)
FAN_OUTS = (0, 1, 1, 1, 2, 2, 3, 6)
MB, GB = 1_000_000, 1_000_000_000
# Bytes a second before skew, and cores of a broker.
MEAN_WRITE, CORES = 200_000, 16
# Of a capacity: what the fullest broker uses, and what all use together at most.
FULLEST, DISK_USED, NETWORK_USED, CORES_USED = 0.92, 0.5, 0.2, 0.4
# Of one partition, of what an average broker leads or stores.
LARGEST_RATE, LARGEST_SIZE = 0.15, 0.05
# What a byte costs the processor, written to a leader, sent by it, and fetched by a follower.
CPU_WRITE, CPU_OUT, CPU_FOLLOW = 0.7, 0.15, 0.15
REPLICAS = 3
ABOVE, FULL = 1.1, 0.8


@dataclass(frozen=True, slots=True)
class LoadSizes:
    """The sizes of a described cluster; `new` brokers are empty."""

    brokers: int
    partitions: int
    racks: int
    seed: int
    unequal: bool = False
    new: int = 0


class _Draw:
    """Draws from one stream, with `random()` only, which is the same in every version of Python."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed).random

    def below(self, count: int) -> int:
        return int(self.random() * count)

    def chance(self, share: float) -> bool:
        return self.random() < share

    def pick(self, choices: Sequence[int]) -> int:
        return choices[self.below(len(choices))]

    def lognormal(self, mean: float, sigma: float) -> float:
        normal = math.sqrt(-2 * math.log(1 - self.random())) * math.cos(2 * math.pi * self.random())
        return mean * math.exp(sigma * normal - sigma * sigma / 2)

    def weighted(self, choices: Sequence[int], weight: Mapping[int, float]) -> int:
        left = self.random() * sum(weight[each] for each in choices)
        for each in choices:
            left -= weight[each]
            if left < 0:
                return each
        return choices[-1]


def _in_turn(brokers: Sequence[int], rack: Mapping[int, str]) -> list[int]:
    racks: dict[str, list[int]] = {}
    for each in brokers:
        racks.setdefault(rack[each], []).append(each)
    rows = [racks[name] for name in sorted(racks)]
    return [row[place] for place in range(max(map(len, rows))) for row in rows if place < len(row)]


def _as_kafka_does(
    order: Sequence[int], rack: Mapping[int, str], count: int, start: int, shift: int
) -> list[list[int]]:
    """Make the lists of a new topic as AdminUtils.assignReplicasToBrokersRackAware does, in short."""
    racks, size, lists = len({rack[each] for each in order}), len(order), []
    for number in range(count):
        if number and number % size == 0:
            shift += 1
        first = (start + number) % size
        chosen, step = [order[first]], 0
        while len(chosen) < REPLICAS:
            each = order[(first + 1 + (shift + step) % (size - 1)) % size]
            used = {rack[other] for other in chosen}
            if each not in chosen and (rack[each] not in used or len(used) == racks):
                chosen.append(each)
            step += 1
        lists.append(chosen)
    return lists


def _by_hand(
    draw: _Draw, brokers: Sequence[int], rack: Mapping[int, str], count: int, popular: Mapping[int, float]
) -> list[list[int]]:
    racks, lists = len({rack[each] for each in brokers}), []
    for _ in range(count):
        chosen: list[int] = []
        while len(chosen) < REPLICAS:
            used = {rack[other] for other in chosen}
            free = [each for each in brokers if each not in chosen and (rack[each] not in used or len(used) >= racks)]
            chosen.append(draw.weighted(free, popular))
        lists.append(chosen)
    return lists


def _partitions(draw: _Draw, sizes: LoadSizes, rack: Mapping[int, str]) -> list[Description]:
    brokers = sorted(rack)
    popular = {each: draw.lognormal(1, 0.4) for each in brokers}
    leading = {each: draw.lognormal(1, 0.6) for each in brokers}
    order = _in_turn(brokers, rack)
    made: list[Description] = []
    number = 0
    while len(made) < sizes.partitions:
        count = min(draw.pick(TOPIC_PARTITIONS), sizes.partitions - len(made))
        write = draw.lognormal(MEAN_WRITE, 1.1) * (8 if draw.chance(0.04) else 1)
        fan_out = draw.pick(FAN_OUTS) * (0.9 + 0.2 * draw.random())
        compacted, retention_s, state = draw.chance(0.1), draw.lognormal(86_400, 0.8), draw.lognormal(20 * GB, 1.0)
        cpu = draw.lognormal(1, 0.3)
        hot = draw.below(count) if draw.chance(0.1) else None
        # One draw that only clusters of another kind need.
        draw.chance(0.4)
        moved = draw.chance(1 / 7)
        start, shift = draw.random(), draw.random()
        if moved:
            lists = _by_hand(draw, sorted(order), rack, count, popular)
        else:
            lists = _as_kafka_does(order, rack, count, int(start * len(order)), int(shift * len(order)))
        for each, replicas in enumerate(lists):
            rate = write * draw.lognormal(1, 0.25) * (5 if each == hot else 1)
            size = state * draw.lognormal(1, 0.2) if compacted else rate * retention_s
            if draw.chance(0.2):
                head = draw.weighted(replicas, leading)
                replicas = [head, *(other for other in replicas if other != head)]  # noqa: PLW2901 - its order is drawn
            rates = {"write_bytes_per_s": rate, "read_bytes_per_s": rate * fan_out, "cpu_cores": cpu}
            made.append(
                {"topic": f"t{number:05d}", "partition": each, "replicas": replicas, "size_bytes": size, **rates}
            )
        number += 1
    return made


def _finish(partitions: Sequence[Description], brokers: int) -> None:
    """Cap what is too large, and make whole numbers."""
    for name, share in (
        ("write_bytes_per_s", LARGEST_RATE),
        ("read_bytes_per_s", LARGEST_RATE),
        ("size_bytes", LARGEST_SIZE * REPLICAS),
    ):
        cap = share * sum(each[name] for each in partitions) / brokers
        for each in partitions:
            each[name] = round(min(each[name], cap))
    for each in partitions:
        each["cpu_cores"] *= _processor(each)


def _processor(partition: Description) -> float:
    write, read = float(partition["write_bytes_per_s"]), float(partition["read_bytes_per_s"])
    return CPU_WRITE * write + CPU_OUT * (read + (REPLICAS - 1) * write)


def _of_follower(partition: Description) -> float:
    whole = _processor(partition)
    return partition["cpu_cores"] * CPU_FOLLOW * partition["write_bytes_per_s"] / whole if whole else 0.0


def loads(
    partitions: Sequence[Description], lists: Sequence[Sequence[int]], brokers: Collection[int]
) -> dict[str, dict[int, float]]:
    """Sum up what each broker bears with these lists."""
    names = ("disk", "network in", "network out", "processor", "writes", "replicas", "leaders")
    load = {name: dict.fromkeys(brokers, 0.0) for name in names}
    for each, replicas in zip(partitions, lists, strict=True):
        write, leader = each["write_bytes_per_s"], replicas[0]
        for broker in replicas:
            load["disk"][broker] += each["size_bytes"]
            load["network in"][broker] += write
            load["replicas"][broker] += 1
            load["processor"][broker] += each["cpu_cores"] if broker == leader else _of_follower(each)
        load["network out"][leader] += each["read_bytes_per_s"] + (REPLICAS - 1) * write
        load["writes"][leader] += write
        load["leaders"][leader] += 1
    return load


def _capacity(load: Mapping[int, float], weight: Mapping[int, int], share: float, unit: int) -> int:
    mean = sum(load.values()) / (share * sum(weight[each] for each in load))
    return math.ceil(max(mean, max(load[each] / weight[each] for each in load) / FULLEST) / unit) * unit


def describe_loads(sizes: LoadSizes) -> Description:
    """Make a cluster in the form of `drover describe --save`."""
    rack = {each + 1: f"r{each % sizes.racks}" for each in range(sizes.brokers + sizes.new)}
    big = {each + 1 for each in range(len(rack)) if sizes.unequal and each // sizes.racks % 3 == 2}
    base = range(1, sizes.brokers + 1)
    made = _partitions(_Draw(f"genload {sizes.seed}"), sizes, {each: rack[each] for each in base})
    _finish(made, sizes.brokers)
    load = loads(made, [each["replicas"] for each in made], base)
    cores = load["processor"]
    scale = min(CORES_USED * CORES * sizes.brokers / sum(cores.values()), FULLEST * CORES / max(cores.values()))
    for each in made:
        each["cpu_cores"] = float(f"{each['cpu_cores'] * scale:.5g}")
    of_disk, of_network = ({each: more if each in big else 1 for each in rack} for more in (4, 2))
    disk = _capacity(load["disk"], of_disk, DISK_USED, 100 * GB)
    network = max(_capacity(load[name], of_network, NETWORK_USED, 5 * MB) for name in ("network in", "network out"))
    return {
        "version": 1,
        "brokers": [
            {
                "id": each,
                "rack": rack[each],
                "log_dirs": [
                    {
                        "path": "/data",
                        "total_bytes": disk * of_disk[each],
                        "free_bytes": disk * of_disk[each] - round(load["disk"].get(each, 0)),
                    }
                ],
                "network_in_bytes_per_s": network * of_network[each],
                "network_out_bytes_per_s": network * of_network[each],
                "cores": CORES,
            }
            for each in rack
        ],
        "partitions": made,
    }


@dataclass(frozen=True, slots=True)
class LoadJudgement:
    """The cost of a plan, and how many loads of brokers are more than 10 % above fair, or above 80 % of a capacity.

    `excess` is how far all loads together are more than 10 % above fair, in fair shares.
    """

    copies: int
    copied_tb: float
    above: int
    full: int
    rack_violations: int
    peak_disk: float
    excess: float


def judge_loads(
    description: Description, targets: Mapping[tuple[str, int], Sequence[int]], dead: Collection[int] = ()
) -> LoadJudgement:
    """Judge new lists; `dead` brokers do not count."""
    brokers = {each["id"]: each for each in description["brokers"]}
    partitions = description["partitions"]
    before = [each["replicas"] for each in partitions]
    after = [targets.get((each["topic"], each["partition"]), each["replicas"]) for each in partitions]
    able: dict[str, dict[int, float]] = {
        "disk": {number: each["log_dirs"][0]["total_bytes"] for number, each in brokers.items()},
        "network in": {number: each["network_in_bytes_per_s"] for number, each in brokers.items()},
        "network out": {number: each["network_out_bytes_per_s"] for number, each in brokers.items()},
        "processor": {number: each["cores"] for number, each in brokers.items()},
    }
    live = [number for number in brokers if number not in dead]
    above = full = 0
    excess = 0.0
    for name, load in loads(partitions, after, brokers).items():
        can = able.get(name) or dict.fromkeys(brokers, 1.0)
        fair = sum(load[number] for number in live) / sum(can[number] for number in live)
        shares = [load[number] / can[number] / fair for number in live]
        above += sum(share > ABOVE for share in shares)
        excess += sum(max(0.0, share - ABOVE) for share in shares)
        full += sum(load[number] / can[number] > FULL for number in live) if name in able else 0
    copied = [
        (each["size_bytes"], number)
        for each, old, new in zip(partitions, before, after, strict=True)
        for number in new
        if number not in old
    ]
    peak = loads(partitions, before, brokers)["disk"]
    for size, number in copied:
        peak[number] += size
    racks = len({brokers[number]["rack"] for number in live})
    return LoadJudgement(
        len(copied),
        sum(size for size, _ in copied) / 1e12,
        above,
        full,
        sum(len({brokers[number]["rack"] for number in new}) < min(len(new), racks) for new in after),
        max(peak[number] / able["disk"][number] for number in live),
        round(excess, 2),
    )
