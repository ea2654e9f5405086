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
    """What should be in force now: one rate per broker, and entries per topic, for the incarnation in `topic_ids`."""

    rates: Mapping[int, int] = field(default_factory=dict)
    entries: Mapping[str, Entries] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)


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
    newest: dict[str, Reassignment] = {}
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
        # What is left over of an earlier incarnation ends as soon as it is looked at.
        if newest.setdefault(key.topic, reassignment).number < reassignment.number:
            newest[key.topic] = reassignment
    entries = {topic: Entries(tuple(sorted(leader[topic])), tuple(sorted(follower[topic]))) for topic in sorted(leader)}
    return Wanted(dict(sorted(rates.items())), entries, {topic: newest[topic].topic_id for topic in entries})


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
    topic = reassignment.key.topic
    known = state.topic_throttles.get(topic)
    if known is None:
        return _missing(asked.entries[topic], NO_ENTRIES, read, topic) == NO_ENTRIES
    if known.topic_id != asked.topic_ids[topic]:
        return False
    return known.left or (
        not known.pending and _missing(asked.entries[topic], known.present, read, topic) == NO_ENTRIES
    )


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
        if not _topic_is_due(known, asked, read, topic):
            continue
        if topic not in read.topics and topic in asked.entries:
            read_topics.append(topic)
        else:
            events += _topic_events(state.name, topic, known, asked, read)
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


def _topic_is_due(known: TopicThrottle, asked: Wanted, read: Read, topic: str) -> bool:
    entries = asked.entries.get(topic)
    if known.pending:
        return False
    if entries is None:
        return known.left or known.present != NO_ENTRIES
    if known != TopicThrottle() and known.topic_id != asked.topic_ids[topic]:
        # The topic was made anew: whatever Drover had put there, or left alone, went with the old one.
        return True
    return not known.left and _changes(known, asked, read, topic) != (NO_ENTRIES, NO_ENTRIES)


def _topic_events(cluster: str, topic: str, known: TopicThrottle, asked: Wanted, read: Read) -> list[ThrottleEvent]:
    topic_id = asked.topic_ids.get(topic)
    if known.left and topic_id is None:
        # Nobody needs the topic any more: the note that it was left alone goes.
        return [TopicThrottleSet(cluster=cluster, topic=topic)]
    meant = known.topic_id if topic_id is None else topic_id
    found = read.topics.get(topic)
    detail = None
    if topic in read.topics and found is None:
        detail = "the topic does not exist"
    elif found is not None and EVERY_REPLICA in (*found.leader, *found.follower):
        detail = "the topic is throttled by *, which Drover never touches"
    if detail is not None:
        return [TopicThrottleLeft(cluster=cluster, topic=topic, detail=detail, topic_id=meant)]
    add, remove = _changes(known, asked, read, topic)
    return [TopicThrottleIntended(cluster=cluster, topic=topic, add=add, remove=remove, topic_id=meant)]


def _changes(known: TopicThrottle, asked: Wanted, read: Read, topic: str) -> tuple[Entries, Entries]:
    """What is to be added and removed; what a write may have put into either incarnation is removed in the end."""
    entries = asked.entries.get(topic, NO_ENTRIES)
    remove = Entries(
        tuple(entry for entry in known.present.leader if entry not in entries.leader),
        tuple(entry for entry in known.present.follower if entry not in entries.follower),
    )
    in_force = known.present if known.topic_id == asked.topic_ids.get(topic) else NO_ENTRIES
    return _missing(entries, in_force, read, topic), remove


def _missing(asked: Entries, present: Entries, read: Read, topic: str) -> Entries:
    """Asked entries that are neither Drover's own nor somebody else's: only these are added, and later removed."""
    found = read.topics.get(topic)
    leader = set(present.leader) | set(found.leader if found is not None else ())
    follower = set(present.follower) | set(found.follower if found is not None else ())
    return Entries(
        tuple(entry for entry in asked.leader if entry not in leader),
        tuple(entry for entry in asked.follower if entry not in follower),
    )
