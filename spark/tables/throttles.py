"""The table of throttles: Drover's rates on each broker, and how long each broker was throttled."""

from typing import Any

from msgspec import Struct

from drover.events import throttles
from drover.spark.tables.handlers import CapabilityTables, EventContext, EventHandler
from drover.spark.tables.schema import BROKER, CLUSTER, INTEGER, Table, count, latest
from drover.state.throttles import BrokerThrottle, ThrottlingState

THROTTLES_TABLE = Table(
    "throttles",
    "The throttles that Drover has on brokers, and how long they have been there.",
    "brokers",
    (
        CLUSTER,
        BROKER,
        latest("leader_rate", INTEGER, "bytes/s", "in force for what it sends; null for none of Drover's"),
        latest("follower_rate", INTEGER, "bytes/s", "in force for what it receives; null for none of Drover's"),
        latest("since_ms", INTEGER, "ms since epoch", "since when these hold"),
        count("throttled_ms", "how long it was throttled, up to the last change", "ms"),
        count("changes", "how often Drover set or took away its rates", "changes"),
    ),
)


_NOT_SET = throttles.Rates(None, None)


class ThrottlingMemory(Struct, omit_defaults=True):
    """Since when each throttled broker has its rates, ms since epoch."""

    since_ms: dict[int, int] = {}


_Context = EventContext[ThrottlingState, Any, ThrottlingMemory]


def _entry_of(state: ThrottlingState, event: Any) -> BrokerThrottle | None:
    return state.broker_throttles.get(event.broker)


def _set(context: _Context) -> None:
    # After a release the rates are others', not Drover's.
    entry: BrokerThrottle = context.before
    _change(context, _NOT_SET if entry.release else entry.intended)


def _left(context: _Context) -> None:
    _change(context, _NOT_SET)


def _changed(context: _Context) -> None:
    """Add a row for a change by others: a deleted throttle is not in force until it is put back."""
    _change(context, context.event.found)


def _change(context: _Context, rates: throttles.Rates) -> None:
    broker, since_ms = context.event.broker, context.memory.since_ms
    began_ms = since_ms.pop(broker, None)
    context.buffer.put(
        "throttles",
        (context.event.cluster, broker),
        leader_rate=rates.leader,
        follower_rate=rates.follower,
        since_ms=context.at_ms,
        throttled_ms=0 if began_ms is None else context.at_ms - began_ms,
        changes=1,
    )
    if rates != _NOT_SET:
        since_ms[broker] = context.at_ms


TABLES = CapabilityTables(
    name="throttling",
    tables=(THROTTLES_TABLE,),
    handlers={
        throttles.BrokerThrottleSet: EventHandler(_set, _entry_of),
        throttles.BrokerThrottleLeft: EventHandler(_left),
        throttles.BrokerThrottleChanged: EventHandler(_changed),
    },
    unhandled=frozenset(
        {
            throttles.BrokerThrottleIntended,
            throttles.BrokerThrottleRefused,
            throttles.TopicThrottleIntended,
            throttles.TopicThrottleSet,
            throttles.TopicThrottleRefused,
            throttles.TopicThrottleLeft,
            throttles.TopicThrottleChanged,
            throttles.BrokerThrottleAdopted,
            throttles.TopicThrottleAdopted,
        }
    ),
    memory=ThrottlingMemory,
)
