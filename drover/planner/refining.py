"""Refining: two changes at once where no single one helps; for small clusters, in which that is often so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drover.planner.bands import ROUNDING, Bands
from drover.planner.budget import Budget
from drover.planner.exhausting import Exhausting
from drover.planner.layout import Layout

# So many single changes make up to the square of it as pairs, a few tenths of a second.
MOST_CHANGES = 240

Change = tuple[int, int, int]
Figures = tuple[float, float, float]


@dataclass(slots=True)
class Refining:
    """Searches the changes (partition, old broker, new broker) of `partitions`, one after another and in pairs.

    Better is what brings brokers nearer to their bands, then what copies fewer bytes, then what evens out more; without
    bands, only the last counts. `fixed` brokers keep what they have. No more than `bytes_left` and `moves_left` are
    added. With `only_placed`, replicas that have not moved stay.
    """

    layout: Layout
    bands: Bands | None
    partitions: Sequence[int]
    budget: Budget
    fixed: frozenset[int] = frozenset()
    bytes_left: float = float("inf")
    moves_left: float = float("inf")
    only_placed: bool = False

    def run(self) -> None:
        """Go on until no change and no pair is better; where there are very few choices, try them all."""
        places = sum(len(self.layout.replicas[partition]) for partition in self.partitions)
        if places > MOST_CHANGES or len(self._changes()) > MOST_CHANGES:
            return
        # What may be spent in all, before anything is taken back.
        bytes_left, moves_left = self.bytes_left + self._copied(self._size), self.moves_left + self._copied(_one)
        while self._single() or self._pair():
            pass
        free = frozenset() if self.only_placed else frozenset(self.layout.count) - self.fixed
        Exhausting(self.layout, self.bands, self.partitions, self.budget, free, bytes_left, moves_left).run()
        self.bytes_left, self.moves_left = bytes_left - self._copied(self._size), moves_left - self._copied(_one)

    def _copied(self, weight: Callable[[int], int]) -> int:
        layout = self.layout
        return sum(
            weight(partition)
            for partition in self.partitions
            for broker in layout.replicas[partition]
            if broker not in layout.original[partition]
        )

    def _size(self, partition: int) -> int:
        return self.layout.size[partition]

    def _changes(self) -> list[Change]:
        layout = self.layout
        found: list[Change] = []
        for partition in self.partitions:
            original, replicas = layout.original[partition], layout.replicas[partition]
            for old in replicas:
                if old in self.fixed or (self.only_placed and old in original):
                    continue
                back = original[replicas.index(old)] if old not in original else old
                if (
                    back not in replicas
                    and back not in self.layout.leaving
                    and layout.keeps_spread(partition, old, back)
                ):
                    found.append((partition, old, back))
                found += [(partition, old, new) for new in layout.receivers if layout.allowed(partition, old, new)]
        return found

    def _worth(self, change: Change) -> Figures:
        """Return what a change gains: nearness to the bands, bytes, balance."""
        partition, old, new = change
        layout, size = self.layout, self.layout.size[partition]
        original = layout.original[partition]
        saved = size * ((old not in original) - (new not in original))
        relief = 0.0 if self.bands is None else self.bands.relief(old, new, size)
        return (relief, saved, layout.gain(partition, old, new))

    def _affordable(self, change: Change) -> bool:
        partition, old, new = change
        original = self.layout.original[partition]
        more = (new not in original) - (old not in original)
        return more * self.layout.size[partition] <= self.bytes_left and more <= self.moves_left

    def _single(self) -> bool:
        changes = self._changes()
        if not self.budget.spend(len(changes)):
            return False
        best: tuple[Figures, Change] | None = None
        for change in changes:
            worth = self._worth(change)
            if _better(worth) and self._affordable(change) and (best is None or worth > best[0]):
                best = (worth, change)
        if best is None:
            return False
        self._make(best[1])
        return True

    def _pair(self) -> bool:
        best: tuple[Figures, Change, Change] | None = None
        for first in self._changes():
            worth = self._worth(first)
            self._make(first)
            changes = self._changes() if self.budget.spend(MOST_CHANGES) else ()
            for second in changes:
                other = self._worth(second)
                both = (worth[0] + other[0], worth[1] + other[1], worth[2] + other[2])
                if _better(both) and (best is None or both > best[0]) and self._affordable(second):
                    best = (both, first, second)
            self._make((first[0], first[2], first[1]))
        if best is None:
            return False
        self._make(best[1])
        self._make(best[2])
        return True

    def _make(self, change: Change) -> None:
        """Make a change, and take what it copies from what is left."""
        partition, old, new = change
        original = self.layout.original[partition]
        more = (new not in original) - (old not in original)
        self.moves_left -= more
        self.bytes_left -= more * self.layout.size[partition]
        self.layout.replace(partition, old, new)


def _better(worth: Figures) -> bool:
    """Whether a gain is one: the first figure that is not nothing decides."""
    relief, saved, gain = worth
    if abs(relief) > ROUNDING:
        return relief > 0
    return saved > 0 or (saved == 0 and gain > ROUNDING)


def _one(_: int) -> int:
    return 1
