"""A queue of reassignments that serves plans in turn; finding the next one costs the same however many plans wait."""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from drover.scheduling.lazy_queue import LazyQueue, Turn
from drover.scheduling.rank import Lane, Rank
from events.partitions import TopicPartition

# A rank, the turn under which it was put there, and what waits.
Item = tuple[Rank, int, TopicPartition]


@dataclass(slots=True)
class Lanes:
    """One heap per lane, and a queue of the lanes. Outdated items, as `is_current` tells, are dropped lazily."""

    turn_of: Callable[[Rank], Turn]
    is_current: Callable[[TopicPartition, int], bool]
    _heaps: dict[Lane, list[Item]] = field(default_factory=dict)
    _queue: LazyQueue[Turn, Lane] = field(default_factory=LazyQueue)

    def push(self, item: Item) -> None:
        """Add an item."""
        lane = item[0].lane
        heap = self._heaps.setdefault(lane, [])
        heapq.heappush(heap, item)
        if heap[0] is item:
            self._queue.push(lane, self.turn_of(item[0]))

    def head(self) -> tuple[Turn, Item] | None:
        """Return the first item and its turn; None if there is none."""
        first = self._queue.first(self._turn_of_lane)
        return None if first is None else (first[0], self._heaps[first[1]][0])

    def first_rank(self, lane: Lane) -> Rank | None:
        """Return the rank of the first item of a lane; None if there is none."""
        heap = self._heaps.get(lane, [])
        while heap and not self.is_current(heap[0][2], heap[0][1]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def _turn_of_lane(self, lane: Lane) -> Turn | None:
        rank = self.first_rank(lane)
        if rank is None:
            del self._heaps[lane]
            return None
        return self.turn_of(rank)

    def pop(self) -> Item | None:
        """Remove and return the first item; None if there is none."""
        head = self.head()
        return None if head is None else heapq.heappop(self._heaps[head[1][0].lane])

    def lanes(self) -> tuple[Lane, ...]:
        """Return the lanes in which something waits, or waited."""
        return tuple(self._heaps)

    def items(self) -> Iterator[Item]:
        """Yield every item, outdated ones included."""
        for heap in self._heaps.values():
            yield from heap
