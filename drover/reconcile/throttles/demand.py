"""An index of the throttles that moves in flight need; events update it, so that no batch scans all moves.

Per step: leader side the current list, follower side the replicas being added (TV-134, TV-141, TV-142). Where plans
disagree a broker gets the lowest rate asked (X14). Entries of waiting moves are added with those of a move of the same
topic that begins (`drover.reconcile.throttles.ahead`).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice
from typing import Self

from drover.events.partitions import TopicPartition
from drover.events.throttles import Entries
from drover.reconcile.throttles.ahead import (
    KEPT_IDLE_MS,
    MAX_ENTRIES_AHEAD,
    MAX_ENTRIES_PER_TOPIC,
    MAX_EXAMINED,
    Ahead,
    entries_ahead,
)
from drover.state.moves import ReassignmentState
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment

_THROTTLED_PHASES = frozenset(
    {Phase.PREPARED, Phase.INTENDED, Phase.COPYING, Phase.ROLLING_BACK, Phase.CANCEL_INTENDED, Phase.CANCELLING}
)


@dataclass(frozen=True, slots=True)
class Need:
    """The throttles of one reassignment: brokers with a rate, and entries on both sides of its topic."""

    plan: str
    number: int
    topic_id: str
    expected: tuple[int, ...]
    adding: tuple[int, ...]


@dataclass(slots=True)
class TopicDemand:
    """The entries `partition:broker` that a topic should have, and the incarnation that they are for.

    Moves in flight need `needed` of the leader-side entries; the others are for waiting moves.
    """

    leader: set[str] = field(default_factory=set)
    follower: set[str] = field(default_factory=set)
    # The numbers of the reassignments that need entries, by incarnation: nearly always there is one.
    incarnations: dict[str, set[int]] = field(default_factory=dict)
    needed: int = 0
    ahead: Ahead = field(default_factory=Ahead)
    # The incarnation before the last move that needed any entries ended.
    topic_id_before: str = ""
    # Whether a move has come to need entries that were not asked for before.
    has_new: bool = False
    # Entries that may differ from the present ones, leader side and follower side; all others agree. None before the
    # first comparison. Lists have thousands of entries, of which a few change at a time.
    _unsettled: tuple[set[str], set[str]] | None = None

    @property
    def topic_id(self) -> str:
        """The newest incarnation: moves left over from an earlier one end as soon as they are observed."""
        incarnations = self.incarnations
        if len(incarnations) == 1:
            return next(iter(incarnations))
        if not incarnations:
            return self.topic_id_before
        return max(incarnations, key=lambda topic_id: max(incarnations[topic_id]))

    def change(self, leader: Iterable[str], follower: Iterable[str]) -> None:
        """Compare these entries again: whether they are needed or present has changed or is about to."""
        if self._unsettled is not None:
            self._unsettled[0].update(leader)
            self._unsettled[1].update(follower)

    def drop(self, leader: AbstractSet[str], follower: AbstractSet[str]) -> None:
        """Ask for these entries no longer."""
        self.leader.difference_update(leader)
        self.follower.difference_update(follower)
        self.change(leader, follower)

    def change_all(self) -> None:
        """Compare all entries again."""
        self._unsettled = None

    def differences(self, present: Entries) -> tuple[Entries, Entries]:
        """Return the entries that are needed and not present, and those that are present and not needed; all sorted."""
        before = (None, None) if self._unsettled is None else self._unsettled
        leader = _Difference.between(self.leader, present.leader, before[0])
        follower = _Difference.between(self.follower, present.follower, before[1])
        self._unsettled = ({*leader.missing, *leader.surplus}, {*follower.missing, *follower.surplus})
        return Entries(leader.missing, follower.missing), Entries(leader.surplus, follower.surplus)


@dataclass(frozen=True, slots=True)
class _Difference:
    missing: tuple[str, ...]
    surplus: tuple[str, ...]

    @classmethod
    def between(cls, needed: AbstractSet[str], present: tuple[str, ...], among: AbstractSet[str] | None) -> Self:
        """Compare the entries in `among`, all if it is None; `present` is sorted."""
        if among is None:
            there = frozenset(present)
            return cls(tuple(sorted(needed - there)), tuple(sorted(there - needed)))
        there = frozenset(entry for entry in among if holds(present, entry))
        return cls(tuple(sorted((among & needed) - there)), tuple(sorted(there - needed)))


def holds(entries: tuple[str, ...], entry: str) -> bool:
    """Whether the ledger's sorted entries contain this one."""
    place = bisect_left(entries, entry)
    return place < len(entries) and entries[place] == entry


def need_of(reassignment: Reassignment, state: ReassignmentState) -> Need | None:
    """Return the throttles that a reassignment needs now; None if none."""
    step = reassignment.step
    if step is None or reassignment.phase not in _THROTTLED_PHASES or not step.adding:
        return None
    if state.rate_of(reassignment.plan) is None:
        return None
    return Need(reassignment.plan, reassignment.number, reassignment.topic_id, step.expected, step.adding)


class Demand:
    """The throttles of all moves in flight; `changed_brokers` and `changed_topics` are to be compared."""

    def __init__(self, state: ReassignmentState) -> None:
        self._state = state
        self._needs: dict[TopicPartition, Need] = {}
        self._plans: dict[int, Counter[str]] = {}
        # The lowest rate per broker, cached because it is read at every start, and a broker may serve many plans.
        self._rates: dict[int, int | None] = {}
        self.topics: dict[str, TopicDemand] = {}
        self.changed_brokers: set[int] = set()
        self.changed_topics: set[str] = set()
        # Until when (monotonic) topics without a move in flight keep entries of waiting moves, the earliest first.
        self._idle: dict[str, int] = {}
        # Waiting moves by topic, in the order of acceptance; some may have begun since.
        self._waiting: dict[str, dict[TopicPartition, None]] = {}
        for key in state.moves.pending:
            self._note_waiting(key)
        for key in state.moves.in_flight:
            self.update(key)

    @property
    def brokers(self) -> frozenset[int]:
        """The brokers that need a rate."""
        return frozenset(self._plans)

    def rate(self, broker: int) -> int | None:
        """Return the lowest rate asked for on a broker; None without one."""
        if broker not in self._rates:
            rates = (self._state.rate_of(name) for name in self._plans.get(broker, ()))
            self._rates[broker] = min((rate for rate in rates if rate is not None), default=None)
        return self._rates[broker]

    def end(self, key: TopicPartition) -> None:
        """Drop the entries asked for ahead of a reassignment that has ended; `update` follows its successor, if any."""
        self._forget(key)

    def update(self, key: TopicPartition) -> None:
        """Follow a reassignment that has changed, or ended."""
        reassignment = self._state.reassignments.get(key)
        if reassignment is None or reassignment.cancel_mode is not None:
            self._forget(key)
        elif reassignment.phase is Phase.PENDING:
            self._note_waiting(key)
        after = None if reassignment is None else need_of(reassignment, self._state)
        before = self._needs.get(key)
        if before == after:
            return
        if before is not None:
            self._remove(key, before)
        if after is not None:
            self._add(key, after)

    def plan_changed(self, name: str | None) -> None:
        """Follow a plan whose rate was set; None for the cluster's, which holds for plans without one of their own."""
        plans = self._state.plans
        self._rates.clear()
        for key in self._state.moves.in_flight:
            reassignment = self._state.reassignments[key]
            plan = plans[reassignment.plan]
            if plan.throttle_bytes_per_second is None if name is None else plan.name == name:
                self.update(key)
                if reassignment.step is not None:
                    self.changed_brokers.update(reassignment.step.expected, reassignment.step.adding)
        for topic in tuple(self.topics.values()):
            for key in tuple(topic.ahead.entries):
                if self._state.rate_of(self._state.reassignments[key].plan) is None:
                    self._let_go(key, topic)

    def _add(self, key: TopicPartition, need: Need) -> None:
        self._needs[key] = need
        for broker in (*need.expected, *need.adding):
            plans = self._plans.setdefault(broker, Counter())
            if need.plan not in plans:
                self._rates.pop(broker, None)
            plans[need.plan] += 1
        topic = self.topics.setdefault(key.topic, TopicDemand())
        leader, follower = _entries(key, need)
        if not (topic.leader.issuperset(leader) and topic.follower.issuperset(follower)):
            topic.has_new = True
        topic.needed += len(leader)
        topic.ahead.waiting -= len(topic.ahead.of(key)[0])
        topic.leader.update(leader)
        topic.follower.update(follower)
        topic.incarnations.setdefault(need.topic_id, set()).add(need.number)
        topic.change(leader, follower)
        self._changed(key, need)

    def _remove(self, key: TopicPartition, need: Need) -> None:
        del self._needs[key]
        for broker in (*need.expected, *need.adding):
            plans = self._plans[broker]
            plans[need.plan] -= 1
            if not plans[need.plan]:
                del plans[need.plan]
                self._rates.pop(broker, None)
            if not plans:
                del self._plans[broker]
        topic = self.topics[key.topic]
        leader, follower = _entries(key, need)
        ahead = topic.ahead.of(key)
        topic.needed -= len(leader)
        topic.ahead.waiting += len(ahead[0])
        topic.drop(set(leader) - ahead[0], set(follower) - ahead[1])
        topic.incarnations[need.topic_id].discard(need.number)
        if not topic.incarnations[need.topic_id]:
            topic.topic_id_before = need.topic_id
            del topic.incarnations[need.topic_id]
        if not (topic.incarnations or topic.ahead.entries):
            del self.topics[key.topic]
        self._changed(key, need)

    # -- moves that wait

    def look_ahead(self, now_ms: int) -> None:
        """Ask for entries of waiting moves in topics whose entries change anyway; drop them where no move is in flight.

        Called once in a batch, after moves have begun and ended in it, and before the changes are taken. Time is
        monotonic.
        """
        for name in tuple(self.changed_topics & self.topics.keys()):
            topic = self.topics[name]
            if not topic.incarnations:
                self._idle.setdefault(name, now_ms + KEPT_IDLE_MS)
                continue
            self._idle.pop(name, None)
            if topic.needed + topic.ahead.waiting > MAX_ENTRIES_PER_TOPIC:
                self._let_go_of_waiting(topic)
            elif topic.has_new:
                topic.has_new = False
                self._ask_ahead(name, topic)
        while self._idle and next(iter(self._idle.values())) <= now_ms:
            name = next(iter(self._idle))
            del self._idle[name]
            if (idle := self.topics.get(name)) is not None and not idle.incarnations:
                self._let_go_of_waiting(idle)
                self.topics.pop(name, None)

    def due_ms(self, now_ms: int) -> int | None:
        """Tell when `look_ahead` is to be called although nothing has changed; None if never."""
        due_ms = next(iter(self._idle.values()), 0)
        return due_ms if due_ms > now_ms else None

    def _ask_ahead(self, name: str, topic: TopicDemand) -> None:
        state, waiting, ahead = self._state, self._waiting.get(name, {}), topic.ahead
        # Half of the room is kept, so that a move that begins out of turn does not push these entries out at once.
        most = min(MAX_ENTRIES_AHEAD, (MAX_ENTRIES_PER_TOPIC - topic.needed) // 2)
        for key in tuple(islice(waiting, MAX_EXAMINED)):
            if ahead.waiting >= most:
                return
            reassignment = state.reassignments[key]
            if reassignment.phase not in {Phase.PENDING, Phase.PREPARED}:
                del waiting[key]
                continue
            leader, follower = entries_ahead(reassignment)
            is_meant = reassignment.topic_id == topic.topic_id and state.rate_of(reassignment.plan) is not None
            is_meant = is_meant and reassignment.cancel_mode is None
            if not (is_meant and follower):
                continue
            del waiting[key]
            ahead.entries[key] = leader, follower
            ahead.waiting += 0 if key in self._needs else len(leader)
            topic.leader.update(leader)
            topic.follower.update(follower)
            topic.change(leader, follower)

    def _note_waiting(self, key: TopicPartition) -> None:
        topic = self.topics.get(key.topic)
        if topic is None or key not in topic.ahead.entries:
            self._waiting.setdefault(key.topic, {})[key] = None

    def _forget(self, key: TopicPartition) -> None:
        waiting, topic = self._waiting.get(key.topic), self.topics.get(key.topic)
        if waiting is not None:
            waiting.pop(key, None)
            if not waiting:
                del self._waiting[key.topic]
        if topic is not None and key in topic.ahead.entries:
            self._let_go(key, topic)

    def _let_go_of_waiting(self, topic: TopicDemand) -> None:
        for key in tuple(topic.ahead.entries):
            if key not in self._needs:
                self._let_go(key, topic)

    def _let_go(self, key: TopicPartition, topic: TopicDemand) -> None:
        """Keep only the entries that a move needs now; a waiting one may ask for the others again."""
        leader, follower = topic.ahead.entries.pop(key)
        need = self._needs.get(key)
        if need is None:
            topic.ahead.waiting -= len(leader)
            topic.drop(leader, follower)
        else:
            kept = _entries(key, need)
            topic.drop(leader.difference(kept[0]), follower.difference(kept[1]))
        self.changed_topics.add(key.topic)
        if not (topic.incarnations or topic.ahead.entries):
            del self.topics[key.topic]
        if key in self._state.moves.pending:
            self._waiting.setdefault(key.topic, {})[key] = None

    def _changed(self, key: TopicPartition, need: Need) -> None:
        self.changed_brokers.update(need.expected, need.adding)
        self.changed_topics.add(key.topic)


def _entries(key: TopicPartition, need: Need) -> tuple[list[str], list[str]]:
    """Return the entries of a need on the leader side and on the follower side of its topic."""
    return (
        [f"{key.partition}:{broker}" for broker in need.expected],
        [f"{key.partition}:{broker}" for broker in need.adding],
    )
