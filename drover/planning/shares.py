"""Fair shares: how much each broker would hold if a cluster were even, as far as its racks allow."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drover.planning.layout import Layout


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


def fair_shares(layout: "Layout") -> Shares:
    """Divide what the receiving brokers hold, or will, among them.

    A rack must hold a replica of every partition that has as many replicas as there are racks, so brokers in a small
    rack have a larger fair share than others.
    """
    brokers = Counter(layout.rack[number] for number in layout.receivers)
    weights = _by_replicas(layout)
    staying = [number for number in layout.count if number not in layout.receives and number not in layout.leaving]
    known = layout.model.broker_by_id
    kept = [number for number in staying if number in known and known[number].alive]
    shares = [
        _shares(layout, brokers, weights[index], sum(load[number] for number in kept))
        for index, load in enumerate((layout.count, layout.disk, layout.ingest))
    ]
    means = tuple(sum(share.values()) / max(1, len(share)) for share in shares)
    rigid = sum(n for replicas, n in weights[0].items() if replicas >= len(brokers) > 1) * 2 > sum(weights[0].values())
    return Shares(shares[0], shares[1], shares[2], (means[0], means[1], means[2]), rigid)


def _by_replicas(layout: "Layout") -> tuple[dict[int, float], dict[int, float], dict[int, float]]:
    """Sum up partitions, their sizes and their rates by the number of their replicas."""
    count: dict[int, float] = {}
    disk: dict[int, float] = {}
    rate: dict[int, float] = {}
    for partition, replicas in enumerate(layout.original):
        number = len(replicas)
        count[number] = count.get(number, 0) + 1
        disk[number] = disk.get(number, 0) + layout.size[partition]
        rate[number] = rate.get(number, 0) + layout.rate[partition]
    return count, disk, rate


def _shares(
    layout: "Layout", brokers: Mapping[str | int, int], weights: Mapping[int, float], kept: float
) -> dict[int, float]:
    total = max(0.0, sum(replicas * weight for replicas, weight in weights.items()) - kept)
    racks = tuple(brokers)
    bounds = [_bounds(brokers[rack], brokers, weights) for rack in racks]
    held = _divide(total, [brokers[rack] for rack in racks], bounds)
    per_broker = {rack: part / brokers[rack] for rack, part in zip(racks, held, strict=True)}
    return {number: per_broker[layout.rack[number]] for number in layout.receivers}


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
