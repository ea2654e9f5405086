"""An index of the throttles that moves in flight need; events keep it, so that nothing is scanned.

Per step: leader side the current list, follower side the replicas being added (TV-134, TV-141, TV-142). Where plans
disagree a broker gets the lowest rate asked (X14).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Self

from drover.reassignment.phase import Phase
from drover.reassignment.state import Reassignment, ReassignmentState
from events.partitions import TopicPartition
from events.throttles import Entries

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
    """The entries `partition:broker` that a topic needs, and the incarnation that they are meant for."""

    leader: set[str] = field(default_factory=set)
    follower: set[str] = field(default_factory=set)
    # The numbers of the reassignments that need them, by the incarnation: nearly always one.
    incarnations: dict[str, set[int]] = field(default_factory=dict)
    # Entries that may differ from those that are there, leader side and follower side; all others are known to agree.
    # None before the first comparison: a list has thousands of entries, of which a few change at a time.
    _unsettled: tuple[set[str], set[str]] | None = None

    @property
    def topic_id(self) -> str:
        """The newest incarnation: what is left over of an earlier one ends as soon as it is looked at."""
        incarnations = self.incarnations
        if len(incarnations) == 1:
            return next(iter(incarnations))
        return max(incarnations, key=lambda topic_id: max(incarnations[topic_id]))

    def change(self, leader: Iterable[str], follower: Iterable[str]) -> None:
        """Compare these entries again: what is needed of them, or what is there, has changed or is about to."""
        if self._unsettled is not None:
            self._unsettled[0].update(leader)
            self._unsettled[1].update(follower)

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
        """Compare the entries `among` all; None compares all. The present ones are sorted."""
        if among is None:
            there = frozenset(present)
            return cls(tuple(sorted(needed - there)), tuple(sorted(there - needed)))
        there = frozenset(entry for entry in among if holds(present, entry))
        return cls(tuple(sorted((among & needed) - there)), tuple(sorted(there - needed)))


def holds(entries: tuple[str, ...], entry: str) -> bool:
    """Whether the ledger's entries, which are sorted, contain one."""
    place = bisect_left(entries, entry)
    return place < len(entries) and entries[place] == entry


def need_of(reassignment: Reassignment, state: ReassignmentState) -> Need | None:
    """Say what a reassignment needs now; None if nothing."""
    step = reassignment.step
    if step is None or reassignment.phase not in _THROTTLED_PHASES or not step.adding:
        return None
    if state.rate_of(reassignment.plan) is None:
        return None
    return Need(reassignment.plan, reassignment.number, reassignment.topic_id, step.expected, step.adding)


class Demand:
    """The throttles of all moves in flight; `changed_brokers` and `changed_topics` need a comparison."""

    def __init__(self, state: ReassignmentState) -> None:
        self._state = state
        self._needs: dict[TopicPartition, Need] = {}
        self._plans: dict[int, Counter[str]] = {}
        # The lowest rate per broker, cached: it is read at every start, and many plans may have moves on one broker.
        self._rates: dict[int, int | None] = {}
        self.topics: dict[str, TopicDemand] = {}
        self.changed_brokers: set[int] = set()
        self.changed_topics: set[str] = set()
        for key in state.in_flight:
            self.update(key)

    @property
    def brokers(self) -> frozenset[int]:
        """The brokers that need a rate."""
        return frozenset(self._plans)

    def rate(self, broker: int) -> int | None:
        """Return the lowest rate asked for on a broker; None if none is."""
        if broker not in self._rates:
            rates = (self._state.rate_of(name) for name in self._plans.get(broker, ()))
            self._rates[broker] = min((rate for rate in rates if rate is not None), default=None)
        return self._rates[broker]

    def update(self, key: TopicPartition) -> None:
        """Follow a reassignment that has changed, or ended."""
        reassignment = self._state.reassignments.get(key)
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
        for key in self._state.in_flight:
            reassignment = self._state.reassignments[key]
            plan = plans[reassignment.plan]
            if plan.throttle_bytes_per_second is None if name is None else plan.name == name:
                self.update(key)
                if reassignment.step is not None:
                    self.changed_brokers.update(reassignment.step.expected, reassignment.step.adding)

    def _add(self, key: TopicPartition, need: Need) -> None:
        self._needs[key] = need
        for broker in (*need.expected, *need.adding):
            plans = self._plans.setdefault(broker, Counter())
            if need.plan not in plans:
                self._rates.pop(broker, None)
            plans[need.plan] += 1
        topic = self.topics.setdefault(key.topic, TopicDemand())
        leader, follower = _entries(key, need)
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
        topic.leader.difference_update(leader)
        topic.follower.difference_update(follower)
        topic.change(leader, follower)
        topic.incarnations[need.topic_id].discard(need.number)
        if not topic.incarnations[need.topic_id]:
            del topic.incarnations[need.topic_id]
        if not topic.incarnations:
            del self.topics[key.topic]
        self._changed(key, need)

    def _changed(self, key: TopicPartition, need: Need) -> None:
        self.changed_brokers.update(need.expected, need.adding)
        self.changed_topics.add(key.topic)


def _entries(key: TopicPartition, need: Need) -> tuple[list[str], list[str]]:
    """List what a need puts on the leader side and on the follower side of its topic."""
    return (
        [f"{key.partition}:{broker}" for broker in need.expected],
        [f"{key.partition}:{broker}" for broker in need.adding],
    )
