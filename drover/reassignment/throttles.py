"""The throttle ledger's rules: which throttles the moves in flight need, and what must be read and written for them.

References are counted by looking: what is wanted follows from the reassignments that hold a step now, so the end of
the last user is what takes a throttle away. Nothing is written that was not read just before; what was there is
recorded and put back exactly; what somebody else changed meanwhile is left to them (S10, X14).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from drover.reassignment.facts import BrokerRates, ThrottledReplicas
from drover.reassignment.state import BrokerThrottle, ClusterState, Phase, Reassignment, TopicThrottle
from events.records import ThrottleEvent
from events.throttles import (
    NO_ENTRIES,
    BrokerThrottleIntended,
    BrokerThrottleLeft,
    Entries,
    Rates,
    TopicThrottleIntended,
    TopicThrottleLeft,
    TopicThrottleSet,
)

EVERY_REPLICA = "*"
_THROTTLED_PHASES = frozenset(
    {Phase.PREPARED, Phase.INTENDED, Phase.COPYING, Phase.ROLLING_BACK, Phase.CANCEL_INTENDED, Phase.CANCELLING}
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What should be in force now: one rate per broker, and entries per topic."""

    rates: Mapping[int, int] = field(default_factory=dict)
    entries: Mapping[str, Entries] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Read:
    """What was read since the last write to the same broker or topic; what is missing must be read first."""

    brokers: Mapping[int, BrokerRates] = field(default_factory=dict)
    topics: Mapping[str, ThrottledReplicas | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ThrottlePlan:
    """Events to record now, and what must be read before more can be said."""

    events: tuple[ThrottleEvent, ...] = ()
    read_brokers: tuple[int, ...] = ()
    read_topics: tuple[str, ...] = ()


def is_throttled(reassignment: Reassignment, state: ClusterState) -> bool:
    """Whether the reassignment's plan asks for a throttle."""
    return state.plans[reassignment.plan].throttle_bytes_per_second is not None


def wanted(state: ClusterState) -> Wanted:
    """Say what the moves in flight need; where plans disagree a broker gets the lowest rate asked (X14).

    Per step: leader side the current list, follower side the replicas being added (TV-134, TV-141, TV-142).
    """
    rates: dict[int, int] = {}
    leader: dict[str, set[str]] = {}
    follower: dict[str, set[str]] = {}
    for key in state.in_flight:
        reassignment = state.reassignments[key]
        rate = state.plans[reassignment.plan].throttle_bytes_per_second
        step = reassignment.step
        if rate is None or step is None or not step.adding or reassignment.phase not in _THROTTLED_PHASES:
            continue
        for broker in (*step.expected, *step.adding):
            rates[broker] = min(rate, rates.get(broker, rate))
        leader.setdefault(key.topic, set()).update(f"{key.partition}:{broker}" for broker in step.expected)
        follower.setdefault(key.topic, set()).update(f"{key.partition}:{broker}" for broker in step.adding)
    entries = {topic: Entries(tuple(sorted(leader[topic])), tuple(sorted(follower[topic]))) for topic in sorted(leader)}
    return Wanted(dict(sorted(rates.items())), entries)


def is_ready(reassignment: Reassignment, state: ClusterState, asked: Wanted, live: Collection[int], read: Read) -> bool:
    """Whether everything that a prepared step needs is in force; dead brokers copy nothing and are not waited for."""
    step = reassignment.step
    if step is None or not step.adding:
        return True
    for broker in (*step.expected, *step.adding):
        entry = state.broker_throttles.get(broker)
        if broker not in live:
            continue
        rate = asked.rates.get(broker)
        if entry is None or entry.pending or entry.intended != Rates(rate, rate):
            return False
    topic = state.topic_throttles.get(reassignment.key.topic)
    if topic is None:
        return _missing(asked.entries[reassignment.key.topic], NO_ENTRIES, read, reassignment.key.topic) == NO_ENTRIES
    if topic.left:
        return True
    missing = _missing(asked.entries[reassignment.key.topic], topic.present, read, reassignment.key.topic)
    return not topic.pending and missing == NO_ENTRIES


def plan_throttles(state: ClusterState, asked: Wanted, live: Collection[int], read: Read) -> ThrottlePlan:
    """Compare the ledger with what is wanted; says nothing when they agree."""
    events: list[ThrottleEvent] = []
    read_brokers: list[int] = []
    read_topics: list[str] = []
    for broker in sorted({*asked.rates, *state.broker_throttles}):
        entry = state.broker_throttles.get(broker)
        if not _broker_is_due(entry, asked.rates.get(broker)) or broker not in live:
            continue
        found = read.brokers.get(broker)
        if found is None:
            read_brokers.append(broker)
        else:
            events.append(_broker_event(state.name, broker, entry, asked.rates.get(broker), found))
    for topic in sorted({*asked.entries, *state.topic_throttles}):
        known = state.topic_throttles.get(topic, TopicThrottle())
        if not _topic_is_due(known, asked.entries.get(topic), read, topic):
            continue
        if topic not in read.topics and topic in asked.entries:
            read_topics.append(topic)
        else:
            events += _topic_events(state.name, topic, known, asked.entries.get(topic, NO_ENTRIES), read)
    return ThrottlePlan(tuple(events), tuple(read_brokers), tuple(read_topics))


def _broker_is_due(entry: BrokerThrottle | None, rate: int | None) -> bool:
    if entry is None:
        return rate is not None
    if entry.pending:
        # Releases are overtaken by a new user; anything else waits for its own answer.
        return False
    return rate is None or entry.intended != Rates(rate, rate)


def _broker_event(
    cluster: str, broker: int, entry: BrokerThrottle | None, rate: int | None, found: BrokerRates
) -> ThrottleEvent:
    seen = Rates(found.leader_bytes_per_second, found.follower_bytes_per_second)
    if entry is not None and seen != entry.intended:
        theirs = _without_ours(seen, entry)
        if theirs == seen:
            return BrokerThrottleLeft(cluster=cluster, broker=broker, found=seen)
        # Somebody changed one rate of the two: theirs stays, the other goes back to what it was.
        return BrokerThrottleIntended(cluster=cluster, broker=broker, rates=theirs, found=seen, release=True)
    if rate is None:
        assert entry is not None, f"broker {broker} has nothing to release"
        return BrokerThrottleIntended(cluster=cluster, broker=broker, rates=entry.baseline, found=seen, release=True)
    return BrokerThrottleIntended(cluster=cluster, broker=broker, rates=Rates(rate, rate), found=seen)


def _without_ours(seen: Rates, entry: BrokerThrottle) -> Rates:
    """Say what a broker's rates are without those that Drover set and nobody has changed since."""
    return Rates(
        leader=entry.baseline.leader if seen.leader == entry.intended.leader else seen.leader,
        follower=entry.baseline.follower if seen.follower == entry.intended.follower else seen.follower,
    )


def _topic_is_due(known: TopicThrottle, asked: Entries | None, read: Read, topic: str) -> bool:
    if known.pending:
        return False
    if known.left:
        return asked is None
    if asked is None:
        return known.present != NO_ENTRIES
    return _changes(known, asked, read, topic) != (NO_ENTRIES, NO_ENTRIES)


def _topic_events(cluster: str, topic: str, known: TopicThrottle, asked: Entries, read: Read) -> list[ThrottleEvent]:
    if known.left:
        # Nobody needs the topic any more: the note that it was left alone goes.
        return [TopicThrottleSet(cluster=cluster, topic=topic)]
    found = read.topics.get(topic)
    if topic in read.topics and found is None:
        return [TopicThrottleLeft(cluster=cluster, topic=topic, detail="the topic does not exist")]
    if found is not None and EVERY_REPLICA in (*found.leader, *found.follower):
        detail = "the topic is throttled by *, which Drover never touches"
        return [TopicThrottleLeft(cluster=cluster, topic=topic, detail=detail)]
    add, remove = _changes(known, asked, read, topic)
    return [TopicThrottleIntended(cluster=cluster, topic=topic, add=add, remove=remove)]


def _changes(known: TopicThrottle, asked: Entries, read: Read, topic: str) -> tuple[Entries, Entries]:
    remove = Entries(
        tuple(entry for entry in known.present.leader if entry not in asked.leader),
        tuple(entry for entry in known.present.follower if entry not in asked.follower),
    )
    return _missing(asked, known.present, read, topic), remove


def _missing(asked: Entries, present: Entries, read: Read, topic: str) -> Entries:
    """Asked entries that are neither Drover's own nor somebody else's: only these are added, and later removed."""
    found = read.topics.get(topic)
    leader = set(present.leader) | set(found.leader if found is not None else ())
    follower = set(present.follower) | set(found.follower if found is not None else ())
    return Entries(
        tuple(entry for entry in asked.leader if entry not in leader),
        tuple(entry for entry in asked.follower if entry not in follower),
    )
