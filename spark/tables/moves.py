"""The tables of reassignments: the state of each one, the durations of states, the load on brokers, and the results.

A duration counts from the start of a phase. The state's `since_ms` is later if another field changed meanwhile; only
then the start is remembered here.
"""

from typing import Any

from msgspec import Struct

from drover.events import reassignments
from drover.events.base import Event
from drover.events.partitions import TopicPartition
from drover.events.reassignments import ReassignmentFailed
from drover.fold.moves import EVOLVING
from drover.fold.plans import ENDINGS, Ending
from drover.spark.tables.handlers import CapabilityTables, EventContext, EventHandler
from drover.spark.tables.measures import bucket, listed, window
from drover.spark.tables.row_buffer import Key, Row, RowBuffer
from drover.spark.tables.schema import (
    BROKER,
    BROKERS,
    CLUSTER,
    INTEGER,
    PARTITION,
    TEXT,
    TOPIC,
    WINDOW,
    Table,
    count,
    key,
    latest,
    most,
    retained,
)
from drover.state.moves import ReassignmentState
from drover.state.reassignment import Reassignment

_UNKNOWN = latest(
    "bytes_unknown", INTEGER, "0 or 1", "1: a step was over before a size was known, bytes_copied is the least"
)
REASSIGNMENTS_TABLE = Table(
    "reassignments",
    "The latest reassignment of every partition: where it is and why it waits. From the log alone.",
    "partitions that were ever moved",
    (
        CLUSTER,
        TOPIC,
        PARTITION,
        latest("plan", TEXT, "name", "the plan it belongs to"),
        latest("requester", TEXT, "name", "who opened the plan"),
        latest("state", TEXT, "a state of docs/architecture.md", "where it is"),
        latest("since_ms", INTEGER, "ms since epoch", "since when it is in that state"),
        latest("began_ms", INTEGER, "ms since epoch", "when it was accepted"),
        latest("ended_ms", INTEGER, "ms since epoch", "when it ended; null before"),
        latest("step", INTEGER, "number from 1", "the running or last step; null before the first"),
        latest("reason", TEXT, "a cause of events/README.md", "why it is blocked or has failed; null if neither"),
        latest("detail", TEXT, "a sentence", "the same for a person, with the way out"),
        latest("original", TEXT, BROKERS, "the replica list when it was accepted"),
        latest("target", TEXT, BROKERS, "the replica list asked for"),
        latest("adding", TEXT, BROKERS, "who gets a copy in the running step"),
        latest("leader", INTEGER, "broker id", "who led when the step was planned"),
        latest("bytes_copied", INTEGER, "bytes", "on the added replicas of the steps that are confirmed"),
        _UNKNOWN,
        latest("shard", INTEGER, "number", "the shard of the log"),
        latest("offset", INTEGER, "offset", "of the record that gave the state"),
    ),
    expires_by="ended_ms",
)
BROKERS_TABLE = Table(
    "brokers",
    "What arrived at and left every broker, and how many moves it took part in, per minute.",
    "brokers times minutes in which something moved",
    (
        CLUSTER,
        BROKER,
        WINDOW,
        count("bytes_in", "copied to it, by the samples", "bytes"),
        count("bytes_out", "copied from it as leader, by the samples", "bytes"),
        most("moves_in_most", "most at once that copied to it", "moves"),
        most("moves_out_most", "most at once that copied from it", "moves"),
        retained("moves_in_last", INTEGER, "moves", "at the window's end; null if it did not change: as before"),
        retained("moves_out_last", INTEGER, "moves", "the same, from it"),
    ),
    expires_by="window_ms",
)
DURATIONS_TABLE = Table(
    "durations",
    "How long reassignments stayed in each state, as a histogram; of an end, how long it took from acceptance.",
    "states times buckets: some hundreds per cluster",
    (
        CLUSTER,
        key("state", TEXT, "a state of docs/architecture.md", "the state that was left, or the end"),
        key("bucket", INTEGER, "8 per doubling", "durations from 2^(bucket/8) ms to 2^((bucket+1)/8) ms"),
        count("durations", "how many", "durations"),
        count("total_ms", "their sum", "ms"),
        most("longest_ms", "the longest of them", "ms"),
    ),
)
ENDED_TABLE = Table(
    "ended",
    "Every reassignment that has ended: the history.",
    "nothing: it grows with the log",
    (
        CLUSTER,
        TOPIC,
        PARTITION,
        key("ended_ms", INTEGER, "ms since epoch", "when it ended"),
        key("offset", INTEGER, "offset", "of the record that ended it, in the cluster's shard"),
        key("index", INTEGER, "number from 0", "of the event in that record: it may end a replacement, too"),
        latest("plan", TEXT, "name", "the plan it belonged to"),
        latest("requester", TEXT, "name", "who opened the plan"),
        latest("state", TEXT, "completed, rolled-back, stopped or failed", "how it ended"),
        latest("began_ms", INTEGER, "ms since epoch", "when it was accepted"),
        latest("original", TEXT, BROKERS, "the replica list when it was accepted"),
        latest("target", TEXT, BROKERS, "the replica list asked for"),
        latest("reason", TEXT, "a cause of events/README.md", "why it failed; null if it did not"),
        latest("bytes_copied", INTEGER, "bytes", "on added replicas, by the last sample of each step"),
        _UNKNOWN,
    ),
    is_history=True,
)

# The names of ends in the tables.
END_STATES: dict[type[Event], str] = {
    reassignments.ReassignmentCompleted: "completed",
    reassignments.ReassignmentRolledBack: "rolled-back",
    reassignments.ReassignmentStopped: "stopped",
    reassignments.ReassignmentFailed: "failed",
}
_ENDED_VALUES = tuple(column.name for column in ENDED_TABLE.values)
_Weight = tuple[int | None, tuple[int, ...]]
_NO_WEIGHT: _Weight = (None, ())


class ReassignmentsMemory(Struct, omit_defaults=True):
    """Moves per broker that copy to it and from it, and the starts of phases that began before their `since_ms`."""

    moves_in: dict[int, int] = {}
    moves_out: dict[int, int] = {}
    phase_began_ms: dict[str, int] = {}


_Context = EventContext[ReassignmentState, Any, ReassignmentsMemory]


def reassignment_of(state: ReassignmentState, event: Any) -> Reassignment | None:
    """Return the reassignment that an event is about."""
    return state.reassignments.get((event.topic, event.partition))  # type: ignore[call-overload,no-any-return]  # as in evolve


def place_of(event: Any) -> Key:
    """Return the key of the table's row that an event is about."""
    return (event.cluster, event.topic, event.partition)


def _changed(context: _Context) -> None:
    """Add a change of a reassignment that is under way after it; `_row` returns its columns."""
    event, before, buffer = context.event, context.before, context.buffer
    after = reassignment_of(context.state, event)
    if after is None:
        return
    buffer.replace("reassignments", place_of(event), {"shard": context.shard, "offset": context.offset})
    if before is None:
        _weigh(context, _NO_WEIGHT, weight(after))
        return
    if before.weighing_step is not after.weighing_step:
        _weigh(context, weight(before), weight(after))
    if before.phase is not after.phase:
        _put_duration(buffer, event.cluster, before.phase, context.at_ms - _phase_began_ms(context))
    elif before.since_ms != after.since_ms:
        context.memory.phase_began_ms.setdefault(_name(event), before.since_ms)


def _planned(context: _Context) -> None:
    """Add the copies that a new reassignment needs to its plan."""
    after = reassignment_of(context.state, context.event)
    assert after is not None, "it has begun"
    copies = len(set(after.target) - set(after.current))
    context.buffer.put("plans", (context.event.cluster, after.plan), replicas_planned=copies)


def _plan_changed(context: _Context) -> None:
    """Add the bytes of a step, and replaced targets, to the plan."""
    event, before, buffer = context.event, context.before, context.buffer
    after = reassignment_of(context.state, event)
    if before is None or after is None:
        return
    copied, unknown = after.bytes_copied - before.bytes_copied, after.bytes_unknown - before.bytes_unknown
    if copied or unknown:
        buffer.put("plans", (event.cluster, after.plan), bytes_copied=copied, bytes_unknown=unknown)
    if before.replacement is not after.replacement:
        for other in (before.replacement, after.replacement):
            if other is not None:
                buffer.put("plans", (event.cluster, other.plan))


def _ended(context: _Context) -> None:
    event, before, buffer, at_ms = context.event, context.before, context.buffer, context.at_ms
    cluster, state = event.cluster, END_STATES[type(event)]
    _weigh(context, weight(before), _NO_WEIGHT)
    _put_duration(buffer, cluster, before.phase, at_ms - _phase_began_ms(context))
    _put_duration(buffer, cluster, state, at_ms - before.created_ms)
    requester = context.state.plans[before.plan].by
    buffer.put("requests", (cluster, window(at_ms), requester), **{state.replace("-", "_"): 1})
    shown = _shown(before, requester, at_ms)
    shown["state"], shown["adding"], shown["ended_ms"] = state, "", at_ms
    shown["bytes_copied"] = copied_at_end(before, event)
    shown["bytes_unknown"] = int(is_unknown_at_end(before, event))
    shown["shard"], shown["offset"] = context.shard, context.offset
    is_failure = isinstance(event, ReassignmentFailed)
    shown["reason"], shown["detail"] = (event.why, event.detail) if is_failure else (None, None)
    place = place_of(event)
    buffer.replace("reassignments", place, shown)
    if buffer.keeps("ended"):
        ended = {name: shown[name] for name in _ENDED_VALUES}
        buffer.replace("ended", (*place, at_ms, context.offset, context.index), ended)


def _plan_reassignment_ended(context: _Context) -> None:
    """Add the end of a reassignment to its plan."""
    event, before, buffer = context.event, context.before, context.buffer
    copied, is_unknown = copied_at_end(before, event), is_unknown_at_end(before, event)
    more = {"bytes_copied": copied - before.bytes_copied, "bytes_unknown": is_unknown - before.bytes_unknown}
    buffer.put("plans", (event.cluster, before.plan), **more)
    if before.replacement is not None:
        buffer.put("plans", (event.cluster, before.replacement.plan))


def _put_duration(buffer: RowBuffer, cluster: str, state: str, duration_ms: int) -> None:
    name = (cluster, state, bucket(duration_ms))
    buffer.put("durations", name, durations=1, total_ms=duration_ms, longest_ms=duration_ms)


def copied_at_end(before: Reassignment, event: Ending) -> int:
    """Count copied bytes: an end has those of all steps, a confirmed step its own."""
    return max(getattr(event, "bytes_copied", 0), before.bytes_copied)


def is_unknown_at_end(before: Reassignment, event: Ending) -> bool:
    """Whether bytes may have been copied that were not measured."""
    return before.bytes_unknown or bool(getattr(event, "bytes_unknown", False))


def weight(reassignment: Reassignment | None) -> _Weight:
    """Return the broker that it copies from, and those that it copies to; (None, ()) without copies."""
    step = None if reassignment is None else reassignment.weighing_step
    return (step.leader, step.adding) if step is not None and step.adding else _NO_WEIGHT


def _weigh(context: _Context, before: _Weight, after: _Weight) -> None:
    if before == after:
        return
    for (source, targets), number in ((before, -1), (after, 1)):
        for broker in targets:
            _count(context, context.memory.moves_in, "moves_in", broker, number)
        if source is not None:
            _count(context, context.memory.moves_out, "moves_out", source, number)


def _count(context: _Context, moves: dict[int, int], name: str, broker: int, number: int) -> None:
    earlier = moves.get(broker, 0)
    now = moves[broker] = earlier + number
    if not now:
        del moves[broker]
    values = {f"{name}_most": max(earlier, now), f"{name}_last": now}
    context.buffer.put("brokers", (context.event.cluster, broker, window(context.at_ms)), **values)


def _phase_began_ms(context: _Context) -> int:
    """Return the start of the phase that the event has ended."""
    remembered, since_ms = context.memory.phase_began_ms, int(context.before.since_ms)
    return remembered.pop(_name(context.event), since_ms) if remembered else since_ms


def _name(event: Any) -> str:
    return f"{event.topic}/{event.partition}"


def _row(state: ReassignmentState, memory: ReassignmentsMemory, name: Key) -> Row | None:
    """Return the row of a reassignment under way."""
    _, topic, partition = name
    reassignment = state.reassignments.get(TopicPartition(str(topic), int(partition)))
    if reassignment is None:
        return None
    since_ms = memory.phase_began_ms.get(f"{topic}/{partition}", reassignment.since_ms)
    return _shown(reassignment, state.plans[reassignment.plan].by, since_ms)


def _shown(reassignment: Reassignment, requester: str, since_ms: int) -> Row:
    step, block = reassignment.step, reassignment.block
    return {
        "plan": reassignment.plan,
        "requester": requester,
        "state": reassignment.phase.value,
        "since_ms": since_ms,
        "began_ms": reassignment.created_ms,
        "ended_ms": None,
        "step": None if step is None else step.number,
        "reason": None if block is None else block.why.value,
        "detail": None if block is None else block.detail,
        "original": listed(reassignment.original),
        "target": listed(reassignment.target),
        "adding": listed(weight(reassignment)[1]),
        "leader": None if step is None else step.leader,
        "bytes_copied": reassignment.bytes_copied,
        "bytes_unknown": int(reassignment.bytes_unknown),
    }


_OWN = frozenset({"reassignments", "brokers", "durations", "ended", "requests"})
_PLANS = frozenset({"plans"})
_CHANGE = EventHandler(_changed, reassignment_of, _OWN)
_BEGINNING = (_CHANGE, EventHandler(_planned, tables=_PLANS))
_CHANGE_OF_PLAN = (_CHANGE, EventHandler(_plan_changed, reassignment_of, _PLANS))
_END = (EventHandler(_ended, reassignment_of, _OWN), EventHandler(_plan_reassignment_ended, reassignment_of, _PLANS))
TABLES = CapabilityTables(
    name="reassignment",
    tables=(REASSIGNMENTS_TABLE, BROKERS_TABLE, DURATIONS_TABLE, ENDED_TABLE),
    handlers={
        **dict.fromkeys(EVOLVING, _CHANGE),
        **dict.fromkeys(ENDINGS, _END),
        reassignments.ReassignmentCreated: _BEGINNING,
        reassignments.ReassignmentAdopted: _BEGINNING,
        reassignments.StepConfirmed: _CHANGE_OF_PLAN,
        reassignments.TargetReplaced: _CHANGE_OF_PLAN,
        reassignments.ReplacementWithdrawn: _CHANGE_OF_PLAN,
        reassignments.LateChangeFound: _CHANGE,
    },
    rows={"reassignments": _row},
    memory=ReassignmentsMemory,
)
