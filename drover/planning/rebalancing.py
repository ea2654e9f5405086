"""Rebalancing: take from brokers that hold too much, give to those that hold too little, with the fewest bytes."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from drover.planning.bands import Bands
from drover.planning.budget import Budget
from drover.planning.layout import Layout
from drover.planning.proposal import Reason

WINDOW = 6
DESTINATIONS = 8


class Rebalancing:
    """Moves replicas from `sources` to the receivers of the layout; `items` are what it moved, as partition and broker.

    `max_bytes` and `max_moves` bound what it does; `bounded` says that they stopped it.
    """

    def __init__(
        self,
        layout: Layout,
        bands: Bands,
        budget: Budget,
        sources: Sequence[int],
        partitions: Sequence[int],
        max_bytes: float,
        max_moves: float,
    ) -> None:
        self.layout = layout
        self.bands = bands
        self.budget = budget
        self.sources = sources
        self.bytes_left = max_bytes
        self.moves_left = max_moves
        self.bounded = False
        self.items: list[tuple[int, int]] = []
        self.reasons: dict[int, Reason] = {}
        self.hosted: dict[int, list[tuple[int, int]]] = {number: [] for number in sources}
        for partition in partitions:
            size = layout.size[partition]
            for broker in layout.replicas[partition]:
                if broker in self.hosted:
                    self.hosted[broker].append((size, partition))
        for held in self.hosted.values():
            held.sort()

    def shed(self) -> None:
        """Take from the most overloaded source until none is above its level."""
        stuck: set[int] = set()
        while not self.bounded and not self.budget.spent:
            source, pressure = self._most_overloaded(stuck)
            if source is None or pressure <= 0:
                return
            if not self._shed_one(source):
                stuck.add(source)

    def _most_overloaded(self, stuck: set[int]) -> tuple[int | None, float]:
        best, most = None, 0.0
        for source in self.sources:
            if source not in stuck:
                pressure = self.bands.pressure(source)
                if pressure > most:
                    best, most = source, pressure
        return best, most

    def _shed_one(self, source: int) -> bool:
        count, disk = self.bands.above_level(source)
        if count > 0:
            wanted = max(0.0, disk) / count
            reason = Reason.COUNT
        else:
            wanted = disk
            reason = Reason.DISK
        destinations = self.bands.neediest(DESTINATIONS, source)
        return self._take(source, destinations, wanted, reason)

    def _take(self, source: int, destinations: Sequence[int], wanted: float, reason: Reason) -> bool:
        """Move the replica near the wanted size that evens out most, wherever one is allowed to go."""
        layout, held = self.layout, self.hosted[source]
        for window in self._windows(held, wanted):
            best: tuple[float, int, int] | None = None
            for place in window:
                size, partition = held[place]
                if not self.budget.spend(len(destinations)):
                    return False
                if size > self.bytes_left:
                    self.bounded = True
                    continue
                for new in destinations:
                    if self.bands.admits(new, size) and layout.allowed(partition, source, new):
                        gain = layout.gain(partition, source, new)
                        if best is None or gain > best[0]:
                            best = (gain, place, new)
            if best is not None:
                self._move(held, best[1], source, best[2], reason)
                return True
        return False

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

    def _move(self, held: list[tuple[int, int]], place: int, source: int, new: int, reason: Reason) -> None:
        size, partition = held.pop(place)
        self.layout.replace(partition, source, new)
        self.items.append((partition, new))
        self.reasons.setdefault(partition, reason)
        self.bytes_left -= size
        self.moves_left -= 1
        if self.moves_left <= 0:
            self.bounded = True

    def fill(self) -> None:
        """Give to the neediest receiver until none is below its band."""
        stuck: set[int] = set()
        while not self.bounded and not self.budget.spent:
            needy = self.bands.most_underloaded(stuck)
            if needy is None:
                return
            count, disk = self.bands.below_band(needy)
            wanted = disk / count if count > 0 else disk
            sources = sorted(self.sources, key=lambda number: (-self.bands.standing(number), number))
            if not any(
                self.bands.may_give(source) and self._take(source, (needy,), max(0.0, wanted), Reason.FILL)
                for source in sources
                if source != needy
            ):
                stuck.add(needy)
