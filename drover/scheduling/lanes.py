"""A queue of reassignments that serves plans in turn; finding the next one costs the same however many plans wait."""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from drover.scheduling.rank import Lane, Rank
from events.partitions import TopicPartition

# What comes first: in flight before pending, the plan that was served least, the rank.
Turn = tuple[int, int, Rank]
# A rank, the turn under which it was put there, and what waits.
Item = tuple[Rank, int, TopicPartition]


@dataclass(slots=True)
class Lanes:
    """One heap per lane, and a heap of the lanes by turn. Outdated items, as `is_current` tells, are dropped lazily.

    The turn under which a lane is queued may be too early: its plan may have been served, or its first item may have
    gone. It is never too late, so `head` corrects it when the lane comes first.
    """

    turn_of: Callable[[Rank], Turn]
    is_current: Callable[[TopicPartition, int], bool]
    _heaps: dict[Lane, list[Item]] = field(default_factory=dict)
    _queue: list[tuple[Turn, Lane]] = field(default_factory=list)
    # The turn under which each is queued: what is queued under another one was queued anew since.
    _turns: dict[Lane, Turn] = field(default_factory=dict)

    def push(self, item: Item) -> None:
        """Add an item."""
        lane = item[0].lane
        heap = self._heaps.setdefault(lane, [])
        heapq.heappush(heap, item)
        if heap[0] is item:
            turn = self._turns[lane] = self.turn_of(item[0])
            heapq.heappush(self._queue, (turn, lane))

    def head(self) -> tuple[Turn, Item] | None:
        """Return the first item and its turn; None if there is none."""
        while self._queue:
            known, lane = self._queue[0]
            if self._turns.get(lane) != known:
                heapq.heappop(self._queue)
                continue
            heap = self._heaps[lane]
            while heap and not self.is_current(heap[0][2], heap[0][1]):
                heapq.heappop(heap)
            if not heap:
                heapq.heappop(self._queue)
                del self._heaps[lane], self._turns[lane]
                continue
            turn = self.turn_of(heap[0][0])
            if turn <= known:
                return turn, heap[0]
            self._turns[lane] = turn
            heapq.heapreplace(self._queue, (turn, lane))
        return None

    def pop(self) -> Item | None:
        """Remove and return the first item; None if there is none."""
        head = self.head()
        return None if head is None else heapq.heappop(self._heaps[head[1][0].lane])

    def items(self) -> Iterator[Item]:
        """Yield every item, outdated ones included."""
        for heap in self._heaps.values():
            yield from heap
