"""One shard's part of the log: folded by the log's own rules, with every event handed to the tables as well.

The fold judges the records (R1, R2, R9), and `drover.fold.evolve` applies the events; this module repeats none of it.
After a damaged record all records are void until an acquire resumes the shard, as for every reader of the log.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from drover.events.base import Event
from drover.events.codec import UndecodableError, decode_record
from drover.events.records import Batch, Genesis
from drover.fold.evolve import apply
from drover.fold.log import ShardFold
from drover.spark.folding.carry import Memories, packed, unpacked
from drover.spark.folding.contribution import Contribution, contributions
from drover.spark.folding.records import LOG, put_record, put_unreadable
from drover.spark.folding.reused_names import REUSED_NAMES
from drover.spark.schema import TABLES
from drover.spark.tables.handlers import CapabilityTables, EventContext
from drover.spark.tables.registry import CAPABILITIES
from drover.spark.tables.row_buffer import Key, Row, RowBuffer
from drover.spark.tables.schema import Table

RowOf = Callable[[Any, Any, Key], Row | None]
# A capability's name, and the functions of an `EventHandler`.
_Bound = tuple[str, Callable[[Any, Any], Any], Callable[[EventContext[Any, Any, Any]], None]]


class EventHandlers:
    """The functions of capabilities, by type of event and by table.

    `kept` names the tables that are kept (None: all); functions for other tables are not called, and have no memory.
    """

    def __init__(self, capabilities: Sequence[CapabilityTables], kept: Collection[str] | None = None) -> None:
        self.by_event: dict[type[Event], tuple[_Bound, ...]] = {}
        self.rows: list[tuple[str, str, RowOf]] = []
        self.memories: dict[str, type[Struct]] = {}
        for capability in capabilities:
            own = frozenset(table.name for table in capability.tables)
            for kind, entry in capability.handlers.items():
                for handler in entry if isinstance(entry, tuple) else (entry,):
                    if kept is None or not (own if handler.tables is None else handler.tables).isdisjoint(kept):
                        bound = (capability.name, handler.about, handler.tell)
                        self.by_event[kind] = (*self.by_event.get(kind, ()), bound)
                        self.memories[capability.name] = capability.memory
            for table, row_of in capability.rows.items():
                if kept is None or table in kept:
                    self.rows.append((capability.name, table, row_of))
                    self.memories[capability.name] = capability.memory


HANDLERS = (*CAPABILITIES, REUSED_NAMES)
KEPT = EventHandlers(HANDLERS)


class TablesFold(ShardFold):
    """A shard's fold that hands every applied event to the tables."""

    __slots__ = ("_handlers", "buffer", "memories")

    def __init__(self, shard: int, shards: int, buffer: RowBuffer, handlers: EventHandlers) -> None:
        super().__init__(shard, shards)
        self._handlers = handlers
        self.buffer = buffer
        self.memories: Memories = {}

    def apply(self, offset: int, record: Batch) -> None:
        """Apply a valid batch's events one by one, and hand each to its handlers."""
        at_ms, by_event, buffer, shard = record.at_ms, self._handlers.by_event, self.buffer, self.shard
        cluster: str | None = None
        for index, event in enumerate(record.events):
            if event.cluster != cluster:
                cluster = event.cluster
                state, memories = self.state.cluster(cluster), self.memories_of(cluster)
            handlers = by_event.get(type(event))
            if handlers is None:
                apply(state, event, at_ms)
                continue
            if len(handlers) == 1:  # as below, without a list
                ((name, about, tell),) = handlers
                before = about(state, event)
                apply(state, event, at_ms)
                tell(EventContext(buffer, state, memories[name], event, before, at_ms, shard, offset, index))
                continue
            contexts = [about(state, event) for _, about, _ in handlers]
            apply(state, event, at_ms)
            for (name, _, tell), before in zip(handlers, contexts, strict=True):
                tell(EventContext(buffer, state, memories[name], event, before, at_ms, shard, offset, index))

    def memories_of(self, cluster: str) -> dict[str, Any]:
        """Return the memories of a cluster's tables, by capability."""
        memories = self.memories.get(cluster)
        if memories is None:
            memories = self.memories[cluster] = {name: kind() for name, kind in self._handlers.memories.items()}
        return memories

    def fill_in(self) -> None:
        """Fill every row that was put with the current values of the state."""
        for name, table, row_of in self._handlers.rows:
            for key, row in self.buffer.rows.get(table, {}).items():
                cluster = str(key[0])
                row.update(row_of(self.state.cluster(cluster), self.memories_of(cluster)[name], key) or {})


class ShardPart:
    """The records of a shard in a part of the log; `carried` is the carried state of the part before."""

    def __init__(
        self, shard: int, carried: bytes | None, first: bytes | None, tables: Mapping[str, Table] = TABLES
    ) -> None:
        """Continue from `carried`, or begin with the payload of the first record; only rows of `tables` are made."""
        self._newest_ms = 0
        self._fold = TablesFold(shard, shards_by(first), RowBuffer(tables), KEPT)
        if carried is not None:
            fold, self._fold.memories = unpacked(carried, HANDLERS)
            self._fold.take_over(fold)

    def take(self, offset: int, appended_ms: int, payload: bytes | None) -> None:
        """Fold one record; they come in the order of the log."""
        fold, payload = self._fold, payload or b""
        assert offset >= fold.position, f"offset {offset} of shard {fold.shard} comes after {fold.position - 1}"
        self._newest_ms = max(self._newest_ms, appended_ms)
        damage = fold.damage
        folded = fold.fold_on(offset, payload)
        if fold.damage is not None and fold.damage is not damage:
            put_unreadable(fold.buffer, LOG, fold.shard, offset, fold.damage.detail)
        elif folded is not None and folded.record is None:
            put_unreadable(fold.buffer, LOG, fold.shard, offset, _why(payload))
        elif folded is not None and folded.record is not None:
            put_record(fold.buffer, fold.shard, appended_ms, folded.verdict, folded.record)

    def finish(self) -> Iterator[Contribution]:
        """Yield the rows of this part and the carried state; no record may be added afterwards."""
        fold = self._fold
        fold.fill_in()
        name, newest_ms = f"shard/{fold.shard}", self._newest_ms
        yield from contributions(fold.buffer, name, packed(fold, fold.memories), newest_ms, newest_ms)


def shards_by(first: bytes | None) -> int:
    """Return the number of shards by the log's first record; audits check it."""
    try:
        record = decode_record(first or b"")
    except UndecodableError:
        return 1
    return record.shards if isinstance(record, Genesis) else 1


def _why(payload: bytes) -> str:
    try:
        decode_record(payload)
    except UndecodableError as error:
        return str(error)
    raise AssertionError("a record that can be read is judged")
