"""The fold of the throttle ledger: Drover's throttles on brokers and topics, and the values before them."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from drover.events import throttles
from drover.events.base import Event
from drover.events.throttles import NO_ENTRIES, NO_RATES, Entries
from drover.state.throttles import BrokerThrottle, ConfigRefusal, ThrottlingState, TopicThrottle

_FEW_ENTRIES = 100


def _broker_intended(state: ThrottlingState, event: throttles.BrokerThrottleIntended, _at_ms: int) -> None:
    entry = state.broker_throttles.get(event.broker)
    baseline = event.found if entry is None else entry.baseline
    state.broker_throttles[event.broker] = BrokerThrottle(
        baseline=baseline,
        intended=event.rates,
        pending=True,
        release=event.release,
        others=None if entry is None else entry.others,
    )


def _broker_set(state: ThrottlingState, event: throttles.BrokerThrottleSet, _at_ms: int) -> None:
    """Settle a write: an entry that was released leaves the ledger."""
    entry = state.broker_throttles[event.broker]
    if entry.release:
        del state.broker_throttles[event.broker]
    else:
        state.broker_throttles[event.broker] = replace(entry, pending=False, refusal=None)


def _broker_refused(state: ThrottlingState, event: throttles.BrokerThrottleRefused, at_ms: int) -> None:
    entry = state.broker_throttles[event.broker]
    refusal = _refusal(entry.refusal, event, at_ms)
    state.broker_throttles[event.broker] = replace(entry, refusal=refusal)


def _broker_left(state: ThrottlingState, event: throttles.BrokerThrottleLeft, _at_ms: int) -> None:
    state.broker_throttles.pop(event.broker, None)


def _broker_changed(state: ThrottlingState, event: throttles.BrokerThrottleChanged, at_ms: int) -> None:
    entry = state.broker_throttles[event.broker]
    state.broker_throttles[event.broker] = entry.changed_to(event.found, event.bytes_per_second, at_ms)


def _broker_adopted(state: ThrottlingState, event: throttles.BrokerThrottleAdopted, _at_ms: int) -> None:
    """Adopt existing rates as Drover's, with no previous value; no move needs them, so they are released next."""
    adopted = BrokerThrottle(baseline=NO_RATES, intended=event.found, pending=False, release=False)
    state.broker_throttles[event.broker] = adopted


def _topic_adopted(state: ThrottlingState, event: throttles.TopicThrottleAdopted, _at_ms: int) -> None:
    topic = state.topic_throttles.get(event.topic, TopicThrottle())
    present = Entries(
        _changed(topic.present.leader, event.found.leader, ()),
        _changed(topic.present.follower, event.found.follower, ()),
    )
    state.topic_throttles[event.topic] = replace(topic, present=present)


def _topic_intended(state: ThrottlingState, event: throttles.TopicThrottleIntended, _at_ms: int) -> None:
    topic = state.topic_throttles.get(event.topic, TopicThrottle())
    state.topic_throttles[event.topic] = replace(
        topic, add=event.add, remove=event.remove, pending=True, left=False, topic_id=event.topic_id, refusal=None
    )


def _topic_refused(state: ThrottlingState, event: throttles.TopicThrottleRefused, at_ms: int) -> None:
    topic = state.topic_throttles[event.topic]
    state.topic_throttles[event.topic] = replace(topic, refusal=_refusal(topic.refusal, event, at_ms))


def _refusal(
    before: ConfigRefusal | None, event: throttles.BrokerThrottleRefused | throttles.TopicThrottleRefused, at_ms: int
) -> ConfigRefusal:
    """Return the refusal of a write; its start stays the same even if Kafka's message changes."""
    return ConfigRefusal(event.code, event.message, at_ms if before is None else before.since_ms)


def _topic_set(state: ThrottlingState, event: throttles.TopicThrottleSet, _at_ms: int) -> None:
    topic = _settled(state.topic_throttles[event.topic])
    if topic.present == NO_ENTRIES:
        del state.topic_throttles[event.topic]
    else:
        state.topic_throttles[event.topic] = topic


def _topic_left(state: ThrottlingState, event: throttles.TopicThrottleLeft, _at_ms: int) -> None:
    """Leave a topic alone; its entries from before a refused change are still Drover's to remove."""
    topic = state.topic_throttles.get(event.topic)
    present = topic.present if event.refused and topic is not None else NO_ENTRIES
    state.topic_throttles[event.topic] = TopicThrottle(present=present, left=True, topic_id=event.topic_id)


def _topic_changed(state: ThrottlingState, event: throttles.TopicThrottleChanged, at_ms: int) -> None:
    topic = state.topic_throttles[event.topic]
    state.topic_throttles[event.topic] = replace(
        topic,
        present=without(topic.present, event.gone),
        times_deleted=topic.times_deleted + 1,
        deleted_ms=at_ms,
    )


def without(entries: Entries, gone: Entries) -> Entries:
    """Return the entries of both lists that are not gone."""
    return Entries(_changed(entries.leader, (), gone.leader), _changed(entries.follower, (), gone.follower))


def _settled(topic: TopicThrottle) -> TopicThrottle:
    present = Entries(
        leader=_changed(topic.present.leader, topic.add.leader, topic.remove.leader),
        follower=_changed(topic.present.follower, topic.add.follower, topic.remove.follower),
    )
    return replace(topic, present=present, add=NO_ENTRIES, remove=NO_ENTRIES, pending=False, left=False, refusal=None)


def _changed(present: tuple[str, ...], add: tuple[str, ...], remove: tuple[str, ...]) -> tuple[str, ...]:
    """Keep the entries sorted, so that equal ledgers are equal values."""
    if not add and not remove:
        return present
    if len(add) + len(remove) > _FEW_ENTRIES:
        gone = {*remove}
        kept = [entry for entry in present if entry not in gone]
        gone.update(kept)
        # `sorted` merges two runs that are in order already.
        return tuple(sorted([*kept, *(entry for entry in dict.fromkeys(add) if entry not in gone)]))
    # A list of thousands of entries changes by a few at a time.
    entries = list(present)
    for entry in remove:
        place = bisect_left(entries, entry)
        if entries[place : place + 1] == [entry]:
            del entries[place]
    for entry in add:
        place = bisect_left(entries, entry)
        if entries[place : place + 1] != [entry] and entry not in remove:
            entries.insert(place, entry)
    return tuple(entries)


APPLYING: Mapping[type[Event], Callable[[Any, Any, int], None]] = {
    throttles.BrokerThrottleIntended: _broker_intended,
    throttles.BrokerThrottleSet: _broker_set,
    throttles.BrokerThrottleRefused: _broker_refused,
    throttles.BrokerThrottleLeft: _broker_left,
    throttles.BrokerThrottleChanged: _broker_changed,
    throttles.BrokerThrottleAdopted: _broker_adopted,
    throttles.TopicThrottleIntended: _topic_intended,
    throttles.TopicThrottleSet: _topic_set,
    throttles.TopicThrottleRefused: _topic_refused,
    throttles.TopicThrottleLeft: _topic_left,
    throttles.TopicThrottleChanged: _topic_changed,
    throttles.TopicThrottleAdopted: _topic_adopted,
}
