"""Fair shares: how much each broker would hold if a cluster were even, as far as its racks allow."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shares:
    """Fair shares by broker; `means` are those of replicas, bytes and rates over all brokers that may receive.

    `rigid` says that racks fix how much each rack holds, because most partitions have a replica in all of them.
    """

    count: Mapping[int, float]
    disk: Mapping[int, float]
    rate: Mapping[int, float]
    means: tuple[float, float, float]
    rigid: bool


def fair_shares(
    racks: Mapping[int, str | int], replicas: Sequence[int], loads: Sequence[Sequence[float]], kept: Sequence[float]
) -> Shares:
    """Divide what the receiving brokers hold, or will, among them.

    `racks` has the rack of each receiver, `replicas` the number of replicas of each partition, `loads` what one replica
    of each weighs, as sizes and as rates; `kept` are the replicas, bytes and rates that stay on other brokers.
    A rack must hold a replica of every partition that has as many replicas as there are racks, so brokers in a small
    rack have a larger fair share than others.
    """
    brokers = Counter(racks.values())
    weights = [_by_replicas(replicas, [1.0] * len(replicas)), *(_by_replicas(replicas, load) for load in loads)]
    shares = [_shares(racks, brokers, weight, out) for weight, out in zip(weights, kept, strict=True)]
    count, disk, rate = shares
    means = [sum(share.values()) / max(1, len(share)) for share in shares]
    everywhere = sum(weight for number, weight in weights[0].items() if number >= len(brokers) > 1)
    return Shares(count, disk, rate, (means[0], means[1], means[2]), everywhere * 2 > len(replicas))


def _by_replicas(replicas: Sequence[int], load: Sequence[float]) -> dict[int, float]:
    """Sum up the weights of partitions by the number of their replicas."""
    found: dict[int, float] = {}
    for number, weight in zip(replicas, load, strict=True):
        found[number] = found.get(number, 0.0) + weight
    return found


def _shares(
    racks: Mapping[int, str | int], brokers: Mapping[str | int, int], weights: Mapping[int, float], kept: float
) -> dict[int, float]:
    total = max(0.0, sum(number * weight for number, weight in weights.items()) - kept)
    bounds = [_bounds(room, brokers, weights) for room in brokers.values()]
    held = _divide(total, list(brokers.values()), bounds)
    per_broker = {rack: part / brokers[rack] for rack, part in zip(brokers, held, strict=True)}
    return {number: per_broker[rack] for number, rack in racks.items()}


def _bounds(room: int, brokers: Mapping[str | int, int], weights: Mapping[int, float]) -> tuple[float, float]:
    """Return the least and the most that a rack of `room` brokers holds when all partitions are spread evenly."""
    least = most = 0.0
    for replicas, weight in weights.items():
        each, left = divmod(replicas, len(brokers))
        least += min(each, room) * weight
        most += min(each + (left > 0), room) * weight
    return least, max(least, most)


def _divide(total: float, brokers: Sequence[int], bounds: Sequence[tuple[float, float]]) -> list[float]:
    """Give each rack the same per broker, within its bounds, so that all is given away."""
    low, high = 0.0, max((most / room for (_, most), room in zip(bounds, brokers, strict=True)), default=0.0)
    for _ in range(60):
        level = (low + high) / 2
        given = sum(min(max(level * room, least), most) for (least, most), room in zip(bounds, brokers, strict=True))
        low, high = (level, high) if given < total else (low, level)
    held = [min(max(high * room, least), most) for (least, most), room in zip(bounds, brokers, strict=True)]
    rest = (total - sum(held)) / max(1, sum(brokers))
    return [part + rest * room for part, room in zip(held, brokers, strict=True)]
