"""The throttle ledger's rules: the reads and writes for the throttles that moves in flight need.

The demand follows from the reassignments that hold a step now, so that a throttle ends with its last user. Settings are
read just before they are written. Earlier values are recorded and put back exactly; a value that another client has
changed meanwhile is left alone (S10, X14).
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
from drover.reconcile.throttles.shown_settings import ShownEntries, shown_rates
from drover.state.reassignment import Reassignment, Step
from drover.state.throttles import BrokerThrottle, ThrottlingState, TopicThrottle

_UNTOUCHED = TopicThrottle()


@dataclass(frozen=True, slots=True)
class Read:
    """Settings read since the last write to the same broker or topic; anything missing must be read first.

    None for a topic means that the broker that was asked does not know it: the topic is gone, or that broker lags.
    `refused` are topics whose lists Kafka has refused to change: they are not tried again. `removable` returns the
    entries of a topic that every broker shows by now: others are removed a little later.
    """

    brokers: Mapping[int, BrokerRates] = field(default_factory=dict)
    topics: Mapping[str, ShownEntries | None] = field(default_factory=dict)
    refused: Collection[str] = ()
    removable: Callable[[str, Entries], Entries] = lambda _topic, entries: entries


@dataclass(frozen=True, slots=True)
class ThrottlePlan:
    """Events to record now, settings to read before the rest can be planned, and topics whose removals may wait.

    `unknown_topics` are needed, but the broker that was asked last does not know them: they are read again later.
    `delayed_removals` are topics with entries to remove that were just added: they are compared again later.
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
    """Whether every throttle that a prepared step needs is in force.

    `live` are the brokers that Metadata lists: dead ones copy nothing, and an unreachable one takes no rates. A rate
    that another client has set over Drover's counts as in force.
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
    throttle, shown = state.topic_throttles.get(topic, _UNTOUCHED), read.topics.get(topic)
    if topic in state.topic_throttles and throttle.topic_id != demand.topics[topic].topic_id:
        return False
    return throttle.left or (not throttle.pending and _are_there(partition, step, throttle.present, shown))


def _are_there(partition: int, step: Step, present: Entries, shown: ShownEntries | None) -> bool:
    """Whether both lists hold a step's entries; called for every prepared step when a throttle changes."""
    for broker in step.expected:
        entry = f"{partition}:{broker}"
        if not (holds(present.leader, entry) or (shown is not None and entry in shown.leader)):
            return False
    for broker in step.adding:
        entry = f"{partition}:{broker}"
        if not (holds(present.follower, entry) or (shown is not None and entry in shown.follower)):
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
    """Compare the ledger of these brokers and topics with the demand, and with the settings that were read.

    The plan is empty when they agree. A setting without a recent reading is taken from the ledger. A topic whose lists
    only have entries to remove, while others are needed, is named and left as it is, unless it is `overdue`.
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
    """Give up the rates of brokers that Kafka has no registration for: their settings cannot be written."""
    if brokers.live.issuperset(state.broker_throttles):
        return
    for broker in brokers.unregistered(sorted(state.broker_throttles)):
        rates = state.broker_throttles[broker].intended
        yield BrokerThrottleLeft(cluster=state.name, broker=broker, found=rates, unregistered=True)


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
    throttle, wanted = state.topic_throttles.get(topic, _UNTOUCHED), demand.topics.get(topic)
    if throttle.pending and throttle.refusal is None:
        # It is compared once the write is answered: until then its lists are uncertain.
        return
    gone = NO_ENTRIES if throttle.refusal is not None else _gone(throttle, wanted, read, topic)
    remaining = throttle
    if wanted is not None and gone != NO_ENTRIES:
        wanted.change(gone.leader, gone.follower)
        remaining = replace(throttle, present=without(throttle.present, gone))
    changes = _changes(remaining, wanted, read, topic)
    if not _topic_is_due(throttle, wanted, changes, read, topic):
        return
    if not is_overdue and gone == NO_ENTRIES and _only_removes(throttle, wanted, changes, read, topic):
        plan.only_removals.append(topic)
        return
    if wanted is not None and read.topics.get(topic) is None:
        # A topic with moves exists, or its moves end soon; a lagging broker may not know a new one.
        (plan.unknown if topic in read.topics else plan.to_read).append(topic)
        return
    possible = changes[0], read.removable(topic, changes[1])
    if possible != changes:
        plan.delayed_removals.append(topic)
        if gone == NO_ENTRIES and not _topic_is_due(throttle, wanted, possible, read, topic):
            return
    if _is_refused_already(throttle, wanted, possible):
        return
    if gone != NO_ENTRIES:
        plan.events.append(TopicThrottleChanged(cluster=state.name, topic=topic, gone=gone))
    plan.events.append(_topic_event(state.name, topic, throttle, wanted, read, possible))


def _is_refused_already(throttle: TopicThrottle, wanted: TopicDemand | None, changes: tuple[Entries, Entries]) -> bool:
    """Whether these changes are the ones that Kafka has refused: they are tried again without another intent."""
    is_same_topic = wanted is None or throttle.topic_id == wanted.topic_id
    return throttle.refusal is not None and is_same_topic and changes == (throttle.add, throttle.remove)


def _plan_brokers(
    state: ThrottlingState, demand: Demand, read: Read, brokers: Iterable[int]
) -> tuple[list[ThrottleEvent], list[int]]:
    """Return the events about these brokers, and those that must be read first."""
    events: list[ThrottleEvent] = []
    read_brokers: list[int] = []
    for broker in brokers:
        entry, rate = state.broker_throttles.get(broker), demand.rate(broker)
        shown = read.brokers.get(broker)
        if not _broker_is_due(entry, rate, shown):
            continue
        if shown is None:
            read_brokers.append(broker)
        else:
            events += _broker_events(state.name, broker, entry, rate, shown_rates(shown))
    return events, read_brokers


def _broker_is_due(entry: BrokerThrottle | None, rate: int | None, shown: BrokerRates | None) -> bool:
    if entry is None:
        return rate is not None
    if entry.refusal is not None:
        # Nothing was written: the demand may change at once, and another client may have set the rates.
        is_outdated = entry.intended != entry.wanted(rate) or entry.release != (rate is None)
        return is_outdated or (shown is not None and shown_rates(shown) == entry.intended)
    if entry.pending:
        # The write waits for its answer.
        return False
    return (
        rate is None
        or entry.intended != entry.wanted(rate)
        or (shown is not None and shown_rates(shown) != entry.intended)
    )


def _broker_events(
    cluster: str, broker: int, entry: BrokerThrottle | None, rate: int | None, seen: Rates
) -> Iterator[ThrottleEvent]:
    """Yield changes by other clients, and the writes that follow from them or from a changed demand."""
    if entry is None:
        assert rate is not None, f"broker {broker} has nothing to release"
        yield BrokerThrottleIntended(cluster=cluster, broker=broker, rates=Rates(rate, rate), found=seen)
        return
    if entry.refusal is not None:
        yield from _events_after_refusal(cluster, broker, entry, rate, seen)
        return
    # The fold records when others changed it; here the time has no effect.
    after = entry if seen == entry.intended else entry.changed_to(seen, rate, at_ms=0)
    rates = after.wanted(rate)
    if rate is None:
        if rates == seen and after.others is not None:
            yield BrokerThrottleLeft(cluster=cluster, broker=broker, found=seen)
        else:
            # If another client changed one of the two rates, that one stays, and the other gets its earlier value back.
            yield BrokerThrottleIntended(cluster=cluster, broker=broker, rates=rates, found=seen, release=True)
        return
    if seen != entry.intended:
        yield BrokerThrottleChanged(cluster=cluster, broker=broker, found=seen, bytes_per_second=rate)
    if rates != seen:
        yield BrokerThrottleIntended(cluster=cluster, broker=broker, rates=rates, found=seen)


def _events_after_refusal(
    cluster: str, broker: int, entry: BrokerThrottle, rate: int | None, seen: Rates
) -> Iterator[ThrottleEvent]:
    """Yield the events of a broker whose last write Kafka has refused: its rates are from before that write."""
    rates = entry.wanted(rate)
    if rates != entry.intended or entry.release != (rate is None):
        if rate is None and rates == seen:
            yield BrokerThrottleLeft(cluster=cluster, broker=broker, found=seen)
            return
        yield BrokerThrottleIntended(cluster=cluster, broker=broker, rates=rates, found=seen, release=rate is None)
    if rates == seen:
        yield BrokerThrottleSet(cluster=cluster, broker=broker)


def _topic_is_due(
    throttle: TopicThrottle, wanted: TopicDemand | None, changes: tuple[Entries, Entries], read: Read, topic: str
) -> bool:
    if throttle.refusal is not None:
        return not _is_refused_already(throttle, wanted, changes)
    if wanted is None:
        return changes[1] != NO_ENTRIES or (throttle.left and throttle.present == NO_ENTRIES)
    if throttle.topic_id != wanted.topic_id and throttle != _UNTOUCHED:
        # The topic was created anew: its earlier lists, Drover's entries and others, are gone.
        return True
    shown = read.topics.get(topic)
    if throttle.left:
        # It is left alone no longer once the other client's `*` is gone.
        return shown is not None and topic not in read.refused and not shown.has_star
    return changes != (NO_ENTRIES, NO_ENTRIES) or (throttle.present != NO_ENTRIES and _has_star(shown))


def _only_removes(
    throttle: TopicThrottle, wanted: TopicDemand | None, changes: tuple[Entries, Entries], read: Read, topic: str
) -> bool:
    """Whether the only change is to remove entries from lists whose other entries are needed."""
    if wanted is None or throttle.left or throttle.topic_id != wanted.topic_id or _has_star(read.topics.get(topic)):
        return False
    return changes[0] == NO_ENTRIES


def _topic_event(
    cluster: str,
    topic: str,
    throttle: TopicThrottle,
    wanted: TopicDemand | None,
    read: Read,
    changes: tuple[Entries, Entries],
) -> ThrottleEvent:
    if throttle.left and wanted is None and throttle.present == NO_ENTRIES:
        # No move needs the topic any more: the note that it was left alone is dropped.
        return TopicThrottleSet(cluster=cluster, topic=topic)
    topic_id = throttle.topic_id if wanted is None else wanted.topic_id
    shown = read.topics.get(topic)
    detail = None
    if topic in read.topics and shown is None:
        detail = "the topic does not exist"
    elif _has_star(shown):
        if throttle.present != NO_ENTRIES:
            # Drover's own entries go first: the other list may still hold them.
            return TopicThrottleIntended(cluster=cluster, topic=topic, remove=throttle.present, topic_id=topic_id)
        detail = "the topic is throttled by *, which Drover never touches"
    if detail is not None:
        return TopicThrottleLeft(cluster=cluster, topic=topic, detail=detail, topic_id=topic_id)
    add, remove = changes
    return TopicThrottleIntended(cluster=cluster, topic=topic, add=add, remove=remove, topic_id=topic_id)


def _has_star(shown: ShownEntries | None) -> bool:
    return shown is not None and shown.has_star


def _gone(throttle: TopicThrottle, wanted: TopicDemand | None, read: Read, topic: str) -> Entries:
    """Return Drover's entries that are needed and that another client has removed."""
    shown = read.topics.get(topic)
    if shown is None or wanted is None or throttle.topic_id != wanted.topic_id or shown.has_star:
        return NO_ENTRIES
    return Entries(
        tuple(entry for entry in _without(throttle.present.leader, shown.leader) if entry in wanted.leader),
        tuple(entry for entry in _without(throttle.present.follower, shown.follower) if entry in wanted.follower),
    )


def _changes(throttle: TopicThrottle, wanted: TopicDemand | None, read: Read, topic: str) -> tuple[Entries, Entries]:
    """Return the entries to add and to remove; entries that a write may have put into either incarnation are removed.

    Needed entries are added unless another client's list has them already; only added ones are later removed.
    """
    if wanted is None:
        return NO_ENTRIES, throttle.present
    if throttle.topic_id != wanted.topic_id:
        # The new incarnation has no entries of Drover's yet; those of the earlier one are removed unless needed.
        needed = Entries(tuple(sorted(wanted.leader)), tuple(sorted(wanted.follower)))
        surplus = Entries(
            _without(throttle.present.leader, wanted.leader), _without(throttle.present.follower, wanted.follower)
        )
    else:
        needed, surplus = wanted.differences(throttle.present)
    shown = read.topics.get(topic)
    if shown is not None:
        needed = Entries(_without(needed.leader, shown.leader), _without(needed.follower, shown.follower))
    return needed, surplus


def _without(entries: tuple[str, ...], gone: set[str] | frozenset[str]) -> tuple[str, ...]:
    """Return the entries that are not in `gone`; there may be thousands, and mostly none is left."""
    return () if gone.issuperset(entries) else tuple(entry for entry in entries if entry not in gone)
