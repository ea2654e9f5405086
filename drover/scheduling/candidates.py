"""Which waiting reassignments are worth a try now: an index, so that a try costs the same however many wait.

Each waiting reassignment is in one place at a time: ready to be tried, parked at what is full, asked for a look at the
cluster or in line for one, or put off until a moment. What is parked comes back, one at a time and in order, when there
is room again.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from events.partitions import TopicPartition

# What can be full: a broker by its id, a topic's list of throttled replicas by its name.
Resource = int | str
# In flight before pending, then in the order of acceptance.
Rank = tuple[int, int]


class Where(Enum):
    """Where a waiting reassignment is."""

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


@dataclass(frozen=True, slots=True)
class Candidate:
    """One reassignment to try; `woken_by` is the resource at which it was parked."""

    key: TopicPartition
    woken_by: Resource | None


_Item = tuple[Rank, int, TopicPartition]


@dataclass(slots=True)
class Candidates:
    """The index. Heaps hold items of (rank, turn, key); an item whose turn is outdated is dropped."""

    max_looks: int
    _entries: dict[TopicPartition, _Entry] = field(default_factory=dict)
    _turn: int = 0
    _ready: list[tuple[Rank, int, TopicPartition, Resource | None]] = field(default_factory=list)
    _parked: dict[Resource, list[_Item]] = field(default_factory=dict)
    _line: list[_Item] = field(default_factory=list)
    _put_off: list[tuple[int, int, TopicPartition]] = field(default_factory=list)
    _recheck: list[TopicPartition] = field(default_factory=list)
    looks: dict[TopicPartition, None] = field(default_factory=dict)

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

    def _move(self, key: TopicPartition, rank: Rank, where: Where) -> int:
        self._turn += 1
        entry = self._entries.get(key)
        if entry is not None and entry.where is Where.LOOKING:
            del self.looks[key]
        self._entries[key] = _Entry(rank, where, self._turn)
        return self._turn

    def _is_current(self, key: TopicPartition, turn: int) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.turn == turn

    # -- where to

    def offer(self, key: TopicPartition, rank: Rank, woken_by: Resource | None = None) -> None:
        """Queue it for a try."""
        heapq.heappush(self._ready, (rank, self._move(key, rank, Where.READY), key, woken_by))

    def park(self, key: TopicPartition, rank: Rank, resources: Iterable[Resource]) -> None:
        """Park it until one of these has room."""
        turn = self._move(key, rank, Where.PARKED)
        for resource in resources:
            heapq.heappush(self._parked.setdefault(resource, []), (rank, turn, key))

    def look(self, key: TopicPartition, rank: Rank) -> None:
        """Ask for a look at it in the cluster, when its turn comes."""
        if len(self.looks) < self.max_looks:
            self._move(key, rank, Where.LOOKING)
            self.looks[key] = None
        else:
            heapq.heappush(self._line, (rank, self._move(key, rank, Where.IN_LINE), key))

    def put_off(self, key: TopicPartition, rank: Rank, until_ms: int) -> None:
        """Put it off until a moment."""
        heapq.heappush(self._put_off, (until_ms, self._move(key, rank, Where.PUT_OFF), key))

    def drop(self, key: TopicPartition) -> None:
        """Drop what no longer waits."""
        entry = self._entries.pop(key, None)
        if entry is not None and entry.where is Where.LOOKING:
            del self.looks[key]

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
        while self._line and len(self.looks) < self.max_looks:
            rank, turn, key = heapq.heappop(self._line)
            if self._is_current(key, turn):
                self._move(key, rank, Where.LOOKING)
                self.looks[key] = None

    def wake_parked(self, has_room: Callable[[Resource], bool]) -> None:
        """Offer the first one that is parked at each resource that has room again."""
        for resource in tuple(self._parked):
            if has_room(resource):
                self.wake_one(resource)

    def wake_one(self, resource: Resource) -> None:
        """Offer the first one that is parked at a resource."""
        heap = self._parked.get(resource, [])
        while heap:
            rank, turn, key = heapq.heappop(heap)
            if self._is_current(key, turn):
                self.offer(key, rank, woken_by=resource)
                break
        if not heap:
            self._parked.pop(resource, None)

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
