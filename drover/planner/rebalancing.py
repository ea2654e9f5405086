"""Rebalancing: take from brokers that hold too much, give to those that hold too little, with the fewest bytes."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

from drover.planner.bands import ROUNDING, Bands
from drover.planner.budget import Budget
from drover.planner.layout import Layout
from drover.planner.proposal import Reason
from drover.planner.ranking import Ranking
from drover.planner.refining import Refining

# How many sizes next to the wanted one are tried first.
WINDOW = 6
# How many of the receivers that hold the least are tried for a replica.
DESTINATIONS = 8


class Rebalancing:
    """Moves replicas of `partitions` from `sources` to the receivers of the bands.

    `items` are what it moved, as partition and broker; `hosted` has by source what it did not move, as size and
    partition, in order. `max_bytes` and `max_moves` bound what it does; `bounded` says that
    they kept it from more.
    """

    def __init__(
        self,
        bands: Bands,
        sources: Sequence[int],
        partitions: Sequence[int],
        budget: Budget,
        max_bytes: float = math.inf,
        max_moves: float = math.inf,
    ) -> None:
        self.layout: Layout = bands.layout
        self.bands = bands
        self.budget = budget
        self.sources = sources
        self.bytes_left = max_bytes
        self.moves_left = max_moves
        self.bounded = False
        self.partitions = partitions
        self.reasons: dict[int, Reason] = {}
        # What a move changes the order of.
        self._rankings: tuple[Ranking, ...] = ()
        # Brokers that neither give nor receive.
        self.fixed = frozenset(self.layout.count) - {*sources, *bands.receivers}
        self._sort_out()

    def _sort_out(self) -> None:
        """Tell the replicas that have moved from those that have not."""
        self.items: list[tuple[int, int]] = []
        self.hosted: dict[int, list[tuple[int, int]]] = {number: [] for number in self.sources}
        for partition in self.partitions:
            size = self.layout.size[partition]
            for broker in self.layout.replicas[partition]:
                if broker not in self.layout.original[partition]:
                    self.items.append((partition, broker))
                elif broker in self.hosted:
                    self.hosted[broker].append((size, partition))
        for held in self.hosted.values():
            held.sort()

    def refine(self) -> None:
        """Search pairs of changes, where there are few enough."""
        search = Refining(
            self.layout, self.bands, self.partitions, self.budget, self.fixed, self.bytes_left, self.moves_left
        )
        search.run()
        self.bytes_left, self.moves_left = search.bytes_left, search.moves_left
        self._sort_out()

    def source_of(self, index: int) -> int:
        """Return the broker whose place in the list an item has taken."""
        partition, broker = self.items[index]
        return self.layout.original[partition][self.layout.replicas[partition].index(broker)]

    def shed(self) -> None:
        """Take from the most overloaded source until none is above its level."""
        overloaded = Ranking(self.sources, lambda source: -self.bands.pressure(source))
        neediest = Ranking(self.bands.receivers, self.bands.standing)
        self._rankings = (overloaded, neediest)
        while not self.budget.spent and overloaded.first is not None:
            negative, source = overloaded.first
            if -negative <= ROUNDING:
                return
            takers = (broker for broker in neediest if self.bands.may_take(broker, source))
            if not self._shed_one(source, list(islice(takers, DESTINATIONS))):
                overloaded.leave_out(source)

    def _shed_one(self, source: int, destinations: Sequence[int]) -> bool:
        count, disk = self.bands.above_level(source)
        wanted = max(0.0, disk) / count if count >= 1 else disk
        reason = Reason.COUNT if count / self.bands.mean_count >= disk / self.bands.mean_disk else Reason.DISK
        return self._take(source, destinations, wanted, reason)

    def fill(self) -> None:
        """Give to the neediest receiver until none is below its band."""
        needy = Ranking(self.bands.receivers, lambda broker: -self.bands.need(broker))
        fullest = Ranking(self.sources, lambda source: -self.bands.standing(source))
        self._rankings = (needy, fullest)
        while not self.budget.spent and needy.first is not None:
            negative, broker = needy.first
            if -negative <= ROUNDING:
                return
            count, disk = self.bands.below_band(broker)
            wanted = max(0.0, disk) / count if count >= 1 else disk
            sources = (source for source in fullest if source != broker)
            if not any(self._take(source, (broker,), wanted, Reason.FILL) for source in sources):
                needy.leave_out(broker)

    def _take(self, source: int, destinations: Sequence[int], wanted: float, reason: Reason) -> bool:
        """Move the replica near the wanted size that evens out most, wherever one is allowed to go."""
        for window in self._windows(self.hosted[source], wanted):
            best: tuple[float, int, int] | None = None
            for place in window:
                if not self.budget.spend(len(destinations)):
                    return False
                for new in destinations:
                    gain = self._gain(source, place, new)
                    if gain is not None and (best is None or gain > best[0]):
                        best = (gain, place, new)
            if best is not None:
                self._move(source, best[1], best[2], reason)
                return True
        return False

    def _gain(self, source: int, place: int, new: int) -> float | None:
        """Return what a move gains in balance; None if it is not allowed, or brings no broker nearer to its band."""
        size, partition = self.hosted[source][place]
        bands, layout = self.bands, self.layout
        if not bands.admits(new, size) or bands.relief(source, new, size) <= ROUNDING:
            return None
        if not layout.allowed(partition, source, new):
            return None
        if size > self.bytes_left or self.moves_left < 1:
            self.bounded = True
            return None
        return layout.gain(partition, source, new)

    def _windows(self, held: Sequence[tuple[int, int]], wanted: float) -> Iterator[Sequence[int]]:
        """Look first at the sizes next to the wanted one, then further and further away."""
        place = bisect_left(held, (wanted, -1))
        low, high = max(0, place - WINDOW // 2), min(len(held), place + WINDOW // 2)
        if wanted <= 0:
            high = min(len(held), 1)
        yield range(low, high)
        step = WINDOW
        while low > 0 or high < len(held):
            lower, higher = max(0, low - step), min(len(held), high + step)
            yield [*range(lower, low), *range(high, higher)]
            low, high, step = lower, higher, step * 2

    def _move(self, source: int, place: int, new: int, reason: Reason) -> None:
        size, partition = self.hosted[source].pop(place)
        self.layout.replace(partition, source, new)
        for ranking in self._rankings:
            ranking.update(source, new)
        self.items.append((partition, new))
        self.reasons.setdefault(partition, reason)
        self.bytes_left -= size
        self.moves_left -= 1
