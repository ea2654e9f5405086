"""Exhausting: every choice is tried where a cluster is so small that this takes no time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from drover.planner.bands import ROUNDING, Bands
from drover.planner.budget import Budget
from drover.planner.layout import Layout

MOST_PARTITIONS = 8
MOST_BROKERS = 5
# The choices that are looked at before the search gives up, a few tenths of a second.
MOST_CHOICES = 30_000

Option = tuple[int, tuple[int, ...]]
Score = tuple[float, float, float]


@dataclass(slots=True)
class Exhausting:
    """Tries all lists of `partitions`, the cheapest first, and keeps the best, beginning with the present ones.

    Best is what brings brokers nearest to their bands, then what copies the fewest bytes, then what is most even.
    Replicas on brokers that are neither `free` nor being emptied stay where they are.
    """

    layout: Layout
    bands: Bands | None
    partitions: Sequence[int]
    budget: Budget
    free: frozenset[int]
    bytes_left: float
    moves_left: float

    def run(self) -> bool:
        """Search, unless the cluster is too large; whether every choice was covered."""
        if len(self.partitions) > MOST_PARTITIONS or len(self.layout.model.brokers) > MOST_BROKERS:
            return False
        order = sorted(self.partitions, key=lambda partition: (-self.layout.size[partition], partition))
        options = [self._options(partition) for partition in order]
        present = [tuple(self.layout.replicas[partition]) for partition in order]
        search = _Search(self, order, options, (self.score(self._copied(order, present)), present))
        search.descend(0, 0, 0)
        for partition, wanted in zip(order, search.best[1], strict=True):
            self.layout.assign(partition, list(wanted))
        return search.choices <= MOST_CHOICES

    def _copied(self, order: Iterable[int], lists: Iterable[tuple[int, ...]]) -> int:
        return sum(
            self.layout.size[each] * self._added(each, wanted) for each, wanted in zip(order, lists, strict=True)
        )

    def _added(self, partition: int, wanted: Iterable[int]) -> int:
        return sum(broker not in self.layout.original[partition] for broker in wanted)

    def score(self, copied: int) -> Score:
        """Return how bad the present lists are, given the bytes that they copy."""
        outside = 0.0 if self.bands is None else sum(map(self.bands.outside, self.bands.receivers))
        return (round(outside, 9), copied, round(self.layout.imbalance(), 12))

    def _options(self, partition: int) -> list[Option]:
        """Return what the partition may become, with the copies that it takes, the fewest first."""
        layout = self.layout
        original = layout.original[partition]
        newcomers = [
            broker
            for broker in layout.receivers
            if broker not in original
            and layout.is_within(partition, broker)
            and layout.size[partition] <= layout.largest_room[broker]
        ]
        must = [broker in layout.leaving and broker not in layout.replicas[partition] for broker in original]
        places = [
            newcomers if gone else [broker, *(newcomers if broker in self.free else ())]
            for broker, gone in zip(original, must, strict=True)
        ]
        worst = layout.racks.fewest_pairs(original, layout.within[partition]) + layout.excess[partition]
        found: dict[frozenset[int], Option] = {}
        for wanted in product(*places):
            brokers = frozenset(wanted)
            if len(brokers) == len(wanted) and brokers not in found and layout.racks.pairs(wanted) <= worst:
                found[brokers] = (self._added(partition, wanted), wanted)
        return sorted(found.values())


@dataclass(slots=True)
class _Search:
    """Goes through the options of one partition after another."""

    owner: Exhausting
    order: Sequence[int]
    options: Sequence[Sequence[Option]]
    best: tuple[Score, list[tuple[int, ...]]]
    choices: int = 0

    def descend(self, depth: int, copied: int, moves: int) -> None:
        """Try the options of the partitions from `depth` on."""
        owner, layout = self.owner, self.owner.layout
        if depth == len(self.order):
            score = owner.score(copied)
            if score < self.best[0]:
                self.best = (score, [tuple(layout.replicas[partition]) for partition in self.order])
            return
        partition = self.order[depth]
        before = list(layout.replicas[partition])
        for added, wanted in self.options[depth]:
            self.choices += 1
            total = copied + added * layout.size[partition]
            hopeless = self.best[0][0] <= ROUNDING and total > self.best[0][1]
            if hopeless or total > owner.bytes_left or moves + added > owner.moves_left:
                break
            if self.choices > MOST_CHOICES or not owner.budget.spend(1):
                break
            layout.assign(partition, list(wanted))
            if not any(map(layout.is_overfull, wanted)):
                self.descend(depth + 1, total, moves + added)
        layout.assign(partition, before)
