"""Sums over a cluster: replicas, bytes and leaders per broker, how even they are, and what copies add."""

from collections.abc import Sequence
from dataclasses import dataclass

from drover.planner.goals import Limits
from drover.planner.model import Broker, ClusterModel, Volume
from drover.planner.proposal import BalanceFigures, BrokerFigures, Move, Spread, Targets


@dataclass(frozen=True, slots=True)
class Loads:
    """Replicas, bytes and preferred leaders by broker; unknown sizes count as none."""

    count: dict[int, int]
    disk: dict[int, int]
    leaders: dict[int, int]


def loads_of(model: ClusterModel, targets: Targets) -> Loads:
    """Sum up what lies on each broker once these targets are reached."""
    count = dict.fromkeys((broker.id for broker in model.brokers), 0)
    disk, leaders = dict(count), dict(count)
    for partition in model.partitions:
        replicas = targets.get(partition.name, partition.replicas) if targets else partition.replicas
        size = partition.size_bytes or 0
        for broker in replicas:
            count[broker] = count.get(broker, 0) + 1
            disk[broker] = disk.get(broker, 0) + size
        if replicas:
            leaders[replicas[0]] = leaders.get(replicas[0], 0) + 1
    return Loads(count, disk, leaders)


def balance_of(loads: Loads, brokers: Sequence[int]) -> BalanceFigures:
    """Say how even the loads of these brokers are."""
    return BalanceFigures(
        spread_of([loads.count[broker] for broker in brokers]),
        spread_of([loads.disk[broker] for broker in brokers]),
        spread_of([loads.leaders[broker] for broker in brokers]),
    )


def spread_of(values: Sequence[int]) -> Spread:
    """Relate values to their mean."""
    total = sum(values)
    if not total:
        return Spread(1.0, 1.0, 0.0)
    mean = total / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    return Spread(max(values) / mean, min(values) / mean, variance**0.5 / mean)


def room_of(broker: Broker, disk_limit: float) -> int | None:
    """Return how many bytes its disks may take below the limit beside what arrives already; None if unknown."""
    rooms = [_room(volume, disk_limit) for volume in broker.receiving_volumes]
    known = [room for room in rooms if room is not None]
    return max(0, sum(known) - broker.arriving_bytes) if known and len(known) == len(rooms) else None


def largest_room_of(broker: Broker, disk_limit: float) -> int | None:
    """Return what fits on its emptiest disk: one replica is never split; None if unknown."""
    rooms = [_room(volume, disk_limit) for volume in broker.receiving_volumes]
    known = [room for room in rooms if room is not None]
    return max(known) if known and len(known) == len(rooms) else None


def _room(volume: Volume, disk_limit: float) -> int | None:
    if volume.total_bytes is None or volume.free_bytes is None:
        return None
    return max(0, volume.free_bytes - round(volume.total_bytes * (1 - disk_limit)))


def broker_figures(
    model: ClusterModel, moves: Sequence[Move], limits: Limits, before: Loads, after: Loads
) -> tuple[BrokerFigures, ...]:
    """Sum up for every broker, also those that only appear in lists, what moves mean for it."""
    numbers = sorted(before.count.keys() | after.count.keys())
    copies_in = dict.fromkeys(numbers, 0)
    dropped, bytes_in, bytes_out = dict(copies_in), dict(copies_in), dict(copies_in)
    partitions, known = model.partition_by_name, model.broker_by_id
    for move in moves:
        size = move.size_bytes or 0
        for broker in move.adding:
            copies_in[broker] += 1
            bytes_in[broker] += size
        for broker in move.removing:
            dropped[broker] += 1
        leader = partitions[move.topic, move.partition].leader
        if leader in bytes_out:
            bytes_out[leader] += move.copied_bytes
    return tuple(
        BrokerFigures(
            broker=number,
            copies_in=copies_in[number],
            copies_dropped=dropped[number],
            bytes_in=bytes_in[number],
            bytes_out=bytes_out[number],
            peak_extra_bytes=bytes_in[number],
            room_bytes=room_of(known[number], limits.disk_limit) if number in known else None,
            replicas_before=before.count.get(number, 0),
            replicas_after=after.count.get(number, 0),
            disk_bytes_before=before.disk.get(number, 0),
            disk_bytes_after=after.disk.get(number, 0),
            leaders_before=before.leaders.get(number, 0),
            leaders_after=after.leaders.get(number, 0),
        )
        for number in numbers
    )
