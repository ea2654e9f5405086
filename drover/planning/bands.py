"""Bands: between which loads a broker is neither overloaded nor underloaded, and how far it is from them."""

import math
from collections.abc import Collection, Iterable, Sequence

from drover.planning.layout import Layout


class Bands:
    """The bands of every receiver, and the level to which each source is taken down.

    A broker may hold `above` more and `below` less than its fair share. When the underloaded brokers need more than the
    overloaded ones must give, the rest comes from those that hold the most: the level is then where enough is given.
    """

    def __init__(
        self, layout: Layout, sources: Sequence[int], receivers: Sequence[int], *, bounded_sources: bool
    ) -> None:
        self.layout = layout
        self.bounded_sources = bounded_sources
        self.receivers = list(receivers)
        limits, shares = layout.limits, layout.shares
        self.mean_count, self.mean_disk, _ = (max(mean, 1e-9) for mean in shares.means)
        self.high_count = {
            number: max(math.ceil(share - 1e-9), math.floor(share * (1 + limits.above) + 1e-9))
            for number, share in shares.count.items()
        }
        self.high_disk = {number: share * (1 + limits.above) for number, share in shares.disk.items()}
        self.low_count = {number: math.ceil(shares.count[number] * (1 - limits.below) - 1e-9) for number in receivers}
        self.low_disk = {number: shares.disk[number] * (1 - limits.below) for number in receivers}
        self.level_count: dict[int, float] = {}
        self.level_disk: dict[int, float] = {}
        for group in self._groups([*sources, *receivers]):
            givers = [number for number in group if number in set(sources)]
            takers = [number for number in group if number in set(receivers)]
            count = sum(max(0, self.low_count[number] - layout.count[number]) for number in takers)
            disk = sum(max(0.0, self.low_disk[number] - layout.disk[number]) for number in takers)
            count_level = water_level([layout.count[number] for number in givers], count)
            disk_level = water_level([layout.disk[number] for number in givers], disk)
            for number in givers:
                self.level_count[number] = min(self.high_count[number], count_level)
                self.level_disk[number] = min(self.high_disk[number], disk_level)

    def _groups(self, brokers: Iterable[int]) -> list[list[int]]:
        everyone = sorted(set(brokers))
        if not self.layout.shares.rigid:
            return [everyone]
        racks: dict[str | int, list[int]] = {}
        for number in everyone:
            racks.setdefault(self.layout.rack[number], []).append(number)
        return list(racks.values())

    def above_level(self, source: int) -> tuple[float, float]:
        """Return how many replicas and bytes a source still has to give."""
        layout = self.layout
        return layout.count[source] - self.level_count[source], layout.disk[source] - self.level_disk[source]

    def pressure(self, source: int) -> float:
        """Return the larger of the two, in shares of the means."""
        count, disk = self.above_level(source)
        # Replicas are whole: what is left of one need not go.
        return max(math.floor(count + 1e-9) / self.mean_count, disk / self.mean_disk)

    def pressure_with(self, source: int, size: int) -> float:
        """Return how far a source would be above its level with one more replica; 0.0 if it would not be."""
        count, disk = self.above_level(source)
        return max(0.0, (count + 1) / self.mean_count, (disk + size) / self.mean_disk)

    def below_band(self, broker: int) -> tuple[float, float]:
        """Return how many replicas and bytes a receiver lacks."""
        layout = self.layout
        return self.low_count[broker] - layout.count[broker], self.low_disk[broker] - layout.disk[broker]

    def most_underloaded(self, stuck: Collection[int]) -> int | None:
        """Return the receiver that lacks the most; None if all are in their bands."""
        best, most = None, 0.0
        for number in self.receivers:
            if number not in stuck:
                count, disk = self.below_band(number)
                need = max(count / self.mean_count, disk / self.mean_disk)
                if need > most + 1e-12:
                    best, most = number, need
        return best

    def standing(self, broker: int) -> float:
        """Return how loaded a broker is, relative to its fair share."""
        layout = self.layout
        return layout.over_count[broker] / self.mean_count + layout.over_disk[broker] / self.mean_disk

    def neediest(self, number: int, source: int) -> list[int]:
        """Return the receivers that hold the least, relative to their fair shares."""
        rack = self.layout.rack[source] if self.layout.shares.rigid else None
        found = [
            broker
            for broker in self.receivers
            if broker != source and (rack is None or self.layout.rack[broker] == rack)
        ]
        found.sort(key=lambda broker: (self.standing(broker), broker))
        return found[:number]

    def admits(self, broker: int, size: int) -> bool:
        """Whether one more replica leaves a receiver inside its band."""
        layout = self.layout
        return layout.count[broker] < self.high_count[broker] and layout.disk[broker] + size <= self.high_disk[broker]

    def spares(self, broker: int, size: int) -> bool:
        """Whether a receiver stays in its band without one replica."""
        layout = self.layout
        return layout.count[broker] > self.low_count[broker] and layout.disk[broker] - size >= self.low_disk[broker]

    def bears(self, source: int, size: int) -> bool:
        """Whether a source stays in its band with one more replica; those that only give have none."""
        return not self.bounded_sources or (
            self.layout.count[source] < self.high_count[source] and self.bears_bytes(source, size)
        )

    def bears_bytes(self, source: int, size: int) -> bool:
        """Whether a source stays in its band with so many more bytes."""
        return not self.bounded_sources or self.layout.disk[source] + size <= self.high_disk[source]

    def may_give(self, broker: int) -> bool:
        """Whether a broker is far enough above its band's lower end to give to others."""
        return self.layout.over_count[broker] > 0 or self.layout.over_disk[broker] > 0


def water_level(loads: Sequence[float], amount: float) -> float:
    """Return the level at which taking down all that is above it gives the amount."""
    ranked = sorted(loads, reverse=True)
    if amount <= 0 or not ranked:
        return math.inf
    taken = 0.0
    for index, load in enumerate(ranked):
        below = ranked[index + 1] if index + 1 < len(ranked) else 0.0
        step = (load - below) * (index + 1)
        if taken + step >= amount:
            return load - (amount - taken) / (index + 1)
        taken += step
    return 0.0
