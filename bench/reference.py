"""A fixed piece of plain Python whose processor time says how fast the machine is now.

The same work takes a third more or less from one hour to the next on a shared machine. The piece does what the shard
core does most: it looks keys up, reads attributes, calls functions, makes tuples and objects, and keeps a heap.
"""

import heapq
from dataclasses import dataclass, replace
from time import process_time

from drover.events.partitions import TopicPartition

ENTRIES = 20_000
STRIDE = 7919
"""A prime: every entry is visited once before any is visited again, and never two neighbours in a row."""

STEPS = 265
"""This many take about 1 ms on a fast machine."""


@dataclass(frozen=True, slots=True)
class _Entry:
    key: TopicPartition
    brokers: tuple[int, ...]
    rank: int


class Reference:
    """The piece of work: every call does the same amount, on the next entries."""

    def __init__(self) -> None:
        self._keys = [TopicPartition(f"topic-{number % 4}", number // 4) for number in range(ENTRIES)]
        self._entries = {
            key: _Entry(key, tuple((number + step) % 100 for step in range(4)), number * STRIDE % ENTRIES)
            for number, key in enumerate(self._keys)
        }
        self._heap = [(self._entries[key].rank, number) for number, key in enumerate(self._keys[:1000])]
        heapq.heapify(self._heap)
        self._number = 0

    def elapsed_ms(self) -> float:
        """Do the work once and return its processor time."""
        started = process_time()
        for _ in range(STEPS):
            self._step()
        return (process_time() - started) * 1000

    def _step(self) -> None:
        self._number = (self._number + STRIDE) % ENTRIES
        entry = self._entries[self._keys[self._number]]
        first, *_ = entry.brokers
        heapq.heappush(self._heap, (entry.rank, self._number))
        heapq.heappop(self._heap)
        self._entries[entry.key] = replace(entry, brokers=(*_without(entry.brokers, first), first))


def _without(brokers: tuple[int, ...], broker: int) -> tuple[int, ...]:
    return tuple(other for other in brokers if other != broker)
