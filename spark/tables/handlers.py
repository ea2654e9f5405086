"""The contract of a capability's tables: functions that return the contribution of one event to them.

A keeper of tables runs the log's own fold, and calls these functions as well. Columns that the state has are read from
the state after a part of the log was folded (`rows`), and not derived from events a second time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from msgspec import Struct

from drover.events.base import Event
from drover.spark.tables.row_buffer import Key, Row, RowBuffer
from drover.spark.tables.schema import Table

State = TypeVar("State")
Happened = TypeVar("Happened")
Memory = TypeVar("Memory", bound=Struct)


class NoMemory(Struct):
    """The memory of a capability whose tables need nothing beyond the state."""


class EventContext(Struct, Generic[State, Happened, Memory], frozen=True, gc=False):
    """One event that has been applied.

    `state` is the cluster's state after it, `before` the result of `EventHandler.about` before it. `memory` is the
    state of the capability's tables beyond that: handlers may change it, and it is carried to the next part of the log.
    The event is number `index` of the record at `offset` of `shard`, decided at `at_ms`.
    """

    buffer: RowBuffer
    state: State
    memory: Memory
    event: Happened
    before: Any
    at_ms: int
    shard: int
    offset: int
    index: int


def nothing(_state: Any, _event: Any) -> None:
    """Return nothing of the state before an event."""


@dataclass(frozen=True, slots=True)
class EventHandler:
    """The function that adds an event's rows; `about` returns the values that it needs from the state before the event.

    `tables` names every table that it adds to (None: only tables of its own capability); it is not called if none of
    these is kept.
    """

    tell: Callable[[EventContext[Any, Any, Any]], None]
    about: Callable[[Any, Any], Any] = nothing
    tables: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class CapabilityTables:
    """The tables of one capability.

    `handlers` holds the handler of each type of event, which may add to tables of other capabilities, too; several, if
    some keepers of tables do not keep all of them. `unhandled` names the types of this capability that no table needs.
    `rows` has by table a function that returns the state's columns for a key (the cluster first), None without any; it
    is called for every touched row at the end of a part of the log. `memory` is the type of the tables' memory, one for
    each cluster.
    """

    name: str
    tables: tuple[Table, ...] = ()
    handlers: Mapping[type[Event], EventHandler | tuple[EventHandler, ...]] = field(default_factory=dict)
    unhandled: frozenset[type[Event]] = frozenset()
    rows: Mapping[str, Callable[[Any, Any, Key], Row | None]] = field(default_factory=dict)
    memory: type[Struct] = NoMemory
