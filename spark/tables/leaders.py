"""The tables of leadership: the listed brokers, and how leaders were moved without moving replicas."""

from typing import Any

from drover.events import leadership
from drover.events.brokers import BlacklistSet
from drover.events.leadership import ElectionOutcome, OrderEnd, OrderOutcome
from drover.spark.tables.handlers import CapabilityTables, EventContext, EventHandler, NoMemory
from drover.spark.tables.measures import window
from drover.spark.tables.row_buffer import Key, Row
from drover.spark.tables.schema import BROKER, CLUSTER, INTEGER, TEXT, WINDOW, Table, count, latest
from drover.state.leaders import LeadershipState, Listing

LISTED_BROKERS_TABLE = Table(
    "listed_brokers",
    "The brokers that should not lead, or once should not have, and who said so.",
    "brokers that were ever listed",
    (
        CLUSTER,
        BROKER,
        latest("requester", TEXT, "name", "who listed it last"),
        latest("reason", TEXT, "a sentence", "why, in their words"),
        latest("listed_ms", INTEGER, "ms since epoch", "since when it was listed"),
        latest("topics", TEXT, "topics, by comma", "for which topics; null for all"),
        latest(
            "until_ms", INTEGER, "ms since epoch", "when that ends by itself at the latest; null if no time was set"
        ),
        latest("ended_ms", INTEGER, "ms since epoch", "when it left the list; null while it is listed"),
    ),
)
LEADER_MOVEMENTS_TABLE = Table(
    "leader_movements",
    "Elections, and changes of the order of replica lists, per minute.",
    "minutes in which leaders were moved",
    (
        CLUSTER,
        WINDOW,
        count("intended", "elections that were asked for", "elections"),
        count("elected", "that moved a leader", "elections"),
        count("not_needed", "that found the right broker leading", "elections"),
        count("refused", "that Kafka refused", "elections"),
        count("unanswered", "that were not sent, or whose outcome is not known", "elections"),
        count("orders_changed", "that put listed brokers last", "lists"),
        count("orders_restored", "that are in their canonical order again", "lists"),
        count("balances", "of leaders that began", "balances"),
    ),
    expires_by="window_ms",
)
_OUTCOMES = {
    ElectionOutcome.ELECTED: "elected",
    ElectionOutcome.NOT_NEEDED: "not_needed",
    ElectionOutcome.REFUSED: "refused",
    ElectionOutcome.NOT_SENT: "unanswered",
    ElectionOutcome.UNKNOWN: "unanswered",
}
_Context = EventContext[LeadershipState, Any, NoMemory]


def _listings(state: LeadershipState, _event: BlacklistSet) -> dict[int, Listing]:
    return state.listings


def _listed(context: _Context) -> None:
    """Add rows for the whole list: a command replaces it, so that missing listings end."""
    after = context.state.listings
    for broker, listing in {**context.before, **after}.items():
        ended_ms = None if broker in after else context.at_ms
        row = _listing_row(listing, ended_ms)
        context.buffer.replace("listed_brokers", (context.event.cluster, broker), row)


def _listing_row(listing: Listing, ended_ms: int | None) -> Row:
    return {
        "requester": listing.by,
        "reason": listing.reason,
        "listed_ms": listing.since_ms,
        "topics": None if listing.topics is None else ",".join(listing.topics),
        "until_ms": listing.until_ms,
        "ended_ms": ended_ms,
    }


def _put(context: _Context, **counts: int) -> None:
    name: Key = (context.event.cluster, window(context.at_ms))
    context.buffer.put("leader_movements", name, **counts)


def _intended(context: _Context) -> None:
    _put(context, intended=1)


def _election_ended(context: _Context) -> None:
    _put(context, **{_OUTCOMES[context.event.outcome]: 1})


def _order_changed(context: _Context) -> None:
    _put(context, orders_changed=1)


def _order_ended(context: _Context) -> None:
    if context.event.why is OrderEnd.RESTORED:
        _put(context, orders_restored=1)


def _orders_answered(context: _Context) -> None:
    """Count lists as changed once they are, and the elections that are intended with that."""
    event, electing = context.event, context.event.outcome is OrderOutcome.ELECTING
    if not electing and event.outcome is not OrderOutcome.REORDERED:
        return
    counts = {"orders_changed": len(event.partitions)}
    if electing:
        counts["intended"] = len(event.partitions)
    _put(context, **counts)
    _restored(context)


def _elections_ended(context: _Context) -> None:
    _put(context, **{_OUTCOMES[context.event.outcome]: len(context.event.partitions)})
    _restored(context)


def _restored(context: _Context) -> None:
    if context.event.restored:
        _put(context, orders_restored=len(context.event.restored))


def _balance_begun(context: _Context) -> None:
    _put(context, balances=1)


TABLES = CapabilityTables(
    name="leadership",
    tables=(LISTED_BROKERS_TABLE, LEADER_MOVEMENTS_TABLE),
    handlers={
        BlacklistSet: EventHandler(_listed, _listings),
        leadership.LeaderElectionIntended: EventHandler(_intended),
        leadership.LeaderElectionEnded: EventHandler(_election_ended),
        leadership.LeaderElectionsEnded: EventHandler(_elections_ended),
        leadership.LeaderOrdersAnswered: EventHandler(_orders_answered),
        leadership.LeaderOrderChanged: EventHandler(_order_changed),
        leadership.LeaderOrderEnded: EventHandler(_order_ended),
        leadership.LeaderBalanceBegun: EventHandler(_balance_begun),
    },
    unhandled=frozenset(
        {
            leadership.LeaderOrderKept,
            leadership.LeaderOrdersIntended,
            leadership.LeaderOrderLeft,
            leadership.LeaderWaiting,
            leadership.LeaderWaitEnded,
            leadership.LeaderBalanceEnded,
            leadership.LeadersCounted,
        }
    ),
)
