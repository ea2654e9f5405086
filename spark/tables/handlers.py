"""The contract by which a capability brings its tables: functions that say what one event adds to them.

Whoever keeps tables runs the log's own fold, and calls these functions beside it. A column that the state has already
is read from the state once a part of the log has been folded (`rows`), not derived from events a second time.
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

    `state` is the cluster's state after it, `before` what `EventHandler.about` returned before it. `memory` is what the
    capability's tables need beyond the state: it may change, and is carried from one part of the log to the next. The
    event is number `index` of the record at `offset` of `shard`, decided at `at_ms`.
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
    """Look at nothing before an event is applied."""


@dataclass(frozen=True, slots=True)
class EventHandler:
    """One function that tells what an event adds; `about` fetches from the state what it must know from before it.

    `tables` names every table that it puts to (None: only tables of its own capability): who keeps none of these does
    not call it.
    """

    tell: Callable[[EventContext[Any, Any, Any]], None]
    about: Callable[[Any, Any], Any] = nothing
    tables: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class CapabilityTables:
    """The tables of one capability.

    `handlers` holds for each type of event what it adds, also to tables of other capabilities: one function for all, or
    several where not everybody who keeps tables keeps all of them. `unhandled` names the types
    of this capability that no table needs. `rows` returns, by table, the columns that the state has for a key (the
    cluster first), None if it has nothing: it is asked for every row that was put to in a part of the log, at its end.
    `memory` is the type of what the tables need beyond the state, of each cluster.
    """

    name: str
    tables: tuple[Table, ...] = ()
    handlers: Mapping[type[Event], EventHandler | tuple[EventHandler, ...]] = field(default_factory=dict)
    unhandled: frozenset[type[Event]] = frozenset()
    rows: Mapping[str, Callable[[Any, Any, Key], Row | None]] = field(default_factory=dict)
    memory: type[Struct] = NoMemory
