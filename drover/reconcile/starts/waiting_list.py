"""Waiting moves, grouped by their needs, and the groups by the broker that the moves copy to.

A pass of the starter takes the groups into brokers with room, and the first moves of each. So it costs the same
however many moves wait; more brokers and plans make more groups, and beyond `WINDOW` groups each pass takes others.
"""

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count, islice
from typing import NamedTuple

from drover.events.partitions import TopicPartition
from drover.reconcile.gates import NO_PARTITION, Start
from drover.reconcile.starts.shares import Shares
from drover.state.broker_directions import BrokerDirection, BrokerDirections

# How many groups one pass takes.
WINDOW = 1000
# The size that an unknown or empty copy counts as: the busiest direction is then the one with the most copies.
LEAST_BYTES = 1

# The order of starts: moves in flight before pending ones, the plan that was served least, then by rank: the busiest
# direction, the largest copy, and the earliest acceptance.
Turn = tuple[int, int, int, int, int]
Rank = tuple[int, int, int]
# Size, the negated number of acceptance, the partition: the last item of a sorted list comes first.
Item = tuple[int, int, TopicPartition]


class MoveGroupKey(NamedTuple):
    """The needs that the moves of a group share; `tier` is 0 for those in flight and 1 for those pending.

    `repairs` says that they belong to partitions below min.insync.replicas.
    """

    tier: int
    plan: str
    start: Start
    repairs: bool

    @property
    def broker(self) -> int | None:
        """The broker that the first copy goes to; None if nothing is copied, or the step is unknown."""
        return next((direction.broker for direction in self.start.directions if direction.way == "in"), None)


@dataclass(eq=False, slots=True)
class MoveGroup:
    """The moves of one group, sorted when they are asked for."""

    name: MoveGroupKey
    _items: list[Item] = field(default_factory=list)
    _is_sorted: bool = True

    def add(self, item: Item) -> None:
        """Add a move."""
        self._is_sorted = self._is_sorted and (not self._items or self._items[-1] < item)
        self._items.append(item)

    def remove(self, item: Item) -> None:
        """Remove a move."""
        items = self._sorted()
        del items[bisect_left(items, item)]

    def at(self, place: int) -> Item | None:
        """Return the move at this place, 0 for the first one; None if there are fewer."""
        items = self._sorted()
        return items[-1 - place] if place < len(items) else None

    def _sorted(self) -> list[Item]:
        if not self._is_sorted:
            self._items.sort()
            self._is_sorted = True
        return self._items

    def __len__(self) -> int:
        """Count its moves."""
        return len(self._items)


@dataclass(slots=True)
class Backlog:
    """The waiting bytes of each direction; a copy counts out of its source and into its destination."""

    entries: dict[TopicPartition, tuple[BrokerDirections, int]] = field(default_factory=dict)
    bytes: Counter[BrokerDirection] = field(default_factory=Counter)

    def put(self, key: TopicPartition, directions: BrokerDirections, copy_bytes: int | None) -> None:
        """Note the waiting copies of a partition, in place of those noted before."""
        self.drop(key)
        size = max(LEAST_BYTES, copy_bytes or 0)
        self.entries[key] = (directions, size)
        for direction in directions:
            self.bytes[direction] += size

    def drop(self, key: TopicPartition) -> None:
        """Forget a partition that waits no longer."""
        directions, size = self.entries.pop(key, ((), 0))
        for direction in directions:
            waiting_bytes = self.bytes[direction] - size
            if waiting_bytes:
                self.bytes[direction] = waiting_bytes
            else:
                del self.bytes[direction]

    def size(self, key: TopicPartition) -> int:
        """Return the size of one copy of a partition."""
        return self.entries.get(key, ((), 0))[1]

    def busiest(self, directions: Iterable[BrokerDirection]) -> int:
        """Return the waiting bytes of the busiest of these directions."""
        return max(map(self.bytes.__getitem__, directions), default=0)


@dataclass(slots=True)
class WaitingList:
    """The moves that wait for a step, in groups."""

    shares: Shares
    backlog: Backlog = field(default_factory=Backlog)
    _place: dict[TopicPartition, tuple[MoveGroup, Item, Start]] = field(default_factory=dict)
    _groups: dict[int | None, dict[MoveGroupKey, MoveGroup]] = field(default_factory=dict)

    def __contains__(self, key: TopicPartition) -> bool:
        """Whether a move is in a group."""
        return key in self._place

    def __len__(self) -> int:
        """Count the moves in groups."""
        return len(self._place)

    def put(self, start: Start, plan: str, number: int, *, repairs: bool = False) -> None:
        """Put a move into its group; `number` is the order of acceptance, `start` the needs of its next step."""
        key, tier = start.key, int(start.is_pending)
        name = MoveGroupKey(tier, plan, start._replace(key=NO_PARTITION, since_ms=0), repairs)
        item = (self.backlog.size(key) if tier else 0, -number, key)
        place = self._place.get(key)
        if place is not None and place[1] == item and place[0].name == name:
            return
        self.remove(key)
        groups = self._groups.setdefault(name.broker, {})
        group = groups.get(name)
        if group is None:
            group = groups[name] = MoveGroup(name)
        group.add(item)
        self._place[key] = group, item, start
        self.shares.enter(plan)

    def remove(self, key: TopicPartition) -> None:
        """Take a move out of its group, if it is in one."""
        place = self._place.pop(key, None)
        if place is None:
            return
        group, item, _ = place
        group.remove(item)
        self.shares.leave(group.name.plan)
        if not group:
            broker = group.name.broker
            del self._groups[broker][group.name]
            if not self._groups[broker]:
                del self._groups[broker]

    def start(self, key: TopicPartition) -> Start | None:
        """Return the needs of a move's next step; None if it is in no group."""
        place = self._place.get(key)
        return None if place is None else place[2]

    def turn_of(self, key: TopicPartition) -> Turn | None:
        """Return the turn of a move; None if it is in no group."""
        place = self._place.get(key)
        return None if place is None else self.turn(place[0], place[1])

    def keys(self) -> Iterable[TopicPartition]:
        """Return every move that is in a group."""
        return self._place.keys()

    def fair_queue(self, groups: Iterable[MoveGroup]) -> "FairQueue":
        """Return these groups as a queue in which plans take turns."""
        return FairQueue(self, groups)

    def turn(self, group: MoveGroup, item: Item) -> Turn:
        """Return the turn of a move in its group."""
        size, number, _ = item
        tier, plan, start, _ = group.name
        if not tier:
            return 0, 0, 0, 0, -number
        return 1, self.shares.served(plan), -self.backlog.busiest(start.directions), -size, -number

    def window(self, has_room: Callable[[int], bool], also: Iterable[TopicPartition]) -> list[MoveGroup]:
        """Return the groups into brokers that have room, with those of the moves in `also`.

        Where they are more than `WINDOW`, brokers share it evenly, and each call returns other groups.
        """
        brokers = [broker for broker in self._groups if broker is None or has_room(broker)]
        if sum(len(self._groups[broker]) for broker in brokers) <= WINDOW:
            return [group for broker in brokers for group in self._groups[broker].values()]
        chosen = dict.fromkeys(place[0] for key in also if (place := self._place.get(key)) is not None)
        most = max(1, WINDOW // len(brokers))
        for broker in brokers:
            groups = self._groups[broker]
            for name, group in list(islice(groups.items(), most)):
                chosen[group] = None
                groups[name] = groups.pop(name)
        return list(chosen)


class FairQueue:
    """The groups of one pass: first those whose move is the first of the plan whose turn it is.

    While a pass takes moves, their plans are served, and fewer bytes wait in their directions. So a noted turn may be
    too early, never too late, and is corrected when it comes first: for plans and, within each, for groups.
    """

    def __init__(self, waiting: WaitingList, groups: Iterable[MoveGroup]) -> None:
        self._waiting = waiting
        self._places: dict[MoveGroup, int] = {}
        self._numbers = count()
        # The groups of each plan, in flight and pending apart, by rank: they are served alike.
        self._groups: dict[tuple[int, str], list[tuple[Rank, int, MoveGroup]]] = {}
        for group in groups:
            if (item := group.at(0)) is not None:
                line = self._groups.setdefault(group.name[:2], [])
                line.append((waiting.turn(group, item)[2:], next(self._numbers), group))
        for line in self._groups.values():
            heapq.heapify(line)
        # These turns may be too early; each is corrected when it comes first.
        self._plans: list[tuple[Turn, int, tuple[int, str]]] = [
            ((name[0], 0, *line[0][0]), next(self._numbers), name) for name, line in self._groups.items()
        ]
        heapq.heapify(self._plans)

    def first(self) -> tuple[Turn, MoveGroup, Item] | None:
        """Return the move whose turn it is; None if no group is left."""
        while self._plans:
            noted, number, name = self._plans[0]
            turn = self._first_of(self._groups[name])
            if turn is None:
                heapq.heappop(self._plans)
            elif turn > noted:
                heapq.heapreplace(self._plans, (turn, number, name))
            else:
                group = self._groups[name][0][2]
                item = group.at(self._places.get(group, 0))
                assert item is not None, "the first group has a move"
                return turn, group, item
        return None

    def _first_of(self, line: list[tuple[Rank, int, MoveGroup]]) -> Turn | None:
        while line:
            noted, number, group = line[0]
            item = group.at(self._places.get(group, 0))
            if item is None:
                heapq.heappop(line)
                continue
            turn = self._waiting.turn(group, item)
            if turn[2:] <= noted:
                return turn
            heapq.heapreplace(line, (turn[2:], number, group))
        return None

    def skip(self, group: MoveGroup, item: Item) -> None:
        """Go on with the next move of a group, behind this one if it is still there."""
        place = self._places.get(group, 0)
        if group.at(place) == item:
            self._places[group] = place + 1

    def drop(self, group: MoveGroup) -> None:
        """Take no more of a group, which is the first one."""
        heapq.heappop(self._groups[group.name[:2]])
