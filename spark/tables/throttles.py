"""The table of throttles: what Drover has in force on each broker, and for how long it was."""

from typing import Any

from msgspec import Struct

from drover.events import throttles
from drover.spark.tables.schema import BROKER, CLUSTER, INTEGER, Table, count, latest
from drover.spark.tables.telling import CapabilityTables, Telling, Told
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


_Told = Told[ThrottlingState, Any, ThrottlingMemory]


def _entry_of(state: ThrottlingState, event: Any) -> BrokerThrottle | None:
    return state.broker_throttles.get(event.broker)


def _set(told: _Told) -> None:
    # A release puts back what others had set: from then on nothing there is Drover's.
    entry: BrokerThrottle = told.before
    _change(told, _NOT_SET if entry.release else entry.intended)


def _left(told: _Told) -> None:
    _change(told, _NOT_SET)


def _changed(told: _Told) -> None:
    """Add a row for a change by others: a deleted throttle is not in force until it is put back."""
    _change(told, told.event.found)


def _change(told: _Told, rates: throttles.Rates) -> None:
    broker, since_ms = told.event.broker, told.memory.since_ms
    began_ms = since_ms.pop(broker, None)
    told.sheet.put(
        "throttles",
        (told.event.cluster, broker),
        leader_rate=rates.leader,
        follower_rate=rates.follower,
        since_ms=told.at_ms,
        throttled_ms=0 if began_ms is None else told.at_ms - began_ms,
        changes=1,
    )
    if rates != _NOT_SET:
        since_ms[broker] = told.at_ms


TABLES = CapabilityTables(
    name="throttling",
    tables=(THROTTLES_TABLE,),
    tellings={
        throttles.BrokerThrottleSet: Telling(_set, _entry_of),
        throttles.BrokerThrottleLeft: Telling(_left),
        throttles.BrokerThrottleChanged: Telling(_changed),
    },
    untold=frozenset(
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
