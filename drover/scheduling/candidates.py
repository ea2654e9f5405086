"""An index of waiting reassignments that are worth a try now; a try costs the same however many wait.

Each waiting reassignment is in one place at a time: ready to be tried, parked because something is full, asked for a
look at the cluster or in line for one, or put off until a moment. What is parked is kept by all that it needs room at:
those with the same needs come back one at a time and in order, when there is room at all of it.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from drover.scheduling.resources import Needs, Resource
from events.partitions import TopicPartition

# In flight before pending, then in the order of acceptance.
Rank = tuple[int, int]


class Where(Enum):
    """The place of a waiting reassignment in the index."""

    READY = "ready"
    PARKED = "parked"
    LOOKING = "looking"
    IN_LINE = "in-line"
    PUT_OFF = "put-off"


@dataclass(slots=True)
class _Entry:
    rank: Rank
    where: Where
    turn: int
    # What it was expected to take when the look was asked for.
    expected: Needs = ()
    # What has room again, if that is why it is ready.
    woken_by: Resource | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One reassignment to try; `woken_by` is the resource that has room again, None if it was not parked."""

    key: TopicPartition
    woken_by: Resource | None


_Item = tuple[Rank, int, TopicPartition]


@dataclass(slots=True)
class Candidates:
    """The index. Heaps hold items of (rank, turn, key); an item whose turn is outdated is dropped."""

    # How many may have a look at a time.
    max_looks: int = 0
    _entries: dict[TopicPartition, _Entry] = field(default_factory=dict)
    _turn: int = 0
    _ready: list[tuple[Rank, int, TopicPartition, Resource | None]] = field(default_factory=list)
    _parked: dict[Needs, list[_Item]] = field(default_factory=dict)
    _needing: dict[Resource, dict[Needs, None]] = field(default_factory=dict)
    # Resources that were full when something was parked for them, or was not woken because of them.
    _full: dict[Resource, None] = field(default_factory=dict)
    _line: list[_Item] = field(default_factory=list)
    _put_off: list[tuple[int, int, TopicPartition]] = field(default_factory=list)
    _recheck: list[TopicPartition] = field(default_factory=list)
    looks: dict[TopicPartition, None] = field(default_factory=dict)
    # How much those with a look, or in line for one, are expected to take.
    expected: Counter[Resource] = field(default_factory=Counter)

    def __contains__(self, key: TopicPartition) -> bool:
        """Whether a reassignment waits at all."""
        return key in self._entries

    def __len__(self) -> int:
        """Count those that wait."""
        return len(self._entries)

    def rank(self, key: TopicPartition) -> Rank:
        """Return the rank under which a reassignment waits."""
        return self._entries[key].rank

    def where(self, key: TopicPartition) -> Where | None:
        """Tell where a waiting reassignment is; None if it does not wait."""
        entry = self._entries.get(key)
        return None if entry is None else entry.where

    def _move(self, key: TopicPartition, rank: Rank, where: Where, expected: Needs = ()) -> int:
        self._turn += 1
        self._leave(key, self._entries.get(key))
        self._entries[key] = _Entry(rank, where, self._turn, expected)
        for resource in expected:
            self.expected[resource] += 1
        return self._turn

    def _leave(self, key: TopicPartition, entry: _Entry | None) -> None:
        if entry is None:
            return
        if entry.where is Where.LOOKING:
            del self.looks[key]
        for resource in entry.expected:
            self.expected[resource] -= 1
        if entry.woken_by is not None:
            # Whether or not it has taken the room, find the next one.
            self._full[entry.woken_by] = None

    def _is_current(self, key: TopicPartition, turn: int) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.turn == turn

    @property
    def is_looked_enough(self) -> bool:
        """Whether as many have a look at the cluster as may have one at a time."""
        return len(self.looks) >= self.max_looks

    # -- where to

    def offer(self, key: TopicPartition, rank: Rank, woken_by: Resource | None = None) -> None:
        """Queue it for a try."""
        heapq.heappush(self._ready, (rank, self._move(key, rank, Where.READY), key, woken_by))
        self._entries[key].woken_by = woken_by

    def park(self, key: TopicPartition, rank: Rank, needs: Needs, full: Iterable[Resource]) -> None:
        """Park it until everything that it needs has room; `full` is what has none now."""
        turn = self._move(key, rank, Where.PARKED)
        heap = self._parked.get(needs)
        if heap is None:
            heap = self._parked[needs] = []
            for resource in needs:
                self._needing.setdefault(resource, {})[needs] = None
        heapq.heappush(heap, (rank, turn, key))
        self._full.update(dict.fromkeys(full))

    def look(self, key: TopicPartition, rank: Rank, expected: Needs) -> None:
        """Ask for a look at it in the cluster, when its turn comes; `expected` is what it is likely to take."""
        if not self.is_looked_enough:
            self._move(key, rank, Where.LOOKING, expected)
            self.looks[key] = None
        else:
            heapq.heappush(self._line, (rank, self._move(key, rank, Where.IN_LINE, expected), key))

    def put_off(self, key: TopicPartition, rank: Rank, until_ms: int) -> None:
        """Put it off until a moment."""
        heapq.heappush(self._put_off, (until_ms, self._move(key, rank, Where.PUT_OFF), key))

    def drop(self, key: TopicPartition) -> None:
        """Drop what no longer waits."""
        self._leave(key, self._entries.pop(key, None))

    # -- back again

    def seen(self, key: TopicPartition) -> None:
        """Offer what was just looked at; what is parked stays."""
        entry = self._entries.get(key)
        if entry is not None and entry.where in {Where.LOOKING, Where.IN_LINE, Where.PUT_OFF}:
            self.offer(key, entry.rank)

    def offer_all(self) -> None:
        """Offer everything, because a change may concern any of them."""
        for key, entry in tuple(self._entries.items()):
            self.offer(key, entry.rank)

    def recheck_parked(self) -> None:
        """Try everything that is parked again, little by little: another broker may do now."""
        self._recheck = list(self._entries)

    def wake_rechecked(self, count: int) -> bool:
        """Offer some of those; return whether there are more."""
        for _ in range(min(count, len(self._recheck))):
            key = self._recheck.pop()
            entry = self._entries.get(key)
            if entry is not None and entry.where is Where.PARKED:
                self.offer(key, entry.rank)
        return bool(self._recheck)

    def wake_due(self, now_ms: int) -> None:
        """Offer what was put off until now."""
        while self._put_off and self._put_off[0][0] <= now_ms:
            _, turn, key = heapq.heappop(self._put_off)
            if self._is_current(key, turn):
                self.offer(key, self._entries[key].rank)

    def wake_line(self) -> None:
        """Ask for looks at those in line, as far as there is room."""
        while self._line and not self.is_looked_enough:
            rank, turn, key = heapq.heappop(self._line)
            if self._is_current(key, turn):
                self._move(key, rank, Where.LOOKING, self._entries[key].expected)
                self.looks[key] = None

    def wake_parked(self, has_room: Callable[[Resource], bool], lacking: Callable[[Needs], list[Resource]]) -> None:
        """Offer, for each resource that has room again, the first one that finds room everywhere it needs."""
        for resource in tuple(self._full):
            if has_room(resource):
                del self._full[resource]
                self.wake_next(resource, has_room, lacking)

    def wake_next(
        self,
        resource: Resource,
        has_room: Callable[[Resource], bool],
        lacking: Callable[[Needs], list[Resource]],
    ) -> None:
        """Offer the first one that needs this resource and finds room everywhere it needs, if there is room here."""
        if not has_room(resource):
            self._full[resource] = None
            return
        first: tuple[_Item, Needs] | None = None
        for needs in tuple(self._needing.get(resource, ())):
            heap = self._head(needs)
            if heap is None or (first is not None and heap[0] >= first[0]):
                continue
            full = lacking(needs)
            if full:
                self._full.update(dict.fromkeys(full))
            else:
                first = (heap[0], needs)
        if first is not None:
            rank, _, key = heapq.heappop(self._parked[first[1]])
            self.offer(key, rank, resource)

    def _head(self, needs: Needs) -> list[_Item] | None:
        """Drop what is no longer parked there; None if nothing is left."""
        heap = self._parked[needs]
        while heap and not self._is_current(heap[0][2], heap[0][1]):
            heapq.heappop(heap)
        if heap:
            return heap
        del self._parked[needs]
        for resource in dict.fromkeys(needs):
            del self._needing[resource][needs]
            if not self._needing[resource]:
                del self._needing[resource]
        return None

    def ready(self) -> Iterator[Candidate]:
        """Take the reassignments to try, in order; the caller says where each goes next, or drops it."""
        while self._ready:
            _, turn, key, woken_by = heapq.heappop(self._ready)
            if self._is_current(key, turn):
                yield Candidate(key, woken_by)

    def next_due_ms(self) -> int | None:
        """Tell when the next one that was put off comes back."""
        while self._put_off and not self._is_current(self._put_off[0][2], self._put_off[0][1]):
            heapq.heappop(self._put_off)
        return self._put_off[0][0] if self._put_off else None
