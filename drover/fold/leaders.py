"""The fold of leadership: the list, canonical orders, elections, balances, counts."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from drover.events import leadership
from drover.events.base import Event
from drover.events.brokers import BlacklistSet
from drover.events.leadership import ElectionOutcome, ListedBroker, OrderOutcome
from drover.events.partitions import TopicPartition
from drover.state.leaders import (
    Balance,
    Election,
    IntendedOrder,
    KeptOrder,
    LeadershipState,
    LeaderTally,
    LeaderWait,
    Listing,
)


def _set(state: LeadershipState, event: BlacklistSet, at_ms: int) -> None:
    entries = {entry.broker: entry for entry in event.entries}
    before = state.listings
    state.blacklist = event.brokers
    state.listings = {
        broker: _listing(before.get(broker), entries.get(broker), event, at_ms) for broker in event.brokers
    }
    state.index_the_list()
    _reconsider_orders_left_alone(state, before)


def _listing(listing: Listing | None, entry: ListedBroker | None, event: BlacklistSet, at_ms: int) -> Listing:
    """Return the listing of a broker; author and start stay the same if the entry does not change."""
    if entry is None:
        entry = ListedBroker(broker=0)
    until_ms = entry.until_ms
    if until_ms is None and entry.for_ms is not None:
        until_ms = at_ms + entry.for_ms
    ends = (until_ms, entry.until_in_sync)
    is_same = listing is not None and (listing.topics, listing.ends) == (entry.topics, ends)
    if listing is not None and is_same and entry.reason in {"", listing.reason}:
        return listing
    return Listing(event.by, entry.reason or event.reason, at_ms, entry.topics, *ends)


def _reconsider_orders_left_alone(state: LeadershipState, before: Mapping[int, Listing]) -> None:
    """Reconsider lists that were left alone, because the list of brokers for their topics has changed."""
    changed = {
        broker for broker in before.keys() | state.listings.keys() if before.get(broker) != state.listings.get(broker)
    }
    for key, kept in tuple(state.orders.items()):
        if kept.left_alone and not changed.isdisjoint(kept.replicas):
            del state.orders[key]


def _kept(state: LeadershipState, event: leadership.LeaderOrderKept, at_ms: int) -> None:
    state.waiting.pop(event.key, None)
    state.orders[event.key] = KeptOrder(event.topic_id, event.canonical, event.replicas, at_ms)


def _changed(state: LeadershipState, event: leadership.LeaderOrderChanged, at_ms: int) -> None:
    state.waiting.pop(event.key, None)
    state.orders[event.key] = replace(state.orders[event.key], replicas=event.replicas, since_ms=at_ms)


def _left(state: LeadershipState, event: leadership.LeaderOrderLeft, at_ms: int) -> None:
    state.waiting.pop(event.key, None)
    kept = state.orders[event.key]
    state.orders[event.key] = replace(kept, replicas=event.replicas, since_ms=at_ms, left_alone=True)


def _ended(state: LeadershipState, event: leadership.LeaderOrderEnded, _at_ms: int) -> None:
    state.waiting.pop(event.key, None)
    del state.orders[event.key]


def _orders_intended(state: LeadershipState, event: leadership.LeaderOrdersIntended, at_ms: int) -> None:
    orders, intended_orders, waiting, topic_id = state.orders, state.intended_orders, state.waiting, event.topic_id
    for key, change in zip(event.keys, event.changes, strict=True):
        if waiting:
            waiting.pop(key, None)
        kept = orders.get(key)
        if kept is None or kept.replicas != change.expected or kept.topic_id != topic_id:
            orders[key] = KeptOrder(topic_id, change.canonical, change.expected, at_ms)
        intended_orders[key] = IntendedOrder(
            topic_id, change.expected, change.replicas, at_ms, change.elects, change.leader
        )


def _orders_answered(state: LeadershipState, event: leadership.LeaderOrdersAnswered, at_ms: int) -> None:
    orders, intended_orders = state.orders, state.intended_orders
    is_electing, has_no_effect = event.outcome is OrderOutcome.ELECTING, event.outcome is OrderOutcome.NO_EFFECT
    is_there = is_electing or event.outcome is OrderOutcome.REORDERED
    for key in event.keys:
        intended = intended_orders.pop(key)
        if is_electing:
            state.elections[key] = Election(intended.topic_id, intended.replicas, intended.leader, at_ms)
        kept = orders.get(key)
        if kept is None:
            continue
        if is_there:
            orders[key] = KeptOrder(intended.topic_id, kept.canonical, intended.replicas, at_ms)
        elif has_no_effect:
            orders[key] = replace(kept, unresolved=intended.replicas)
    _forget(state, event, at_ms)


def _forget(
    state: LeadershipState, event: leadership.LeaderOrdersAnswered | leadership.LeaderElectionsEnded, at_ms: int
) -> None:
    for number in event.restored:
        key = TopicPartition(event.topic, number)
        state.leave_list(key, state.orders.pop(key).replicas, at_ms)


def _waiting(state: LeadershipState, event: leadership.LeaderWaiting, at_ms: int) -> None:
    state.waiting[event.key] = LeaderWait(event.why, event.detail, at_ms)


def _wait_ended(state: LeadershipState, event: leadership.LeaderWaitEnded, _at_ms: int) -> None:
    del state.waiting[event.key]


def _election_intended(state: LeadershipState, event: leadership.LeaderElectionIntended, at_ms: int) -> None:
    state.waiting.pop(event.key, None)
    state.elections[event.key] = Election(event.topic_id, event.replicas, event.leader, at_ms)


def _election_ended(state: LeadershipState, event: leadership.LeaderElectionEnded, _at_ms: int) -> None:
    del state.elections[event.key]
    balance = state.balance
    if balance is not None and event.outcome is ElectionOutcome.ELECTED:
        state.balance = replace(balance, elected=balance.elected + 1)


def _elections_ended(state: LeadershipState, event: leadership.LeaderElectionsEnded, at_ms: int) -> None:
    for key in event.keys:
        del state.elections[key]
    _forget(state, event, at_ms)
    balance = state.balance
    if balance is not None and event.outcome is ElectionOutcome.ELECTED:
        state.balance = replace(balance, elected=balance.elected + len(event.partitions))


def _balance_begun(state: LeadershipState, event: leadership.LeaderBalanceBegun, at_ms: int) -> None:
    state.balance = Balance(event.by, event.reason, at_ms, event.topics)


def _balance_ended(state: LeadershipState, _event: leadership.LeaderBalanceEnded, _at_ms: int) -> None:
    state.balance = None


def _counted(state: LeadershipState, event: leadership.LeadersCounted, at_ms: int) -> None:
    state.leader_counts = {count.broker: LeaderTally(count.leaders, count.preferred, at_ms) for count in event.brokers}


APPLYING: Mapping[type[Event], Callable[[Any, Any, int], None]] = {
    BlacklistSet: _set,
    leadership.LeaderOrderKept: _kept,
    leadership.LeaderOrderChanged: _changed,
    leadership.LeaderOrderLeft: _left,
    leadership.LeaderOrderEnded: _ended,
    leadership.LeaderOrdersIntended: _orders_intended,
    leadership.LeaderOrdersAnswered: _orders_answered,
    leadership.LeaderWaiting: _waiting,
    leadership.LeaderWaitEnded: _wait_ended,
    leadership.LeaderElectionIntended: _election_intended,
    leadership.LeaderElectionEnded: _election_ended,
    leadership.LeaderElectionsEnded: _elections_ended,
    leadership.LeaderBalanceBegun: _balance_begun,
    leadership.LeaderBalanceEnded: _balance_ended,
    leadership.LeadersCounted: _counted,
}
