"""Small random clusters with everything that makes planning hard, and an independent judge of what a plan does."""

import itertools
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from drover.planner.goals import (
    Add,
    Balance,
    Drain,
    Evacuate,
    Goal,
    Heal,
    Leaders,
    Limits,
    Replace,
    SetReplicationFactor,
    Spread,
)
from drover.planner.model import Broker, ClusterModel, LogDir, Partition
from drover.planner.proposal import Move, Proposal

GIB = 1 << 30


def random_cluster(seed: int, most_brokers: int = 8, most_partitions: int = 14) -> ClusterModel:
    """Make a cluster: uneven or missing racks, dead and unwilling brokers, full disks, more replicas than racks."""
    draw = random.Random(seed)
    count = draw.randint(1, most_brokers)
    racks = draw.choice(((None,), ("a",), ("a", "b"), ("a", "a", "b"), ("a", "b", "c"), ("a", "b", "c", None)))
    partitions = [_partition(draw, number, count) for number in range(draw.randint(0, most_partitions))]
    used: Counter[int] = Counter()
    for partition in partitions:
        used.update(dict.fromkeys(partition.replicas, partition.size_bytes or 0))
    brokers = [_broker(draw, number, draw.choice(racks), used[number]) for number in range(1, count + 1)]
    return ClusterModel.of(brokers, partitions)


def _broker(draw: random.Random, number: int, rack: str | None, used: int) -> Broker:
    total = used + draw.choice((GIB // 100, GIB, 10 * GIB, 100 * GIB))
    sizes = (total, total - used) if draw.random() < 0.8 else (None, None)
    return Broker(
        id=number,
        rack=rack,
        alive=draw.random() < 0.9,
        excluded=draw.random() < 0.05,
        held=draw.random() < 0.05,
        failing=draw.random() < 0.05,
        log_dirs=(LogDir("/data", *sizes),),
    )


def _partition(draw: random.Random, number: int, brokers: int) -> Partition:
    replicas = tuple(draw.sample(range(1, brokers + 1), draw.randint(1, min(4, brokers))))
    in_sync = tuple(broker for broker in replicas if draw.random() < 0.95)
    return Partition(
        topic=f"topic-{number % 3}",
        partition=number,
        replicas=replicas,
        leader=replicas[0] if draw.random() < 0.95 else None,
        isr=in_sync or replicas[:1],
        size_bytes=None if draw.random() < 0.05 else draw.randint(0, GIB),
        internal=draw.random() < 0.05,
        moving=draw.random() < 0.05,
    )


def random_goals(seed: int, model: ClusterModel) -> tuple[Goal, ...]:
    """Draw one goal of each kind."""
    draw = random.Random(f"goals {seed}")
    ids = [broker.id for broker in model.brokers]
    racks = [broker.rack for broker in model.brokers if broker.rack is not None]
    goals: list[Goal] = [
        Drain(tuple(draw.sample(ids, min(len(ids), draw.randint(1, 2))))),
        Add((draw.choice(ids),)),
        Replace(draw.choice(ids), draw.choice(ids)),
        Balance(),
        Balance(max_bytes=draw.randint(0, 3 * GIB), max_moves=draw.randint(0, 4)),
        SetReplicationFactor(("topic-0",), draw.randint(1, 4)),
        Spread(),
        Leaders(),
        Heal(tuple(broker.id for broker in model.brokers if not broker.alive) or (ids[0],)),
    ]
    if racks:
        goals.append(Evacuate(draw.choice(racks)))
    return tuple(goals)


def pairs(model: ClusterModel, replicas: Sequence[int]) -> int:
    """Count the pairs of replicas in one rack; a broker without a rack is a rack of its own."""
    racks = {broker.id: broker.rack if broker.rack is not None else broker.id for broker in model.brokers}
    return sum(racks[one] == racks[other] for one, other in itertools.combinations(replicas, 2))


def fewest_pairs(model: ClusterModel, replicas: Sequence[int], leaving: Collection[int]) -> int:
    """Try every choice of as many brokers that may have a replica, or keep one; all of them, if there are fewer."""
    usable = [
        broker.id
        for broker in model.brokers
        if broker.id not in leaving and (broker.may_receive or broker.id in replicas)
    ]
    choices = itertools.combinations(usable, min(len(replicas), len(usable)))
    return min((pairs(model, choice) for choice in choices), default=0)


def faults(model: ClusterModel, proposal: Proposal, limits: Limits, leaving: Collection[int]) -> list[str]:
    """Play the moves in their order, copies before drops, and name every constraint that a step breaks."""
    found: list[str] = []
    brokers = model.broker_by_id
    arrived: Counter[int] = Counter()
    for move in proposal.moves:
        name = f"{move.topic}:{move.partition}"
        partition = model.partition_by_name[move.topic, move.partition]
        if move.before != partition.replicas or move.before == move.after:
            found.append(f"{name}: is not a change of what is there")
        if len(set(move.after)) != len(move.after) or not move.after:
            found.append(f"{name}: {move.after} is not a list of different brokers")
        if partition.moving or partition.leader is None or partition.internal:
            found.append(f"{name}: should have been left alone")
        for broker in move.adding:
            arrived[broker] += partition.size_bytes or 0
            if not brokers[broker].may_receive or broker in leaving:
                found.append(f"{name}: {broker} may not receive replicas")
            total, free = brokers[broker].total_bytes, brokers[broker].free_bytes
            if (
                total is not None
                and free is not None
                and arrived[broker] > max(0, free - total * (1 - limits.disk_limit)) + 1
            ):
                found.append(f"{name}: the disk of {broker} is above the limit")
        excess_before = pairs(model, move.before) - fewest_pairs(model, move.before, leaving)
        excess_after = pairs(model, move.after) - fewest_pairs(model, move.after, leaving)
        if excess_after > max(0, excess_before):
            found.append(f"{name}: loses racks")
        if len(move.before) == len(move.after) and not can_be_swapped(model, move, leaving):
            found.append(f"{name}: loses racks on the way, if its replicas are swapped one by one")
    return found


def can_be_swapped(model: ClusterModel, move: Move, leaving: Collection[int]) -> bool:
    """Whether the replicas can be exchanged one after another without losing racks on the way (KIP-435's steps)."""
    worst = max(pairs(model, move.before), fewest_pairs(model, move.before, leaving))
    for olds, news in itertools.product(itertools.permutations(move.removing), itertools.permutations(move.adding)):
        lists = [list(move.before)]
        for old, new in zip(olds, news, strict=True):
            lists.append([new if broker == old else broker for broker in lists[-1]])
        if all(pairs(model, each) <= worst for each in lists):
            return True
    return False


def targets_of(proposal: Proposal) -> dict[tuple[str, int], tuple[int, ...]]:
    """Return the lists that a proposal changes."""
    return {(topic, number): after for topic, number, after in proposal.targets}


def lists_after(
    model: ClusterModel, targets: Mapping[tuple[str, int], tuple[int, ...]]
) -> dict[tuple[str, int], tuple[int, ...]]:
    """Return all lists once targets are reached."""
    return {partition.name: targets.get(partition.name, partition.replicas) for partition in model.partitions}
