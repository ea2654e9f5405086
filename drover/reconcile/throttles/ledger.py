"""The throttle ledger's rules: what must be read and written for the throttles that the moves in flight need.

What is wanted follows from the reassignments that hold a step now, so a throttle goes with its last user. Everything is
read just before it is written. Earlier values are recorded and put back exactly; what somebody else changed meanwhile
is left alone (S10, X14).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from drover.brokers import Brokers
from drover.events.records import ThrottleEvent
from drover.events.throttles import (
    NO_ENTRIES,
    BrokerThrottleChanged,
    BrokerThrottleIntended,
    BrokerThrottleLeft,
    BrokerThrottleSet,
    Entries,
    Rates,
    TopicThrottleChanged,
    TopicThrottleIntended,
    TopicThrottleLeft,
    TopicThrottleSet,
)
from drover.facts import BrokerRates
from drover.fold.throttles import without
from drover.reconcile.throttles.demand import Demand, TopicDemand, holds
from drover.reconcile.throttles.found_entries import FoundEntries
from drover.state.reassignment import Reassignment, Step
from drover.state.throttles import BrokerThrottle, ThrottlingState, TopicThrottle

_UNTOUCHED = TopicThrottle()


@dataclass(frozen=True, slots=True)
class Read:
    """Settings read since the last write to the same broker or topic; anything missing must be read first.

    A topic with None is one that the broker that was asked does not know: it is gone, or that broker is behind.
    `refused` are topics whose lists Kafka has refused to change: they are not tried again. `removable` says which
    entries of a topic every broker knows to be there: others are removed a little later.
    """

    brokers: Mapping[int, BrokerRates] = field(default_factory=dict)
    topics: Mapping[str, FoundEntries | None] = field(default_factory=dict)
    refused: Collection[str] = ()
    removable: Callable[[str, Entries], Entries] = lambda _topic, entries: entries


@dataclass(frozen=True, slots=True)
class ThrottlePlan:
    """Events to record now, what must be read before more can be said, and the topics whose removals may wait.

    `unknown_topics` are needed, but the broker that was asked lately does not know them: they are read again, later.
    `delayed_removals` are topics with entries to remove that were added a moment ago: they are compared again later.
    """

    events: tuple[ThrottleEvent, ...] = ()
    read_brokers: tuple[int, ...] = ()
    read_topics: tuple[str, ...] = ()
    only_removals: tuple[str, ...] = ()
    unknown_topics: tuple[str, ...] = ()
    delayed_removals: tuple[str, ...] = ()


def is_ready(
    reassignment: Reassignment, state: ThrottlingState, demand: Demand, live: Collection[int], read: Read
) -> bool:
    """Whether everything that a prepared step needs is in force.

    `live` are the brokers that Metadata lists: dead ones copy nothing, and an unreachable one takes no rates. A rate
    that somebody else has set over Drover's counts as in force.
    """
    step = reassignment.step
    if step is None or not step.adding:
        return True
    for broker in (*step.expected, *step.adding):
        if broker not in live:
            continue
        entry, rate = state.broker_throttles.get(broker), demand.rate(broker)
        if entry is None or entry.pending or entry.intended != entry.wanted(rate):
            return False
    topic, partition = reassignment.key
    known, found = state.topic_throttles.get(topic, _UNTOUCHED), read.topics.get(topic)
    if topic in state.topic_throttles and known.topic_id != demand.topics[topic].topic_id:
        return False
    return known.left or (not known.pending and _are_there(partition, step, known.present, found))


def _are_there(partition: int, step: Step, present: Entries, found: FoundEntries | None) -> bool:
    """Whether both lists hold a step's entries. This is asked for every prepared step when a throttle changes."""
    for broker in step.expected:
        entry = f"{partition}:{broker}"
        if not (holds(present.leader, entry) or (found is not None and entry in found.leader)):
            return False
    for broker in step.adding:
        entry = f"{partition}:{broker}"
        if not (holds(present.follower, entry) or (found is not None and entry in found.follower)):
            return False
    return True


def plan_throttles(
    state: ThrottlingState,
    demand: Demand,
    live: Collection[int],
    read: Read,
    brokers: Iterable[int],
    topics: Iterable[str],
    overdue: Collection[str] = (),
) -> ThrottlePlan:
    """Compare the ledger with what is wanted on these brokers and topics, and with what was read of them.

    Returns nothing when they agree. What nobody has read lately is taken for what the ledger says. A topic from whose
    lists entries are only to be removed, while others are needed, is named and left as it is, unless it is `overdue`.
    """
    events, read_brokers = _plan_brokers(state, demand, read, [broker for broker in sorted(brokers) if broker in live])
    plan = _TopicPlan(events)
    for topic in sorted(topics):
        _plan_topic(state, demand, read, topic, plan, is_overdue=topic in overdue)
    return ThrottlePlan(
        tuple(plan.events),
        tuple(read_brokers),
        tuple(plan.to_read),
        tuple(plan.only_removals),
        tuple(plan.unknown),
        tuple(plan.delayed_removals),
    )


def given_up(state: ThrottlingState, brokers: Brokers) -> Iterator[BrokerThrottleLeft]:
    """Give up what is owed to brokers that Kafka has no registration for: their settings cannot be written."""
    if brokers.live.issuperset(state.broker_throttles):
        return
    for broker in brokers.unregistered(sorted(state.broker_throttles)):
        found = state.broker_throttles[broker].intended
        yield BrokerThrottleLeft(cluster=state.name, broker=broker, found=found, unregistered=True)


@dataclass(frozen=True, slots=True)
class _TopicPlan:
    """The topics' part of a `ThrottlePlan` while it is being made."""

    events: list[ThrottleEvent]
    to_read: list[str] = field(default_factory=list)
    only_removals: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    delayed_removals: list[str] = field(default_factory=list)


def _plan_topic(
    state: ThrottlingState, demand: Demand, read: Read, topic: str, plan: _TopicPlan, *, is_overdue: bool
) -> None:
    known, wanted = state.topic_throttles.get(topic, _UNTOUCHED), demand.topics.get(topic)
    if known.pending and known.refusal is None:
        # It is compared when the write has its answer: until then nobody knows what is there.
        return
    gone = NO_ENTRIES if known.refusal is not None else _gone(known, wanted, read, topic)
    remaining = known
    if wanted is not None and gone != NO_ENTRIES:
        wanted.change(gone.leader, gone.follower)
        remaining = replace(known, present=without(known.present, gone))
    changes = _changes(remaining, wanted, read, topic)
    if not _topic_is_due(known, wanted, changes, read, topic):
        return
    if not is_overdue and gone == NO_ENTRIES and _only_removes(known, wanted, changes, read, topic):
        plan.only_removals.append(topic)
        return
    if wanted is not None and read.topics.get(topic) is None:
        # A topic that moves is there, or its moves end soon; a broker may not have heard of a new one.
        (plan.unknown if topic in read.topics else plan.to_read).append(topic)
        return
    possible = changes[0], read.removable(topic, changes[1])
    if possible != changes:
        plan.delayed_removals.append(topic)
        if gone == NO_ENTRIES and not _topic_is_due(known, wanted, possible, read, topic):
            return
    if _is_refused_already(known, wanted, possible):
        return
    if gone != NO_ENTRIES:
        plan.events.append(TopicThrottleChanged(cluster=state.name, topic=topic, gone=gone))
    plan.events.append(_topic_event(state.name, topic, known, wanted, read, possible))


def _is_refused_already(known: TopicThrottle, wanted: TopicDemand | None, changes: tuple[Entries, Entries]) -> bool:
    """Whether these changes are the ones that Kafka has refused: they are tried again without another intent."""
    is_same_topic = wanted is None or known.topic_id == wanted.topic_id
    return known.refusal is not None and is_same_topic and changes == (known.add, known.remove)


def _plan_brokers(
    state: ThrottlingState, demand: Demand, read: Read, brokers: Iterable[int]
) -> tuple[list[ThrottleEvent], list[int]]:
    """Return the events about these brokers, and those that must be read first."""
    events: list[ThrottleEvent] = []
    read_brokers: list[int] = []
    for broker in brokers:
        entry, rate = state.broker_throttles.get(broker), demand.rate(broker)
        found = read.brokers.get(broker)
        if not _broker_is_due(entry, rate, found):
            continue
        if found is None:
            read_brokers.append(broker)
        else:
            events += _broker_events(state.name, broker, entry, rate, _rates(found))
    return events, read_brokers


def _broker_is_due(entry: BrokerThrottle | None, rate: int | None, found: BrokerRates | None) -> bool:
    if entry is None:
        return rate is not None
    if entry.refusal is not None:
        # Nothing was written: what is wanted may change at once, and somebody else may have set it.
        is_outdated = entry.intended != entry.wanted(rate) or entry.release != (rate is None)
        return is_outdated or (found is not None and _rates(found) == entry.intended)
    if entry.pending:
        # Releases are overtaken by a new user; anything else waits for its own answer.
        return False
    return (
        rate is None or entry.intended != entry.wanted(rate) or (found is not None and _rates(found) != entry.intended)
    )


def _rates(found: BrokerRates) -> Rates:
    return Rates(found.leader_bytes_per_second, found.follower_bytes_per_second)


def _broker_events(
    cluster: str, broker: int, entry: BrokerThrottle | None, rate: int | None, seen: Rates
) -> Iterator[ThrottleEvent]:
    """Say what others have done, and what is to be written because of it, or because the demand has changed."""
    if entry is None:
        assert rate is not None, f"broker {broker} has nothing to release"
        yield BrokerThrottleIntended(cluster=cluster, broker=broker, rates=Rates(rate, rate), found=seen)
        return
    if entry.refusal is not None:
        yield from _events_after_refusal(cluster, broker, entry, rate, seen)
        return
    # When others did it is recorded by the fold, and decides nothing.
    after = entry if seen == entry.intended else entry.changed_to(seen, rate, at_ms=0)
    rates = after.wanted(rate)
    if rate is None:
        if rates == seen and after.others is not None:
            yield BrokerThrottleLeft(cluster=cluster, broker=broker, found=seen)
        else:
            # Where somebody changed one rate of the two, theirs stays and the other goes back to what it was.
            yield BrokerThrottleIntended(cluster=cluster, broker=broker, rates=rates, found=seen, release=True)
        return
    if seen != entry.intended:
        yield BrokerThrottleChanged(cluster=cluster, broker=broker, found=seen, bytes_per_second=rate)
    if rates != seen:
        yield BrokerThrottleIntended(cluster=cluster, broker=broker, rates=rates, found=seen)


def _events_after_refusal(
    cluster: str, broker: int, entry: BrokerThrottle, rate: int | None, seen: Rates
) -> Iterator[ThrottleEvent]:
    """Say what follows for a broker of which Kafka has refused the last write: what is there is from before that."""
    rates = entry.wanted(rate)
    if rates != entry.intended or entry.release != (rate is None):
        if rate is None and rates == seen:
            yield BrokerThrottleLeft(cluster=cluster, broker=broker, found=seen)
            return
        yield BrokerThrottleIntended(cluster=cluster, broker=broker, rates=rates, found=seen, release=rate is None)
    if rates == seen:
        yield BrokerThrottleSet(cluster=cluster, broker=broker)


def _topic_is_due(
    known: TopicThrottle, wanted: TopicDemand | None, changes: tuple[Entries, Entries], read: Read, topic: str
) -> bool:
    if known.refusal is not None:
        return not _is_refused_already(known, wanted, changes)
    if wanted is None:
        return changes[1] != NO_ENTRIES or (known.left and known.present == NO_ENTRIES)
    if known.topic_id != wanted.topic_id and known != _UNTOUCHED:
        # The topic was created anew: whatever Drover had put there, or left alone, went with the old one.
        return True
    found = read.topics.get(topic)
    if known.left:
        # It may be left alone no longer: somebody has taken their `*` away.
        return found is not None and topic not in read.refused and not found.has_star
    return changes != (NO_ENTRIES, NO_ENTRIES) or (known.present != NO_ENTRIES and _has_star(found))


def _only_removes(
    known: TopicThrottle, wanted: TopicDemand | None, changes: tuple[Entries, Entries], read: Read, topic: str
) -> bool:
    """Whether all that is to do is to remove entries from lists that hold others that are needed."""
    if wanted is None or known.left or known.topic_id != wanted.topic_id or _has_star(read.topics.get(topic)):
        return False
    return changes[0] == NO_ENTRIES


def _topic_event(
    cluster: str,
    topic: str,
    known: TopicThrottle,
    wanted: TopicDemand | None,
    read: Read,
    changes: tuple[Entries, Entries],
) -> ThrottleEvent:
    if known.left and wanted is None and known.present == NO_ENTRIES:
        # Nobody needs the topic any more: the note that it was left alone goes.
        return TopicThrottleSet(cluster=cluster, topic=topic)
    topic_id = known.topic_id if wanted is None else wanted.topic_id
    found = read.topics.get(topic)
    detail = None
    if topic in read.topics and found is None:
        detail = "the topic does not exist"
    elif _has_star(found):
        if known.present != NO_ENTRIES:
            # Drover's own entries go first: the other list may still hold them.
            return TopicThrottleIntended(cluster=cluster, topic=topic, remove=known.present, topic_id=topic_id)
        detail = "the topic is throttled by *, which Drover never touches"
    if detail is not None:
        return TopicThrottleLeft(cluster=cluster, topic=topic, detail=detail, topic_id=topic_id)
    add, remove = changes
    return TopicThrottleIntended(cluster=cluster, topic=topic, add=add, remove=remove, topic_id=topic_id)


def _has_star(found: FoundEntries | None) -> bool:
    return found is not None and found.has_star


def _gone(known: TopicThrottle, wanted: TopicDemand | None, read: Read, topic: str) -> Entries:
    """Say which entries of Drover's are needed and not there any more."""
    found = read.topics.get(topic)
    if found is None or wanted is None or known.topic_id != wanted.topic_id or found.has_star:
        return NO_ENTRIES
    return Entries(
        tuple(entry for entry in _without(known.present.leader, found.leader) if entry in wanted.leader),
        tuple(entry for entry in _without(known.present.follower, found.follower) if entry in wanted.follower),
    )


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


def _without(entries: tuple[str, ...], gone: set[str] | frozenset[str]) -> tuple[str, ...]:
    """List the entries that are not gone; there may be thousands, and mostly nothing is left."""
    return () if gone.issuperset(entries) else tuple(entry for entry in entries if entry not in gone)
