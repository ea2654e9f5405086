"""An index of the throttles that moves in flight need; events keep it, so that nothing is scanned.

Per step: leader side the current list, follower side the replicas being added (TV-134, TV-141, TV-142). Where plans
disagree a broker gets the lowest rate asked (X14).
"""

from collections import Counter
from dataclasses import dataclass, field

from drover.reassignment.phase import Phase
from drover.reassignment.state import Reassignment, ReassignmentState
from events.partitions import TopicPartition

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
    topic_ids: dict[int, str] = field(default_factory=dict)

    @property
    def topic_id(self) -> str:
        """The newest incarnation: what is left over of an earlier one ends as soon as it is looked at."""
        return self.topic_ids[max(self.topic_ids)]


def need_of(reassignment: Reassignment, state: ReassignmentState) -> Need | None:
    """Say what a reassignment needs now; None if nothing."""
    step = reassignment.step
    if step is None or reassignment.phase not in _THROTTLED_PHASES or not step.adding:
        return None
    if state.plans[reassignment.plan].throttle_bytes_per_second is None:
        return None
    return Need(reassignment.plan, reassignment.number, reassignment.topic_id, step.expected, step.adding)


class Demand:
    """The throttles of all moves in flight; `changed_brokers` and `changed_topics` need a comparison."""

    def __init__(self, state: ReassignmentState) -> None:
        self._state = state
        self._needs: dict[TopicPartition, Need] = {}
        self._plans: dict[int, Counter[str]] = {}
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
        plans = self._state.plans
        rates = (plans[name].throttle_bytes_per_second for name in self._plans.get(broker, ()))
        return min((rate for rate in rates if rate is not None), default=None)

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

    def plan_changed(self, name: str) -> None:
        """Follow a plan whose rate was set."""
        for key in self._state.in_flight:
            reassignment = self._state.reassignments[key]
            if reassignment.plan == name:
                self.update(key)
                if reassignment.step is not None:
                    self.changed_brokers.update(reassignment.step.expected, reassignment.step.adding)

    def _add(self, key: TopicPartition, need: Need) -> None:
        self._needs[key] = need
        for broker in (*need.expected, *need.adding):
            self._plans.setdefault(broker, Counter())[need.plan] += 1
        topic = self.topics.setdefault(key.topic, TopicDemand())
        topic.leader.update(f"{key.partition}:{broker}" for broker in need.expected)
        topic.follower.update(f"{key.partition}:{broker}" for broker in need.adding)
        topic.topic_ids[need.number] = need.topic_id
        self._changed(key, need)

    def _remove(self, key: TopicPartition, need: Need) -> None:
        del self._needs[key]
        for broker in (*need.expected, *need.adding):
            plans = self._plans[broker]
            plans[need.plan] -= 1
            if not plans[need.plan]:
                del plans[need.plan]
            if not plans:
                del self._plans[broker]
        topic = self.topics[key.topic]
        topic.leader.difference_update(f"{key.partition}:{broker}" for broker in need.expected)
        topic.follower.difference_update(f"{key.partition}:{broker}" for broker in need.adding)
        del topic.topic_ids[need.number]
        if not topic.topic_ids:
            del self.topics[key.topic]
        self._changed(key, need)

    def _changed(self, key: TopicPartition, need: Need) -> None:
        self.changed_brokers.update(need.expected, need.adding)
        self.changed_topics.add(key.topic)
