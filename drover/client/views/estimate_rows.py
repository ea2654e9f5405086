"""PURE: a plan's estimate beside its actual figures, both from the log alone."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from drover.client.history import ValidRecord
from drover.decide.replica_sets import adding
from drover.events.base import PartitionEvent
from drover.events.partitions import TopicPartition
from drover.events.plans import BrokerBytes, PlanEstimate, PlanEstimated, PlanFinished, PlanOpened
from drover.events.reassignments import (
    Call,
    CallIntended,
    ReassignmentCompleted,
    ReassignmentFailed,
    ReassignmentQueued,
    ReassignmentRolledBack,
    ReassignmentStopped,
    StepConfirmed,
)
from drover.events.records import AnyEvent
from drover.state.estimates import together

_Over = ReassignmentCompleted | ReassignmentRolledBack | ReassignmentStopped | ReassignmentFailed


@dataclass(eq=False, slots=True)
class Taken:
    """The actual figures of a plan so far, from confirmed steps and ended reassignments.

    `bytes_unknown` counts steps that copied bytes nobody has measured. `finished_ms` is None until it is finished.
    """

    cluster: str
    plan: str
    opened_ms: int
    finished_ms: int | None = None
    partitions: int = 0
    ended: int = 0
    steps: int = 0
    copies: int = 0
    copied_bytes: int = 0
    bytes_unknown: int = 0
    leaders_moved: int = 0
    bytes_in: Counter[int] = field(default_factory=Counter)
    bytes_out: Counter[int] = field(default_factory=Counter)
    estimate: PlanEstimate | None = None

    @property
    def took_ms(self) -> int | None:
        """How long the plan was open; None until it is finished."""
        return None if self.finished_ms is None else self.finished_ms - self.opened_ms

    @property
    def brokers(self) -> tuple[BrokerBytes, ...]:
        """The bytes that were copied into each broker and out of it."""
        known = sorted(self.bytes_in.keys() | self.bytes_out.keys())
        return tuple(BrokerBytes(broker, self.bytes_in[broker], self.bytes_out[broker]) for broker in known)

    def document(self) -> dict[str, Any]:
        """Return both for programs; fields may be added and never changed."""
        estimate = None if self.estimate is None else msgspec.to_builtins(self.estimate)
        taken = {
            "partitions": self.partitions,
            "ended": self.ended,
            "steps": self.steps,
            "copies": self.copies,
            "copied_bytes": self.copied_bytes,
            "bytes_unknown": self.bytes_unknown,
            "leaders_moved": self.leaders_moved,
            "brokers": msgspec.to_builtins(self.brokers),
            "took_ms": self.took_ms,
        }
        return {"cluster": self.cluster, "plan": self.plan, "estimated": estimate, "taken": taken}


@dataclass(slots=True)
class _Move:
    taken: Taken
    original: tuple[int, ...]
    step: CallIntended | None = None
    copied_bytes: int = 0


@dataclass(slots=True)
class Ledger:
    """Adds up the actual figures of all plans of one name, from every valid record in the order of each shard."""

    plan: str
    _taken: dict[str, Taken] = field(default_factory=dict)
    _moves: dict[tuple[str, TopicPartition], _Move] = field(default_factory=dict)

    def add(self, record: ValidRecord) -> None:
        """Count one record."""
        for event in record.batch.events:
            self._count(event, record.batch.at_ms)

    def plans(self) -> Iterator[Taken]:
        """Return the plan in each cluster that has an estimate of it; a name that was used again is the last one."""
        return (taken for _, taken in sorted(self._taken.items()) if taken.estimate is not None)

    def _count(self, event: AnyEvent, at_ms: int) -> None:
        match event:
            case PlanOpened(plan=self.plan):
                self._taken[event.cluster] = Taken(event.cluster, event.plan, at_ms)
            case PlanEstimated(plan=self.plan):
                taken = self._taken[event.cluster]
                known = taken.estimate
                taken.estimate = event.estimate if known is None else together(known, event.estimate)
            case PlanFinished(plan=self.plan):
                self._taken[event.cluster].finished_ms = at_ms
            case ReassignmentQueued(plan=self.plan):
                taken = self._taken[event.cluster]
                taken.partitions += 1
                self._moves[event.cluster, event.key] = _Move(taken, event.original)
            case _ if isinstance(event, PartitionEvent):
                move = self._moves.get((event.cluster, event.key))
                if move is not None:
                    self._count_move(move, event)
            case _:
                return

    def _count_move(self, move: _Move, event: PartitionEvent) -> None:
        if isinstance(event, CallIntended) and event.call is Call.STEP:
            move.step = event
        elif isinstance(event, StepConfirmed | ReassignmentCompleted):
            _count_step(move, event)
        if isinstance(event, _Over):
            move.taken.ended += 1
            # A rollback ends with the leader that there was.
            move.taken.leaders_moved += event.replicas[:1] != move.original[:1]
            del self._moves[event.cluster, event.key]


def _count_step(move: _Move, event: StepConfirmed | ReassignmentCompleted) -> None:
    step, taken = move.step, move.taken
    move.step = None
    if step is None or step.replicas is None:
        return
    added = adding(step.expected, step.replicas)
    # The end says what all steps have copied.
    copied = event.bytes_copied - (move.copied_bytes if isinstance(event, ReassignmentCompleted) else 0)
    move.copied_bytes += copied
    taken.steps += 1
    taken.copies += len(added)
    taken.copied_bytes += copied
    taken.bytes_unknown += bool(added) and event.bytes_unknown
    for broker in added:
        taken.bytes_in[broker] += copied // len(added)
    if added and step.leader is not None and step.leader >= 0:
        taken.bytes_out[step.leader] += copied
