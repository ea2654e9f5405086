"""Bands: between which loads a broker is neither overloaded nor underloaded, and how far it is from them."""

import math
from collections.abc import Collection, Iterable, Sequence

from drover.planner.layout import Layout

# Shares of the mean below which a difference is rounding.
ROUNDING = 1e-9


class Bands:
    """The bands of every receiver, and the level to which each source is taken down.

    A broker may hold `above` more and `below` less than its fair share; replicas are whole, so the share rounded either
    way is always inside. When the underloaded brokers need more than the overloaded ones must give, the rest comes from
    those that hold the most: the level is then where enough is given. With `only_fill`, the receivers are to be filled,
    and sources that are above their bands do not count.
    """

    def __init__(self, layout: Layout, sources: Sequence[int], receivers: Sequence[int], *, only_fill: bool) -> None:
        self.layout = layout
        self.receivers = list(receivers)
        self.only_fill = only_fill
        limits, shares = layout.limits, layout.shares
        self.mean_count, self.mean_disk = (max(mean, ROUNDING) for mean in shares.means[:2])
        self.high_count = {
            number: max(math.ceil(share - ROUNDING), math.floor(share * (1 + limits.above) + ROUNDING))
            for number, share in shares.count.items()
        }
        self.high_disk = {number: share * (1 + limits.above) for number, share in shares.disk.items()}
        self.low_count = {
            number: min(math.floor(share + ROUNDING), math.ceil(share * (1 - limits.below) - ROUNDING))
            for number, share in shares.count.items()
            if number in layout.receives
        }
        self.low_disk = {number: shares.disk[number] * (1 - limits.below) for number in self.low_count}
        self.level_count: dict[int, float] = {}
        self.level_disk: dict[int, float] = {}
        for group in self._groups({*sources, *receivers}):
            self._set_levels([number for number in group if number in set(sources)], group & set(receivers))

    def _groups(self, brokers: Collection[int]) -> list[set[int]]:
        """Put together the brokers that can take replicas from each other: those of a rack, where racks are rigid."""
        if not self.layout.shares.rigid:
            return [set(brokers)]
        racks: dict[str | int, set[int]] = {}
        for number in sorted(brokers):
            racks.setdefault(self.layout.rack[number], set()).add(number)
        return list(racks.values())

    def _set_levels(self, givers: Sequence[int], takers: Iterable[int]) -> None:
        givers, takers, layout = sorted(givers), sorted(takers), self.layout
        count = sum(max(0, self.low_count[number] - layout.count[number]) for number in takers)
        disk = sum(max(0.0, self.low_disk[number] - layout.disk[number]) for number in takers)
        count_level = water_level([layout.count[number] for number in givers], count)
        disk_level = water_level([layout.disk[number] for number in givers], disk)
        for number in givers:
            self.level_count[number] = min(self.high_count.get(number, math.inf), count_level)
            self.level_disk[number] = min(self.high_disk.get(number, math.inf), disk_level)

    def above_level(self, source: int) -> tuple[float, float]:
        """Return how many replicas and bytes a source still has to give."""
        layout = self.layout
        return layout.count[source] - self.level_count[source], layout.disk[source] - self.level_disk[source]

    def pressure(self, source: int) -> float:
        """Return the larger of the two, in shares of the means."""
        count, disk = self.above_level(source)
        # Replicas are whole: what is left of one need not go.
        return max(math.floor(count + ROUNDING) / self.mean_count, disk / self.mean_disk)

    def pressure_with(self, source: int, size: int) -> float:
        """Return how far a source would be above its level with one more replica; 0.0 if it would not be."""
        count, disk = self.above_level(source)
        return max(0.0, (count + 1) / self.mean_count, (disk + size) / self.mean_disk)

    def below_band(self, broker: int) -> tuple[float, float]:
        """Return how many replicas and bytes a receiver lacks."""
        layout = self.layout
        return self.low_count[broker] - layout.count[broker], self.low_disk[broker] - layout.disk[broker]

    def need(self, broker: int) -> float:
        """Return the larger of the two, in shares of the means."""
        count, disk = self.below_band(broker)
        return max(count / self.mean_count, disk / self.mean_disk)

    def standing(self, broker: int) -> float:
        """Return how loaded a broker is, relative to its fair share."""
        layout = self.layout
        return layout.over_count[broker] / self.mean_count + layout.over_disk[broker] / self.mean_disk

    def may_take(self, broker: int, source: int) -> bool:
        """Whether a broker may take replicas from a source: not from another rack, where racks are rigid."""
        rack = self.layout.rack
        return broker != source and (not self.layout.shares.rigid or rack[broker] == rack[source])

    def admits(self, broker: int, size: int) -> bool:
        """Whether one more replica leaves a receiver below the upper end of its band."""
        layout = self.layout
        return layout.count[broker] < self.high_count[broker] and layout.disk[broker] + size <= self.high_disk[broker]

    def outside(self, broker: int, count: int = 0, size: float = 0) -> float:
        """Return how far a broker is outside its band, in shares of the means, with so much more than it holds."""
        layout = self.layout
        held, disk = layout.count[broker] + count, layout.disk[broker] + size
        found = 0.0
        if broker in self.low_count:
            found += max(0, self.low_count[broker] - held) / self.mean_count
            found += max(0.0, self.low_disk[broker] - disk) / self.mean_disk
        if not self.only_fill and broker in self.high_count:
            found += max(0, held - self.high_count[broker]) / self.mean_count
            found += max(0.0, disk - self.high_disk[broker]) / self.mean_disk
        return found

    def relief(self, old: int, new: int, size: int) -> float:
        """Return how much less two brokers are outside their bands if a replica goes from one to the other."""
        before = self.outside(old) + self.outside(new)
        return before - self.outside(old, -1, -size) - self.outside(new, 1, size)

    def relief_of_bytes(self, old: int, new: int, size: int) -> float:
        """Return the same if as many replicas come back, and only so many bytes are exchanged."""
        before = self.outside(old) + self.outside(new)
        return before - self.outside(old, 0, -size) - self.outside(new, 0, size)


def water_level(loads: Sequence[float], amount: float) -> float:
    """Return the level at which taking down all that is above it gives the amount; infinite for nothing."""
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
