"""The throttle ledger's rules: what must be read and written for the throttles that the moves in flight need.

What is wanted follows from the reassignments that hold a step now, so a throttle goes with its last user. Everything is
read just before it is written. Earlier values are recorded and put back exactly; what somebody else changed meanwhile
is left alone (S10, X14).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from drover.facts import BrokerRates, ThrottledReplicas
from drover.reassignment.state import Reassignment
from drover.throttling.demand import Demand, TopicDemand, holds
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
_UNTOUCHED = TopicThrottle()
_FEW_ENTRIES = 20


@dataclass(frozen=True, slots=True)
class Read:
    """Settings read since the last write to the same broker or topic; anything missing must be read first."""

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
    known, found = state.topic_throttles.get(topic, _UNTOUCHED), read.topics.get(topic)
    if topic in state.topic_throttles and known.topic_id != demand.topics[topic].topic_id:
        return False
    leader, follower = ((), ()) if found is None else (found.leader, found.follower)
    # This is asked for every prepared step at every change of the throttles: no sets are made for it.
    is_there = all(
        holds(known.present.leader, entry) or entry in leader
        for entry in (f"{partition}:{broker}" for broker in step.expected)
    ) and all(
        holds(known.present.follower, entry) or entry in follower
        for entry in (f"{partition}:{broker}" for broker in step.adding)
    )
    return known.left or (not known.pending and is_there)


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
        known, wanted = state.topic_throttles.get(topic, _UNTOUCHED), demand.topics.get(topic)
        if known.pending:
            # It is compared when the write has its answer: until then nobody knows what is there.
            continue
        changes = _changes(known, wanted, read, topic)
        if not _topic_is_due(known, wanted, changes):
            continue
        if topic not in read.topics and wanted is not None:
            read_topics.append(topic)
        else:
            events.append(_topic_event(state.name, topic, known, wanted, read, changes))
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


def _topic_is_due(known: TopicThrottle, wanted: TopicDemand | None, changes: tuple[Entries, Entries]) -> bool:
    if wanted is None:
        return known.left or known.present != NO_ENTRIES
    if known.topic_id != wanted.topic_id and known != _UNTOUCHED:
        # The topic was created anew: whatever Drover had put there, or left alone, went with the old one.
        return True
    return not known.left and changes != (NO_ENTRIES, NO_ENTRIES)


def _topic_event(
    cluster: str,
    topic: str,
    known: TopicThrottle,
    wanted: TopicDemand | None,
    read: Read,
    changes: tuple[Entries, Entries],
) -> ThrottleEvent:
    if known.left and wanted is None:
        # Nobody needs the topic any more: the note that it was left alone goes.
        return TopicThrottleSet(cluster=cluster, topic=topic)
    topic_id = known.topic_id if wanted is None else wanted.topic_id
    found = read.topics.get(topic)
    detail = None
    if topic in read.topics and found is None:
        detail = "the topic does not exist"
    elif found is not None and EVERY_REPLICA in (*found.leader, *found.follower):
        detail = "the topic is throttled by *, which Drover never touches"
    if detail is not None:
        return TopicThrottleLeft(cluster=cluster, topic=topic, detail=detail, topic_id=topic_id)
    add, remove = changes
    return TopicThrottleIntended(cluster=cluster, topic=topic, add=add, remove=remove, topic_id=topic_id)


def _changes(known: TopicThrottle, wanted: TopicDemand | None, read: Read, topic: str) -> tuple[Entries, Entries]:
    """Say what is to be added and removed; what a write may have put into either incarnation is removed in the end.

    Entries that are neither Drover's own nor somebody else's are added, and only these are later removed.
    """
    if wanted is None:
        return NO_ENTRIES, known.present
    if known.topic_id != wanted.topic_id:
        # Nothing of what was put into the earlier incarnation is there; all of it goes, in the end.
        needed = Entries(tuple(sorted(wanted.leader)), tuple(sorted(wanted.follower)))
        surplus = Entries(
            _without(known.present.leader, wanted.leader), _without(known.present.follower, wanted.follower)
        )
    else:
        needed, surplus = wanted.differences(known.present)
    found = read.topics.get(topic)
    if found is not None:
        needed = Entries(_without(needed.leader, found.leader), _without(needed.follower, found.follower))
    return needed, surplus


def _without(entries: tuple[str, ...], gone: Collection[str]) -> tuple[str, ...]:
    """List the entries that are not gone."""
    # For a few entries a look through a long list costs less than a set of it.
    absent = gone if len(entries) <= _FEW_ENTRIES else frozenset(gone)
    return tuple(entry for entry in entries if entry not in absent)
