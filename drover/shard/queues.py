"""What waits in one command topic: in arrival order by groups of clusters, or by turns of requesters."""

import heapq
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple
from zlib import crc32

from drover.events.codec import Malformed
from drover.shard.messages import Arrival

ARRIVAL_OVERHEAD_BYTES = 64
# Clusters share so many places in the order of a topic.
GROUPS = 16
_offset = attrgetter("offset")


class Queue:
    """What has arrived in one topic: by groups of clusters, each in its order."""

    def __init__(self) -> None:
        self._groups: dict[int, deque[Arrival]] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __iter__(self) -> Iterator[Arrival]:
        return iter(sorted((arrival for group in self._groups.values() for arrival in group), key=_offset))

    def clear(self) -> None:
        """Forget everything."""
        self._groups.clear()

    def append(self, arrival: Arrival) -> None:
        """Put it behind those of its group."""
        self._groups.setdefault(group_of(arrival), deque()).append(arrival)

    def put_back(self, arrival: Arrival) -> None:
        """Put it before those of its group; nothing of that was taken since."""
        self._groups.setdefault(group_of(arrival), deque()).appendleft(arrival)

    def remove(self, arrival: Arrival) -> None:
        """Take the first of its group."""
        group = self._groups[group_of(arrival)]
        assert group[0] is arrival, "the commands of a cluster keep their order"
        group.popleft()
        if not group:
            del self._groups[group_of(arrival)]

    def heads(self) -> Iterator[Arrival]:
        """Yield the first one of each group."""
        return (group[0] for group in self._groups.values())

    def oldest(self) -> Arrival:
        """Return what came first."""
        if len(self._groups) == 1:
            (group,) = self._groups.values()
            return group[0]
        return min(self.heads(), key=_offset)

    def drop(self, next_offset: int, early: frozenset[int]) -> list[Arrival]:
        """Take out what is decided: below that offset, or one of these."""
        everything = list(self)
        dropped = [one for one in everything if one.offset < next_offset or one.offset in early]
        if dropped:
            gone = {one.offset for one in dropped}
            self._groups.clear()
            for one in everything:
                if one.offset not in gone:
                    self.append(one)
        return dropped


class _Entry(NamedTuple):
    start: int
    place: int
    arrival: Arrival


class Turns:
    """Commands whose requesters take turns by bytes, in groups of clusters; those of one requester keep their order.

    Start-time fair queueing: a command starts where its requester's last one ended, or now if that is over, and what
    starts first comes next. So nobody waits for more than one command of each other requester, however many one of them
    sends. A command is known from `add` until `forget`, and waits unless it was removed in between.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._entries: dict[int, _Entry] = {}
        self._waiting: set[int] = set()
        # A heap of each group, and one of offsets; what no longer waits is taken off when it comes to the top.
        self._heaps: dict[int, list[_Entry]] = {}
        self._heaped: set[int] = set()
        self._offsets: list[int] = []
        self._now: dict[int, int] = {}
        self._ends: dict[tuple[str | None, str | None], tuple[int, int]] = {}
        self._places = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, offset: int) -> bool:
        return offset in self._entries

    def __iter__(self) -> Iterator[Arrival]:
        return (self._entries[offset].arrival for offset in sorted(self._waiting))

    def known_of(self, arrival: Arrival) -> int:
        """Count the commands of its requester that are known."""
        count, _ = self._ends.get(_requester(arrival), (0, 0))
        return count

    def add(self, arrival: Arrival) -> None:
        """Put it behind those of its requester."""
        requester = _requester(arrival)
        count, end = self._ends.get(requester, (0, 0))
        start = max(end, self._now.get(group_of(arrival), 0))
        self._ends[requester] = (count + 1, start + weight_of(arrival))
        self._places += 1
        self._entries[arrival.offset] = _Entry(start, self._places, arrival)
        self.put_back(arrival)

    def put_back(self, arrival: Arrival) -> None:
        """Let it wait where it did before it was removed."""
        entry = self._entries[arrival.offset]
        self._waiting.add(arrival.offset)
        heapq.heappush(self._offsets, arrival.offset)
        if arrival.offset not in self._heaped:
            self._heaped.add(arrival.offset)
            heapq.heappush(self._heaps.setdefault(group_of(arrival), []), entry)

    def heads(self) -> Iterator[Arrival]:
        """Yield what is next in each group."""
        for group, heap in list(self._heaps.items()):
            while heap and heap[0].arrival.offset not in self._waiting:
                self._heaped.discard(heapq.heappop(heap).arrival.offset)
            if heap:
                yield heap[0].arrival
            else:
                del self._heaps[group]

    def oldest(self) -> Arrival | None:
        """Return what came first; None if nothing waits."""
        while self._offsets and self._offsets[0] not in self._waiting:
            heapq.heappop(self._offsets)
        return self._entries[self._offsets[0]].arrival if self._offsets else None

    def remove(self, arrival: Arrival) -> None:
        """Take one that waits: the next one of a group, or the oldest."""
        self._waiting.remove(arrival.offset)
        group = group_of(arrival)
        self._now[group] = max(self._now.get(group, 0), self._entries[arrival.offset].start)

    def drop(self, next_offset: int, early: frozenset[int]) -> list[Arrival]:
        """Take out what is decided: below that offset, or one of these."""
        dropped = [offset for offset in self._waiting if offset < next_offset or offset in early]
        self._waiting.difference_update(dropped)
        return [self._entries[offset].arrival for offset in sorted(dropped)]

    def forget(self, arrival: Arrival) -> None:
        """Forget one that no longer waits."""
        entry = self._entries.pop(arrival.offset)
        if not self._entries:
            self.clear()
            return
        requester = _requester(entry.arrival)
        count, end = self._ends.pop(requester)
        if count > 1:
            self._ends[requester] = (count - 1, end)


def group_of(arrival: Arrival) -> int:
    """Name the group that a cluster shares with others: any client can think of any number of names."""
    return _group_of(arrival.command.cluster or "")


@lru_cache(maxsize=1024)
def _group_of(cluster: str) -> int:
    return crc32(cluster.encode()) % GROUPS


def groups_of(clusters: frozenset[str]) -> frozenset[int]:
    """Name the groups of these clusters."""
    return frozenset(map(_group_of, clusters))


def weight_of(arrival: Arrival) -> int:
    """Return the bytes that a command takes while it waits."""
    return len(arrival.payload) + ARRIVAL_OVERHEAD_BYTES


def _requester(arrival: Arrival) -> tuple[str | None, str | None]:
    assert not isinstance(arrival.command, Malformed), "what is no command takes no turns"
    return arrival.command.cluster, arrival.command.by
