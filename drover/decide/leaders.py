"""Decide commands about the list of brokers that should not lead, and about balances of leaders."""

import math
from collections.abc import Mapping

from msgspec.structs import replace

from drover.decide.decision import Decision, Facts, refuse
from drover.decide.unseen import NAMED_AT_MOST, with_unseen_remark
from drover.decide.verdict import DROVER
from drover.events.brokers import BlacklistSet
from drover.events.commands import BalanceLeaders, Blacklist, Demote, Restore
from drover.events.leadership import LeaderBalanceBegun, ListedBroker
from drover.events.refusals import RefusalCode
from drover.state.cluster import ClusterState
from drover.state.leaders import LeadershipState, Listing


def decide_blacklist(command: Blacklist, state: ClusterState, facts: Facts) -> Decision:
    """R491-1: the list is always the complete one."""
    given = {entry.broker: entry for entry in command.entries}
    brokers = tuple(dict.fromkeys((*command.brokers, *given)))
    entries = {
        broker: ListedBroker(
            broker=broker,
            topics=_topics(entry.topics),
            until_ms=entry.until_ms,
            reason=entry.reason,
            until_in_sync=entry.until_in_sync,
        )
        for broker, entry in given.items()
    }
    decision = _set(state, brokers, entries, command.by, command.reason)
    return with_unseen_remark(decision, brokers, state.name, state.known_brokers, facts, done="listed")


def decide_demote(command: Demote, state: ClusterState, facts: Facts) -> Decision:
    """Add one broker to the list, or change its listing; topics are added to those it has.

    A listing has one end for all of its topics, so a later end holds for all. An earlier end for other topics is
    refused, and one for some of its topics has no effect, since it would end the others early, too.
    """
    listing = state.listings.get(command.broker)
    topics = command.topics
    remarks: tuple[str, ...] = ()
    if listing is not None:
        merged = _merge(listing, command, facts)
        if isinstance(merged, Decision):
            return merged
        topics, remarks = merged
    entries = _entries(state)
    entries[command.broker] = ListedBroker(
        broker=command.broker,
        topics=_topics(topics),
        for_ms=command.for_ms,
        reason=command.reason,
        until_in_sync=command.until_in_sync,
    )
    brokers = tuple(dict.fromkeys((*state.blacklist, command.broker)))
    decision = replace(_set(state, brokers, entries, command.by, command.reason), remarks=remarks)
    return with_unseen_remark(decision, (command.broker,), state.name, state.known_brokers, facts, done="listed")


def _merge(
    listing: Listing, command: Demote, facts: Facts
) -> Decision | tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the topics and the remarks of a listing that a demotion changes; a decision if it does not change it."""
    who, topics = f"broker {command.broker}", command.topics
    is_covered = listing.topics is None or (topics is not None and set(topics) <= set(listing.topics))
    covers = topics is None or (listing.topics is not None and set(listing.topics) <= set(topics))
    both = None if listing.topics is None or topics is None else (*listing.topics, *topics)
    now_ms = facts.decided_ms
    before_ms = math.inf if listing.until_ms is None else listing.until_ms
    after_ms = math.inf if command.for_ms is None else now_ms + command.for_ms
    listed = f"{who} is listed for {_scope(listing)} by {listing.by} {_until(listing, now_ms)}"
    if after_ms < before_ms or (command.until_in_sync and not listing.until_in_sync):
        if is_covered and covers:
            return both, (f"{listed}: it ends earlier now",)
        if is_covered:
            return Decision(remarks=(f"{listed} already: that stays as it is",))
        detail = f"{listed}, and has one end for all of its topics: demote it for at least as long, or restore it first"
        return refuse(RefusalCode.UNSUPPORTED, detail)
    if (after_ms > before_ms or (listing.until_in_sync and not command.until_in_sync)) and not covers:
        return both, (f"{listed}, and has one end for all of its topics: that is later now",)
    return both, ()


def _scope(listing: Listing) -> str:
    if listing.topics is None:
        return "all topics"
    named = ", ".join(listing.topics[:NAMED_AT_MOST])
    return f"{named} and others" if len(listing.topics) > NAMED_AT_MOST else named


def _until(listing: Listing, now_ms: int) -> str:
    if listing.until_ms is None:
        return "until its replicas are in sync" if listing.until_in_sync else "until a command ends that"
    at_most = ", or until its replicas are in sync" if listing.until_in_sync else ""
    return f"for {max(0, listing.until_ms - now_ms) / 1000:.0f} s more{at_most}"


def decide_restore(command: Restore, state: LeadershipState, _facts: Facts) -> Decision:
    """Take one broker from the list, or some topics from its listing; no effect on a broker that is not listed."""
    listing = state.listings.get(command.broker)
    entries = _entries(state)
    left: tuple[str, ...] = ()
    if listing is not None and listing.topics is not None and command.topics is not None:
        restored = frozenset(command.topics)
        left = tuple(topic for topic in listing.topics if topic not in restored)
    if listing is not None and left:
        entries[command.broker] = ListedBroker(
            broker=command.broker,
            topics=left,
            until_ms=listing.until_ms,
            reason=listing.reason,
            until_in_sync=listing.until_in_sync,
        )
        return _set(state, state.blacklist, entries, command.by, command.reason)
    if listing is not None and listing.topics is None and command.topics is not None:
        detail = (
            f"broker {command.broker} is listed for all topics: restore it altogether, then demote it for the topics "
            "that it should not lead"
        )
        return refuse(RefusalCode.UNSUPPORTED, detail)
    entries.pop(command.broker, None)
    brokers = tuple(broker for broker in state.blacklist if broker != command.broker)
    return _set(state, brokers, entries, command.by, command.reason)


def decide_balance(command: BalanceLeaders, state: LeadershipState, _facts: Facts) -> Decision:
    """Begin a balance; one that is under way for other topics is replaced."""
    topics = _topics(command.topics)
    if state.balance is not None and state.balance.topics == topics:
        return Decision()
    event = LeaderBalanceBegun(cluster=state.name, by=command.by, reason=command.reason, topics=topics)
    return Decision(events=(event,))


def expire(state: LeadershipState, over: Mapping[int, str]) -> BlacklistSet:
    """Take brokers from the list that leave it by themselves, each for its reason."""
    entries = {broker: entry for broker, entry in _entries(state).items() if broker not in over}
    return BlacklistSet(
        cluster=state.name,
        brokers=tuple(broker for broker in state.blacklist if broker not in over),
        previous_brokers=state.blacklist,
        by=DROVER,
        reason="; ".join(over[broker] for broker in state.blacklist if broker in over),
        entries=tuple(entries.values()),
    )


def next_expiry_ms(state: LeadershipState) -> int | None:
    """Return when (log time) the next broker leaves the list; None if none has an end."""
    return min((listing.until_ms for listing in state.listings.values() if listing.until_ms is not None), default=None)


def _set(
    state: LeadershipState, brokers: tuple[int, ...], entries: Mapping[int, ListedBroker], by: str, reason: str
) -> Decision:
    """Record the list, complete as always (R491-1), unless it is the one that there is."""
    said = tuple(entries[broker] for broker in brokers if broker in entries and _says_more(entries[broker]))
    if brokers == state.blacklist and all(
        _is_listed_so(state.listings.get(broker), entries.get(broker)) for broker in brokers
    ):
        return Decision()
    event = BlacklistSet(
        cluster=state.name, brokers=brokers, previous_brokers=state.blacklist, by=by, reason=reason, entries=said
    )
    return Decision(events=(event,))


def _is_listed_so(listing: Listing | None, entry: ListedBroker | None) -> bool:
    """Whether an entry adds nothing to the listing of a broker."""
    given = (None, None, False) if entry is None else (entry.topics, entry.until_ms, entry.until_in_sync)
    before = (None, None, False) if listing is None else (listing.topics, *listing.ends)
    return before == given and (entry is None or entry.for_ms is None)


def _entries(state: LeadershipState) -> dict[int, ListedBroker]:
    return {
        broker: ListedBroker(
            broker=broker,
            topics=listing.topics,
            until_ms=listing.until_ms,
            reason=listing.reason,
            until_in_sync=listing.until_in_sync,
        )
        for broker, listing in state.listings.items()
    }


def _says_more(entry: ListedBroker) -> bool:
    return entry != ListedBroker(broker=entry.broker)


def _topics(topics: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if topics is None else tuple(dict.fromkeys(topics))
