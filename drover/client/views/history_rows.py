"""PURE: the audit trail: every valid command and event, as rows that say who, what, why and where."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec

from drover.client.history import ValidRecord
from drover.client.views.sentences import (
    command_sentence,
    event_sentence,
    happened,
    partition_sentence,
    same_for_all,
)
from drover.events.base import Event, PartitionEvent, PartitionsEvent
from drover.events.brokers import BlacklistSet
from drover.events.leadership import LeaderBalanceBegun, LeadershipEvent
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanCancelled, PlanOpened, PlansForgotten
from drover.events.queue_entries import (
    QueueEntryAdded,
    QueueEntryRemoved,
)
from drover.events.reassignments import (
    CancelWithdrawn,
    LateChangeFound,
    ReassignmentAdopted,
    ReassignmentCreated,
    ReplacementWithdrawn,
    RollbackRequested,
    StopRequested,
    TargetReplaced,
)
from drover.events.records import AnyEvent, OnePlanEvent, Outcome
from drover.events.unmanaged import UnmanagedMoveEnded, UnmanagedMoveSeen

# Fields that the other columns of a row already show.
_NAMED_ELSEWHERE = frozenset(
    {"type", "cluster", "topic", "partition", "plan", "by", "reason", "topic_id", "id", "command", "payload", "offset"}
)


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A command or an event.

    `what` is a command's type with its verdict, or an event's tag. `by` and `reason` are those of the command that
    caused it: for a partition's events the one that opened its plan, or that rolled it back. `partitions` are all that
    a command named. `sentence` says it in words; None for a detail. `happened` is the part of a partition's sentence
    behind its name.
    """

    shard: int
    offset: int
    at_ms: int
    cluster: str
    what: str
    by: str
    reason: str
    detail: str
    id: str | None = None
    plan: str | None = None
    partitions: tuple[TopicPartition, ...] = ()
    is_command: bool = False
    sentence: str | None = None
    happened: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return {
            "shard": self.shard,
            "offset": self.offset,
            "at_ms": self.at_ms,
            "cluster": self.cluster,
            "what": self.what,
            "kind": "command" if self.is_command else "event",
            "id": self.id,
            "plan": self.plan,
            "partitions": [{"topic": key.topic, "partition": key.partition} for key in self.partitions],
            "by": self.by,
            "reason": self.reason,
            "detail": self.detail,
            "sentence": self.sentence,
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter for rows; None means all."""

    cluster: str | None = None
    topic: str | None = None
    partition: TopicPartition | None = None
    plan: str | None = None
    by: str | None = None
    id: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def matches(self, row: HistoryRow) -> bool:
        """Whether a row passes the filter."""
        return (
            self.cluster in {None, row.cluster}
            and self.plan in {None, row.plan}
            and self.by in {None, row.by}
            and self.id in {None, row.id}
            and (self.since_ms is None or row.at_ms >= self.since_ms)
            and (self.until_ms is None or row.at_ms <= self.until_ms)
            and (self.partition is None or self.partition in row.partitions)
            and (self.topic is None or any(key.topic == self.topic for key in row.partitions))
        )


@dataclass(frozen=True, slots=True)
class _Cause:
    by: str
    reason: str
    plan: str | None = None


def _named_in(event: Event) -> _Cause:
    return _Cause(getattr(event, "by", ""), getattr(event, "reason", ""))


@dataclass(slots=True)
class Chronicle:
    """Turns valid batches, given in the order of each shard, into rows; remembers the causes of everything open."""

    _plans: dict[tuple[str, str], _Cause] = field(default_factory=dict)
    _moves: dict[tuple[str, TopicPartition], _Cause] = field(default_factory=dict)
    # The targets that follow a move, and the entries of the queue, have causes of their own.
    _next: dict[tuple[str, TopicPartition], _Cause] = field(default_factory=dict)
    _queue: dict[tuple[str, TopicPartition], _Cause] = field(default_factory=dict)
    # The last command that changed the list of brokers that should not lead, or asked for a balance.
    _leaders: dict[str, _Cause] = field(default_factory=dict)

    def rows(self, record: ValidRecord) -> Iterator[HistoryRow]:
        """Yield a batch's rows: its commands, then its events."""
        for outcome in record.batch.outcomes:
            yield self._command(record, outcome)
        for event in record.batch.events:
            cause = self._cause(event)
            for partitions, detail in _told(event):
                yield self._event(record, event, cause, partitions, detail)

    def _command(self, record: ValidRecord, outcome: Outcome) -> HistoryRow:
        refused = [key for refusal in outcome.refusals if (key := refusal.key) is not None]
        named = (*outcome.accepted, *outcome.unchanged)
        detail = outcome_detail(outcome)
        return HistoryRow(
            shard=record.shard,
            offset=record.offset,
            at_ms=record.batch.at_ms,
            cluster=outcome.cluster,
            what=f"{outcome.type} {outcome.verdict}",
            by=outcome.by,
            reason=outcome.reason,
            detail=detail,
            id=outcome.id,
            plan=outcome.plan,
            partitions=(*(TopicPartition(result.topic, result.partition) for result in named), *refused),
            is_command=True,
            sentence=command_sentence(outcome, detail),
        )

    def _event(
        self, record: ValidRecord, event: AnyEvent, cause: _Cause, partitions: tuple[TopicPartition, ...], detail: str
    ) -> HistoryRow:
        words = happened(event)
        sentence = event_sentence(event) if words is None else partition_sentence(words, partitions, cause.plan)
        return HistoryRow(
            shard=record.shard,
            offset=record.offset,
            at_ms=record.batch.at_ms,
            cluster=event.cluster,
            what=str(event.__struct_config__.tag),
            by=cause.by,
            reason=cause.reason,
            detail=detail,
            id=_command_of(event),
            plan=cause.plan,
            partitions=partitions,
            sentence=sentence,
            happened=words,
        )

    def _cause(self, event: AnyEvent) -> _Cause:
        if isinstance(event, PartitionEvent):
            return self._cause_of_partition(event)
        cause = _named_in(event)
        if isinstance(event, OnePlanEvent):
            return self._cause_of_plan(event, cause)
        if isinstance(event, PlansForgotten):
            # They cause no further events; a reader that follows for months must not remember every one.
            for plan in event.plans:
                self._plans.pop((event.cluster, plan), None)
        if isinstance(event, BlacklistSet | LeaderBalanceBegun):
            self._leaders[event.cluster] = cause
        elif isinstance(event, LeadershipEvent):
            return self._leaders.get(event.cluster, cause)
        return cause

    def _cause_of_plan(self, event: OnePlanEvent, cause: _Cause) -> _Cause:
        cause = replace(cause, plan=event.plan)
        if isinstance(event, PlanOpened | PlanCancelled):
            self._plans[event.cluster, event.plan] = cause
        return self._plans.get((event.cluster, event.plan), cause)

    def _cause_of_partition(self, event: PartitionEvent) -> _Cause:
        place, nobody = (event.cluster, event.key), _Cause("", "")
        match event:
            case QueueEntryAdded():
                self._queue[place] = self._opener(event.cluster, event.plan)
                return self._queue[place]
            case QueueEntryRemoved():
                return self._queue.pop(place, nobody)
            case TargetReplaced():
                self._next[place] = self._opener(event.cluster, event.plan)
                return self._next[place]
            case ReplacementWithdrawn():
                waited = self._next.pop(place, nobody)
                return _Cause(event.by, event.reason, waited.plan) if event.by else waited
            case LateChangeFound():
                return self._opener(event.cluster, event.plan)
            case UnmanagedMoveSeen() | UnmanagedMoveEnded():
                return nobody
            case _ if isinstance(event, LeadershipEvent):
                return self._leaders.get(event.cluster, nobody)
            case _:
                return self._cause_of_move(event, place)

    def _cause_of_move(self, event: PartitionEvent, move: tuple[str, TopicPartition]) -> _Cause:
        if isinstance(event, ReassignmentCreated | ReassignmentAdopted):
            self._moves[move] = self._opener(event.cluster, event.plan)
        elif isinstance(event, RollbackRequested | StopRequested) and not event.again:
            plan = self._moves[move].plan if move in self._moves else None
            self._moves[move] = _Cause(event.by, event.reason, plan)
        elif isinstance(event, CancelWithdrawn):
            plan = self._moves[move].plan if move in self._moves else None
            self._moves[move] = _Cause("", "") if plan is None else self._opener(event.cluster, plan)
            return _Cause(event.by, event.reason, plan)
        return self._moves.get(move, _Cause("", ""))

    def _opener(self, cluster: str, plan: str) -> _Cause:
        return replace(self._plans.get((cluster, plan), _Cause("", "")), plan=plan)


def _command_of(event: AnyEvent) -> str | None:
    if isinstance(event, QueueEntryAdded):
        return event.id
    return getattr(event, "command", None)


def _told(event: AnyEvent) -> Iterator[tuple[tuple[TopicPartition, ...], str]]:
    """Yield the partitions and the text of an event's rows: one row, or one for each partition of the event."""
    if not isinstance(event, PartitionsEvent):
        yield (event.key,) if isinstance(event, PartitionEvent) else (), event_detail(event)
        return
    fields = msgspec.to_builtins(event)
    restored, changes = fields.pop("restored", ()), fields.pop("changes", None)
    del fields["partitions"]
    for index, key in enumerate(event.keys):
        own = dict(fields) if changes is None else {**fields, **changes[index]}
        if key.partition in restored:
            own["restored"] = True
        yield (key,), _in_words(own)


def outcome_detail(outcome: Outcome) -> str:
    """Describe the outcome of a command in one line, refusals included."""
    parts = []
    if outcome.accepted:
        parts.append(f"{len(outcome.accepted)} accepted")
    if outcome.unchanged:
        parts.append(f"{len(outcome.unchanged)} already in place")
    if outcome.verdict == "duplicate":
        where = "in this record" if outcome.first_offset is None else f"at offset {outcome.first_offset}"
        parts.append(f"already decided {where}")
    parts += [f"{refusal.key or 'all'}: {refusal.code.value}, {refusal.detail}" for refusal in outcome.refusals[:3]]
    if len(outcome.refusals) > 3:
        parts.append(f"and {len(outcome.refusals) - 3} more refused")
    parts += outcome.remarks
    return "; ".join(parts)


def event_detail(event: AnyEvent) -> str:
    """Format an event's own fields, without defaults."""
    fields = msgspec.to_builtins(event)
    if fields.pop("bytes_unknown", False):
        # The step ended before its size was measured.
        fields["bytes_copied"] = f">= {fields.get('bytes_copied', 0)}"
    return _in_words(fields)


def _in_words(fields: dict[str, Any]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {_value(value)}" for name, value in fields.items() if name not in _NAMED_ELSEWHERE
    )


def _value(value: object) -> str:
    match value:
        case list() | tuple():
            return "[" + ",".join(_value(element) for element in value) + "]"
        case dict():
            return "(" + ", ".join(f"{name} {_value(element)}" for name, element in value.items()) + ")"
        case bool():
            return "yes" if value else "no"
        case None:
            return "none"
        case _:
            return str(value)


class Selection:
    """The rows that pass a filter, of batches given in the order of each shard.

    `plans` and `topics` are the names in the whole log, for suggestions.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._chronicle = Chronicle()
        self._rows: list[HistoryRow] = []
        self.plans: set[str] = set()
        self.topics: set[str] = set()

    def add(self, records: Iterable[ValidRecord]) -> None:
        """Add batches; every batch must be given, because it may hold the causes of later rows."""
        for record in records:
            for row in self._chronicle.rows(record):
                if row.plan is not None:
                    self.plans.add(row.plan)
                self.topics.update(key.topic for key in row.partitions)
                if self._wanted.matches(row):
                    self._rows.append(row)

    def rows(self) -> list[HistoryRow]:
        """Return the rows, oldest first; those of a shard stay in its order."""
        # Sorting is stable, and time never goes back within a shard (R6).
        return sorted(self._rows, key=attrgetter("at_ms", "shard"))

    def take(self) -> list[HistoryRow]:
        """Return the rows since the last time, and forget them."""
        rows, self._rows = self.rows(), []
        return rows


def story(rows: Iterable[HistoryRow]) -> Iterator[tuple[HistoryRow, str]]:
    """Yield the rows that have a sentence; one for all partitions of a batch to which the same happened."""
    for _, alike in groupby(rows, key=_sameness):
        first, *others = alike
        if first.sentence is None:
            continue
        if first.happened is None or not others:
            yield from ((row, row.sentence or "") for row in (first, *others))
        else:
            partitions = tuple(key for row in (first, *others) for key in row.partitions)
            yield first, partition_sentence(first.happened, partitions, first.plan)


def _sameness(row: HistoryRow) -> tuple[object, ...]:
    words = None if row.happened is None else same_for_all(row.happened)
    return row.cluster, row.shard, row.offset, row.what, row.plan, words, row.sentence is None
