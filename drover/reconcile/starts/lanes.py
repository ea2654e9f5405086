"""A queue of reassignments that serves plans in turn; finding the next one costs the same however many plans wait."""

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition
from drover.reconcile.starts.lazy_queue import LazyQueue, Turn
from drover.reconcile.starts.rank import Lane, Rank
from drover.reconcile.starts.waiting_entry import Entry

# A rank, the turn under which it was put there, and what waits.
Item = tuple[Rank, int, TopicPartition]


@dataclass(slots=True)
class Lanes:
    """One heap per lane, and a queue of the lanes. Items whose turn in `entries` is another one are dropped lazily."""

    turn_of: Callable[[Rank], Turn]
    entries: Mapping[TopicPartition, Entry]
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
        heap, entries = self._heaps.get(lane, ()), self.entries
        while heap:
            rank, turn, key = heap[0]
            entry = entries.get(key)
            if entry is not None and entry.turn == turn:
                return rank
            heapq.heappop(heap)
        return None

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
