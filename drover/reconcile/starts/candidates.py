"""An index of waiting reassignments that are worth a try now; a try costs the same however many wait.

Each waiting reassignment is in one place at a time: ready to be tried, parked because something is full, asked for a
look at the cluster or in line for one, or put off until a moment. What is parked is kept by all that it needs room at:
those with the same needs and share of a slot come back one at a time and in order, when there is room at all of it.
Moves that lack only a budget of the cluster wait in its line, see `drover.reconcile.starts.budget_lines`.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition
from drover.reconcile.starts.budget_lines import BudgetLines, Group
from drover.reconcile.starts.lanes import Item, Lanes
from drover.reconcile.starts.lazy_queue import Turn
from drover.reconcile.starts.rank import Rank
from drover.reconcile.starts.resources import BUDGETS, Budget, HasRoom, Needs, Resource, Uplink, amount
from drover.reconcile.starts.shares import Shares
from drover.reconcile.starts.waiting_entry import Entry, Where
from drover.state.ports import Port
from drover.state.slot_share import LEAST_SHARE, WHOLE_SLOT

# A move that so many others have passed at a resource is passed no more: what it needs is kept for it.
PATIENCE = 100
_AWAITING_A_LOOK = frozenset({Where.LOOKING, Where.IN_LINE, Where.PUT_OFF})


@dataclass(frozen=True, slots=True)
class Candidate:
    """One reassignment to try; `woken_by` is the resource that has room again, None if it was not parked."""

    key: TopicPartition
    woken_by: Resource | None


@dataclass(slots=True)
class Candidates:
    """The index. Heaps hold items of (rank, turn, key); an item whose turn is outdated is dropped.

    Plans take turns at what is ready, and at each need; `reserved` says for whom a resource is kept.
    """

    shares: Shares
    # How many may have a look at a time.
    max_looks: int = 0
    _entries: dict[TopicPartition, Entry] = field(default_factory=dict)
    _turn: int = 0
    _ready: Lanes = field(init=False)
    _parked: dict[Group, Lanes] = field(default_factory=dict)
    _needing: dict[Resource, dict[Group, None]] = field(default_factory=dict)
    budget_lines: BudgetLines = field(init=False)
    reserved: dict[Resource, TopicPartition] = field(default_factory=dict)
    # Resources that were full when something was parked for them, or was not woken because of them, and the least share
    # that was lacking there: what waits is looked through again when so much is free.
    _full: dict[Resource, int] = field(default_factory=dict)
    # Those of them where something became free since; what is no port is asked every time.
    _freed: dict[Resource, None] = field(default_factory=dict)
    _line: list[Item] = field(default_factory=list)
    _put_off: list[tuple[int, int, TopicPartition]] = field(default_factory=list)
    # None: all that is parked is to be tried again.
    _recheck: list[TopicPartition] | None = field(default_factory=list)
    looks: dict[TopicPartition, None] = field(default_factory=dict)
    # How much those with a look, or in line for one, are expected to take; see `amount`.
    expected: Counter[Resource] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._ready = Lanes(self._turn_of, self._entries)
        self.budget_lines = BudgetLines(self._turn_of, self._parked)

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

    def _move(
        self,
        key: TopicPartition,
        rank: Rank,
        where: Where,
        expected: Needs = (),
        needs: Needs | None = None,
        share: int | None = None,
    ) -> int:
        """Put it elsewhere. What it was parked for, and how often it was passed there, is kept until it needs other."""
        self._turn += 1
        before = self._entries.get(key)
        if share is None:
            share = WHOLE_SLOT if before is None else before.share
        self._leave(key, before)
        if before is None or before.rank.plan != rank.plan:
            self.shares.enter(rank.plan)
            if before is not None:
                self.shares.leave(before.rank.plan)
        kept = before is not None and needs in {None, before.needs}
        if not kept:
            self._release(key, before)
        entry = Entry(rank, where, self._turn, expected=expected, share=share)
        if kept and before is not None:
            entry.needs, entry.passed = before.needs, before.passed
        elif needs is not None:
            entry.needs = needs
        self._entries[key] = entry
        for resource in expected:
            self.expected[resource] += amount(resource, share)
        return self._turn

    def _leave(self, key: TopicPartition, entry: Entry | None) -> None:
        if entry is None:
            return
        if entry.where is Where.LOOKING:
            del self.looks[key]
        for resource in entry.expected:
            self.expected[resource] -= amount(resource, entry.share)
        self.free(entry.expected)
        if entry.woken_by is not None:
            # Whether or not it has taken the room, find the next one.
            self._note_freed(entry.woken_by)

    def _release(self, key: TopicPartition, entry: Entry | None) -> None:
        """Keep nothing for it any longer; whatever waits there may be next."""
        for resource in () if entry is None else dict.fromkeys(entry.needs):
            if self.reserved.get(resource) == key:
                del self.reserved[resource]
                self._note_freed(resource)

    def _note_full(self, resources: Iterable[Resource], share: int) -> None:
        for one in resources:
            # A budget has no shares, and of those in its line only the first was checked.
            self._full[one] = min(LEAST_SHARE if isinstance(one, Budget) else share, self._full.get(one, share))
            if not isinstance(one, Port):
                self._freed[one] = None

    def _note_freed(self, resource: Resource) -> None:
        self._full[resource] = LEAST_SHARE
        self._freed[resource] = None

    def _turn_of(self, rank: Rank) -> Turn:
        return (rank.tier, self.shares.served(rank.plan) if rank.tier else 0, rank)

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
        turn = self._move(key, rank, Where.READY)
        self._entries[key].woken_by = woken_by
        self._ready.push((rank, turn, key))

    def park(
        self, key: TopicPartition, rank: Rank, needs: Needs, full: Sequence[Resource], share: int = WHOLE_SLOT
    ) -> None:
        """Park it until everything that it needs has room for its share; `full` is what has none now."""
        turn = self._move(key, rank, Where.PARKED, needs=needs, share=share)
        group = (needs, share)
        lanes = self._parked.get(group)
        if lanes is None:
            lanes = self._parked[group] = Lanes(self._turn_of, self._entries)
            for resource in needs:
                self._needing.setdefault(resource, {})[group] = None
        lanes.push((rank, turn, key))
        self.budget_lines.follow(group, rank.lane)
        self._wait(group, full)

    def _wait(self, group: Group, full: Sequence[Resource]) -> None:
        """Note what the first move of a group lacks; the line that the group is in is checked again, too."""
        budget = self.budget_lines.join(group, full)
        self._note_full(full if budget is None else (*full, budget), group[1])

    def look(self, key: TopicPartition, rank: Rank, expected: Needs, share: int = WHOLE_SLOT) -> None:
        """Ask for a look at it in the cluster, when its turn comes; `expected` is what it is likely to take."""
        if not self.is_looked_enough:
            self._move(key, rank, Where.LOOKING, expected, share=share)
            self.looks[key] = None
        else:
            heapq.heappush(self._line, (rank, self._move(key, rank, Where.IN_LINE, expected, share=share), key))

    def put_off(self, key: TopicPartition, rank: Rank, until_ms: int) -> None:
        """Put it off until a moment."""
        heapq.heappush(self._put_off, (until_ms, self._move(key, rank, Where.PUT_OFF), key))

    def drop(self, key: TopicPartition) -> None:
        """Drop what no longer waits."""
        entry = self._entries.pop(key, None)
        self._leave(key, entry)
        if entry is not None:
            self._release(key, entry)
            self.shares.leave(entry.rank.plan)

    def give_up(self, key: TopicPartition) -> None:
        """Keep nothing for one that cannot start for another reason than room."""
        entry = self._entries.get(key)
        if entry is not None and entry.where is Where.PUT_OFF:
            self._release(key, entry)
            entry.needs, entry.passed = (), 0

    def free(self, resources: Iterable[Resource]) -> None:
        """Note where something became free."""
        for resource in resources:
            self._freed[resource] = None

    def free_all(self) -> None:
        """Note that something may have become free anywhere."""
        self.free(self._full)

    # -- back again

    def seen(self, keys: Iterable[TopicPartition]) -> None:
        """Offer those of them that were just looked at for a try; what is parked stays."""
        # Most of what is looked at is being copied, and waits for nothing.
        for key in filter(self._entries.__contains__, keys):
            entry = self._entries[key]
            if entry.where in _AWAITING_A_LOOK:
                self.offer(key, entry.rank)

    def offer_looked_at(self) -> None:
        """Offer what has a look at the cluster: it may have been seen already."""
        for key in tuple(self.looks):
            self.offer(key, self._entries[key].rank)

    def recheck_parked(self) -> None:
        """Try everything that is parked again, little by little: another broker may do now."""
        self._recheck = None

    def wake_rechecked(self, count: int) -> bool:
        """Offer some of those; return whether there are more."""
        if self._recheck is None:
            self._recheck = list(reversed(self._entries))
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

    def wake_parked(self, room: HasRoom) -> None:
        """Offer, for each resource that has room again, the first one that finds room everywhere it needs."""
        self.budget_lines.begin()
        freed, self._freed = self._freed, {}
        for resource in freed:
            if (share := self._full.get(resource)) is None:
                continue
            owner = self.reserved.get(resource)
            if owner is not None:
                self._offer_owner(owner, resource, room)
            if room.has_room(resource, share):
                del self._full[resource]
                self.wake_next(resource, room)
            elif not isinstance(resource, Port):
                self._freed[resource] = None

    def wake_next(self, resource: Resource, room: HasRoom) -> None:
        """Offer the first one that needs this resource and finds room everywhere it needs, if there is room here."""
        if not room.has_room(resource, LEAST_SHARE):
            self._note_full((resource,), LEAST_SHARE)
        elif isinstance(resource, Budget):
            self._wake_next_in_line(resource, room)
        else:
            self._wake_next_needing(resource, room)

    def _wake_next_needing(self, resource: Resource, room: HasRoom) -> None:
        first: tuple[Turn, Item, Group] | None = None
        for group in tuple(self._needing.get(resource, ())):
            if self.budget_lines.budget_of(group) in self._full:
                continue
            head = self._head(group)
            if head is None or (first is not None and head[0] >= first[0]):
                continue
            needs, share = group
            full = room.lacking(needs, head[1][2], share)
            if full:
                self._wait(group, full)
            else:
                first = (*head, group)
        if first is not None:
            self._offer_head(first[2], resource)

    def _wake_next_in_line(self, budget: Budget, room: HasRoom) -> None:
        while (group := self.budget_lines.first(budget)) is not None:
            if self.budget_lines.is_behind:
                self._note_freed(budget)
                return
            head = self._head(group)
            assert head is not None, "a group in line has a first move"
            full = room.lacking(group[0], head[1][2], group[1])
            if not full:
                # The others of the group stay in line.
                self._offer_head(group, budget)
                return
            self.budget_lines.leave(group)
            self._wait(group, full)
            if budget in full:
                return

    def _offer_head(self, group: Group, woken_by: Resource) -> None:
        item = self._parked[group].pop()
        assert item is not None, "a group that is offered has a first move"
        self.offer(item[2], item[0], woken_by)

    def kept(self, resource: Resource, key: TopicPartition | None = None) -> int:
        """Return what of a resource is kept for another reassignment than this one, in sixteenths of a slot."""
        owner = self.reserved.get(resource)
        entry = None if owner is None or owner == key else self._entries[owner]
        return 0 if entry is None else entry.needs.count(resource) * entry.share

    def _offer_owner(self, owner: TopicPartition, resource: Resource, room: HasRoom) -> None:
        """Offer the one that a resource is kept for, if there is room at all it needs, or ask again."""
        entry = self._entries[owner]
        # If it is not parked, it is about to be tried, or looked at.
        is_busy = entry.where is not Where.PARKED
        full = [resource] if is_busy else room.lacking(entry.needs, owner, entry.share)
        self._note_full((*full, resource), entry.share)
        if not full:
            self.offer(owner, entry.rank, resource)
        elif any(isinstance(one, Budget) for one in full):
            # The slots kept for it would stay idle until the budget has room.
            self._release(owner, entry)

    def pass_by(self, key: TopicPartition, rank: Rank, needs: Needs) -> None:
        """Note that one starts before others that come first and need some of the same.

        One that was passed too often gets what it needs reserved. A move that waits for a budget counts as passed only
        by those that draw on the same budget.
        """
        turn = self._turn_of(rank)
        lacking = {one for one in BUDGETS if one in self._full and one not in needs}
        ports = (one for one in needs if not isinstance(one, Budget))
        groups = dict.fromkeys(group for resource in ports for group in self._needing.get(resource, ()))
        for group in groups:
            if lacking and not lacking.isdisjoint(group[0]):
                continue
            head = self._head(group)
            if head is not None and head[1][2] != key and head[0] < turn:
                self._pass(head[1][2])

    def _pass(self, key: TopicPartition) -> None:
        entry = self._entries[key]
        entry.passed += 1
        if entry.passed >= PATIENCE and not any(one in self.reserved for one in entry.needs):
            self.reserved.update((one, key) for one in entry.needs if isinstance(one, Port | Uplink))

    def _head(self, group: Group) -> tuple[Turn, Item] | None:
        """Return what comes first there, and drop what is no longer parked; None if nothing is left."""
        head = self._parked[group].head()
        if head is None:
            del self._parked[group]
            for resource in dict.fromkeys(group[0]):
                del self._needing[resource][group]
                if not self._needing[resource]:
                    del self._needing[resource]
        return head

    def ready(self) -> Iterator[Candidate]:
        """Take the reassignments to try, in order; the caller says where each goes next, or drops it."""
        while (item := self._ready.pop()) is not None:
            yield Candidate(item[2], self._entries[item[2]].woken_by)

    def next_due_ms(self) -> int | None:
        """Tell when the next one that was put off comes back."""
        while self._put_off and not self._is_current(self._put_off[0][2], self._put_off[0][1]):
            heapq.heappop(self._put_off)
        return self._put_off[0][0] if self._put_off else None
