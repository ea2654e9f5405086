"""The throttle ledger's rules: what must be read and written for the throttles that the moves in flight need.

What is wanted follows from the reassignments that hold a step now, so a throttle goes with its last user. Everything is
read just before it is written. Earlier values are recorded and put back exactly; what somebody else changed meanwhile
is left alone (S10, X14).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from drover.facts import BrokerRates, ThrottledReplicas
from drover.reassignment.state import Reassignment
from drover.throttling.demand import Demand, TopicDemand
from drover.throttling.state import BrokerThrottle, ThrottlingState, TopicThrottle
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
_NOTHING = TopicDemand()


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


def is_ready(
    reassignment: Reassignment, state: ThrottlingState, demand: Demand, live: Collection[int], read: Read
) -> bool:
    """Whether everything that a prepared step needs is in force; dead brokers copy nothing and need none."""
    step = reassignment.step
    if step is None or not step.adding:
        return True
    for broker in (*step.expected, *step.adding):
        if broker not in live:
            continue
        entry, rate = state.broker_throttles.get(broker), demand.rate(broker)
        if entry is None or entry.pending or entry.intended != Rates(rate, rate):
            return False
    topic, partition = reassignment.key
    needed = Entries(
        tuple(f"{partition}:{broker}" for broker in step.expected),
        tuple(f"{partition}:{broker}" for broker in step.adding),
    )
    known = state.topic_throttles.get(topic)
    if known is None:
        return _missing(needed, NO_ENTRIES, read, topic) == NO_ENTRIES
    if known.topic_id != demand.topics[topic].topic_id:
        return False
    return known.left or (not known.pending and _missing(needed, known.present, read, topic) == NO_ENTRIES)


def plan_throttles(
    state: ThrottlingState,
    demand: Demand,
    live: Collection[int],
    read: Read,
    brokers: Iterable[int],
    topics: Iterable[str],
) -> ThrottlePlan:
    """Compare the ledger with what is wanted on these brokers and topics; returns nothing when they agree."""
    events: list[ThrottleEvent] = []
    read_brokers: list[int] = []
    read_topics: list[str] = []
    for broker in sorted(brokers):
        entry, rate = state.broker_throttles.get(broker), demand.rate(broker)
        if not _broker_is_due(entry, rate) or broker not in live:
            continue
        found = read.brokers.get(broker)
        if found is None:
            read_brokers.append(broker)
        else:
            events.append(_broker_event(state.name, broker, entry, rate, found))
    for topic in sorted(topics):
        known = state.topic_throttles.get(topic, TopicThrottle())
        if not _topic_is_due(known, demand, read, topic):
            continue
        if topic not in read.topics and topic in demand.topics:
            read_topics.append(topic)
        else:
            events += _topic_events(state.name, topic, known, demand, read)
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
    """Return a broker's rates without those that Drover set and nobody has changed since."""
    return Rates(
        leader=entry.baseline.leader if seen.leader == entry.intended.leader else seen.leader,
        follower=entry.baseline.follower if seen.follower == entry.intended.follower else seen.follower,
    )


def _topic_is_due(known: TopicThrottle, demand: Demand, read: Read, topic: str) -> bool:
    if known.pending:
        return False
    wanted = demand.topics.get(topic)
    if wanted is None:
        return known.left or known.present != NO_ENTRIES
    if known != TopicThrottle() and known.topic_id != wanted.topic_id:
        # The topic was deleted and created again: whatever Drover had put there went with the old one.
        return True
    return not known.left and _changes(known, demand, read, topic) != (NO_ENTRIES, NO_ENTRIES)


def _topic_events(cluster: str, topic: str, known: TopicThrottle, demand: Demand, read: Read) -> list[ThrottleEvent]:
    wanted = demand.topics.get(topic)
    if known.left and wanted is None:
        # Nobody needs the topic any more: the note that it was left alone goes.
        return [TopicThrottleSet(cluster=cluster, topic=topic)]
    topic_id = known.topic_id if wanted is None else wanted.topic_id
    found = read.topics.get(topic)
    detail = None
    if topic in read.topics and found is None:
        detail = "the topic does not exist"
    elif found is not None and EVERY_REPLICA in (*found.leader, *found.follower):
        detail = "the topic is throttled by *, which Drover never touches"
    if detail is not None:
        return [TopicThrottleLeft(cluster=cluster, topic=topic, detail=detail, topic_id=topic_id)]
    add, remove = _changes(known, demand, read, topic)
    return [TopicThrottleIntended(cluster=cluster, topic=topic, add=add, remove=remove, topic_id=topic_id)]


def _changes(known: TopicThrottle, demand: Demand, read: Read, topic: str) -> tuple[Entries, Entries]:
    """Say what to add and remove; what a write may have put into either incarnation is removed in the end."""
    wanted = demand.topics.get(topic)
    asked = _NOTHING if wanted is None else wanted
    remove = Entries(
        tuple(entry for entry in known.present.leader if entry not in asked.leader),
        tuple(entry for entry in known.present.follower if entry not in asked.follower),
    )
    in_force = known.present if wanted is not None and known.topic_id == wanted.topic_id else NO_ENTRIES
    missing = _missing(Entries(tuple(asked.leader), tuple(asked.follower)), in_force, read, topic)
    return Entries(tuple(sorted(missing.leader)), tuple(sorted(missing.follower))), remove


def _missing(asked: Entries, present: Entries, read: Read, topic: str) -> Entries:
    """Asked entries that are neither Drover's own nor somebody else's: only these are added, and later removed."""
    found = read.topics.get(topic)
    leader = (*present.leader, *(found.leader if found is not None else ()))
    follower = (*present.follower, *(found.follower if found is not None else ()))
    return Entries(_without(asked.leader, leader), _without(asked.follower, follower))


def _without(asked: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    if len(asked) > 8:
        present = set(known)
        return tuple(entry for entry in asked if entry not in present)
    return tuple(entry for entry in asked if entry not in known)
