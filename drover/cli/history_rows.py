"""PURE: the audit trail: every command and every event that counts, as rows that say who, what, why and where."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from drover.client.history import ValidRecord
from events.base import PartitionEvent
from events.partitions import TopicPartition
from events.plans import PlanCancelled, PlanExtended, PlanFinished, PlanOpened, PlanThrottleSet
from events.reassignments import ReassignmentQueued, RollbackRequested
from events.records import AnyEvent, Outcome, PlanEvent

# Where every event says itself what these fields do.
_NAMED_ELSEWHERE = frozenset({"type", "cluster", "topic", "partition", "plan", "by", "reason", "topic_id"})


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One thing that was asked for or happened.

    `what` is a command's type with its verdict, or an event's tag. `by` and `reason` are of whoever caused it: for a
    partition's events the opener of its plan, or who rolled it back. `partitions` are all a command named.
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
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows are asked for; None means all."""

    cluster: str | None = None
    topic: str | None = None
    partition: TopicPartition | None = None
    plan: str | None = None
    by: str | None = None
    id: str | None = None
    since_ms: int | None = None

    def matches(self, row: HistoryRow) -> bool:
        """Tell whether a row is asked for."""
        return (
            self.cluster in {None, row.cluster}
            and self.plan in {None, row.plan}
            and self.by in {None, row.by}
            and self.id in {None, row.id}
            and (self.since_ms is None or row.at_ms >= self.since_ms)
            and (self.partition is None or self.partition in row.partitions)
            and (self.topic is None or any(key.topic == self.topic for key in row.partitions))
        )


@dataclass(frozen=True, slots=True)
class _Cause:
    by: str
    reason: str
    plan: str | None = None


@dataclass(slots=True)
class Chronicle:
    """Turns valid batches, given in the order of each shard, into rows; remembers who caused what is under way."""

    _plans: dict[tuple[str, str], _Cause] = field(default_factory=dict)
    _moves: dict[tuple[str, TopicPartition], _Cause] = field(default_factory=dict)

    def rows(self, record: ValidRecord) -> Iterator[HistoryRow]:
        """Yield one batch's rows: first what was asked for, then what happened."""
        for outcome in record.batch.outcomes:
            yield self._command(record, outcome)
        for event in record.batch.events:
            yield self._event(record, event)

    def _command(self, record: ValidRecord, outcome: Outcome) -> HistoryRow:
        refused = [key for refusal in outcome.refusals if (key := refusal.key) is not None]
        named = (*outcome.accepted, *outcome.unchanged)
        return HistoryRow(
            shard=record.shard,
            offset=record.offset,
            at_ms=record.batch.at_ms,
            cluster=outcome.cluster,
            what=f"{outcome.type} {outcome.verdict}",
            by=outcome.by,
            reason=outcome.reason,
            detail=outcome_detail(outcome),
            id=outcome.id,
            plan=outcome.plan,
            partitions=(*(TopicPartition(one.topic, one.partition) for one in named), *refused),
            is_command=True,
        )

    def _event(self, record: ValidRecord, event: AnyEvent) -> HistoryRow:
        cause = self._cause(event)
        return HistoryRow(
            shard=record.shard,
            offset=record.offset,
            at_ms=record.batch.at_ms,
            cluster=event.cluster,
            what=str(event.__struct_config__.tag),
            by=cause.by,
            reason=cause.reason,
            detail=event_detail(event),
            plan=cause.plan,
            partitions=(event.key,) if isinstance(event, PartitionEvent) else (),
        )

    def _cause(self, event: AnyEvent) -> _Cause:
        if isinstance(event, PartitionEvent):
            return self._cause_of_move(event)
        cause = _Cause(getattr(event, "by", ""), getattr(event, "reason", ""))
        if isinstance(event, PlanOpened | PlanExtended | PlanThrottleSet | PlanCancelled | PlanFinished):
            return self._cause_of_plan(event, cause)
        return cause

    def _cause_of_plan(self, event: PlanEvent, cause: _Cause) -> _Cause:
        cause = replace(cause, plan=event.plan)
        if isinstance(event, PlanOpened | PlanCancelled):
            self._plans[event.cluster, event.plan] = cause
        return self._plans.get((event.cluster, event.plan), cause)

    def _cause_of_move(self, event: PartitionEvent) -> _Cause:
        move = (event.cluster, event.key)
        if isinstance(event, ReassignmentQueued):
            opened = self._plans.get((event.cluster, event.plan), _Cause("", ""))
            self._moves[move] = replace(opened, plan=event.plan)
        elif isinstance(event, RollbackRequested):
            plan = self._moves[move].plan if move in self._moves else None
            self._moves[move] = _Cause(event.by, event.reason, plan)
        return self._moves.get(move, _Cause("", ""))


def outcome_detail(outcome: Outcome) -> str:
    """Say what became of a command, refusals included, in one line."""
    parts = []
    if outcome.accepted:
        parts.append(f"{len(outcome.accepted)} accepted")
    if outcome.unchanged:
        parts.append(f"{len(outcome.unchanged)} already as asked")
    if outcome.verdict == "duplicate":
        where = "in this record" if outcome.first_offset is None else f"at offset {outcome.first_offset}"
        parts.append(f"decided before, {where}")
    parts += [f"{refusal.key or 'all'}: {refusal.code.value}, {refusal.detail}" for refusal in outcome.refusals[:3]]
    if len(outcome.refusals) > 3:
        parts.append(f"and {len(outcome.refusals) - 3} more refused")
    return "; ".join(parts)


def event_detail(event: AnyEvent) -> str:
    """Write an event's own fields, defaults left out."""
    fields = msgspec.to_builtins(event)
    return ", ".join(
        f"{name.replace('_', ' ')} {_value(value)}" for name, value in fields.items() if name not in _NAMED_ELSEWHERE
    )


def _value(value: object) -> str:
    match value:
        case list() | tuple():
            return "[" + ",".join(_value(one) for one in value) + "]"
        case dict():
            return "(" + ", ".join(f"{name} {_value(one)}" for name, one in value.items()) + ")"
        case bool():
            return "yes" if value else "no"
        case None:
            return "none"
        case _:
            return str(value)


def select(records: Iterable[ValidRecord], wanted: Wanted, chronicle: Chronicle) -> list[HistoryRow]:
    """Return the rows of these batches that are asked for; every batch must be given, for their causes."""
    return [row for record in records for row in chronicle.rows(record) if wanted.matches(row)]
