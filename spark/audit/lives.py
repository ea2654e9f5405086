"""The facts about each reassignment that an audit has beyond the job's tables: its steps, blocks and cancels. Pure.

They are declared and handled like the tables of a capability.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from drover.events import reassignments
from drover.events.reassignments import Call
from drover.fold.plans import ENDINGS
from drover.spark.tables.handlers import CapabilityTables, EventContext, EventHandler
from drover.spark.tables.measures import listed
from drover.spark.tables.moves import END_STATES, copied_at_end, is_unknown_at_end, reassignment_of
from drover.spark.tables.row_buffer import Row
from drover.spark.tables.schema import CLUSTER, INTEGER, PARTITION, TEXT, TOPIC, Column, Kind, Table, key, latest
from drover.state.moves import ReassignmentState
from drover.state.reassignment import Reassignment

_COLUMNS: dict[str, Kind] = {
    **dict.fromkeys(("plan", "requester", "plan_reason", "state", "original", "target", "why"), TEXT),
    **dict.fromkeys(("cancel_mode", "cancelled_by", "cancel_reason"), TEXT),
    **dict.fromkeys(
        ("began_ms", "started_ms", "ended_ms", "bytes_copied", "bytes_unknown", "steps", "rejected_calls"), INTEGER
    ),
    **dict.fromkeys(("blocks", "shard", "began_offset", "offset"), INTEGER),
}


def _column(name: str, kind: Kind) -> Column:
    return latest(name, kind, "as in the audit's section", "as there")


LIVES_TABLE = Table(
    "lives",
    "Every reassignment that ended in a part of the log, or was under way at its end.",
    "the part",
    (
        *(CLUSTER, TOPIC, PARTITION),
        key("number", INTEGER, "number from 1", "of the reassignment in its cluster"),
        *(_column(name, kind) for name, kind in _COLUMNS.items()),
    ),
)


class Life(Struct):
    """The counts of a reassignment under way, and its last requested cancel."""

    began_offset: int
    started_ms: int | None = None
    steps: int = 0
    rejected_calls: int = 0
    blocks: int = 0
    cancel_mode: str | None = None
    cancelled_by: str | None = None
    cancel_reason: str | None = None


class LivesMemory(Struct):
    """The lives of reassignments under way, by topic and partition."""

    lives: dict[tuple[str, int], Life] = {}


_Context = EventContext[ReassignmentState, Any, LivesMemory]


def _life(context: _Context) -> Life:
    return context.memory.lives[context.event.topic, context.event.partition]


def _begun(context: _Context) -> None:
    context.memory.lives[context.event.topic, context.event.partition] = Life(context.offset)


def _intended(context: _Context) -> None:
    if context.event.call is Call.STEP:
        life = _life(context)
        life.started_ms = context.at_ms if life.started_ms is None else life.started_ms
        life.steps = max(life.steps, context.event.step)


def _rejected(context: _Context) -> None:
    _life(context).rejected_calls += 1


def _blocked(context: _Context) -> None:
    _life(context).blocks += 1


def _cancelled(context: _Context) -> None:
    life, event = _life(context), context.event
    if not event.by:
        return  # a repeated request lacks its author
    life.cancel_mode = "rollback" if isinstance(event, reassignments.RollbackRequested) else "stop"
    life.cancelled_by, life.cancel_reason = event.by, event.reason


def _ended(context: _Context) -> None:
    event, before = context.event, context.before
    place = (event.topic, event.partition)
    row = _row(place, before, context.memory.lives.pop(place), context.state, context.shard)
    row["state"] = END_STATES[type(event)]
    row["ended_ms"] = context.at_ms
    row["offset"] = context.offset
    row["bytes_copied"] = copied_at_end(before, event)
    row["bytes_unknown"] = int(is_unknown_at_end(before, event))
    row["why"] = getattr(event, "why", None)
    # No other row has this key, so there is nothing to join.
    context.buffer.replace("lives", (event.cluster, *place, before.number), row)


def under_way(state: ReassignmentState, memory: LivesMemory, shard: int) -> Iterator[Row]:
    """Yield the rows of reassignments that have not ended."""
    return (
        _row(key, reassignment, memory.lives[key], state, shard) for key, reassignment in state.reassignments.items()
    )


def _row(place: tuple[str, int], reassignment: Reassignment, life: Life, state: ReassignmentState, shard: int) -> Row:
    """Make the row of a reassignment that is under way, with its keys."""
    # The present plan, since another plan may have this name later.
    plan = state.plans[reassignment.plan]
    return {
        "cluster": state.name,
        "topic": place[0],
        "partition": place[1],
        "number": reassignment.number,
        "plan": reassignment.plan,
        "requester": plan.by,
        "plan_reason": plan.reason,
        "state": reassignment.phase.value,
        "original": listed(reassignment.original),
        "target": listed(reassignment.target),
        "began_ms": reassignment.created_ms,
        "started_ms": life.started_ms,
        "ended_ms": None,
        "bytes_copied": reassignment.bytes_copied,
        "bytes_unknown": int(reassignment.bytes_unknown),
        "steps": life.steps,
        "rejected_calls": life.rejected_calls,
        "blocks": life.blocks,
        "cancel_mode": life.cancel_mode,
        "cancelled_by": life.cancelled_by,
        "cancel_reason": life.cancel_reason,
        "why": None if reassignment.block is None else reassignment.block.why,
        "shard": shard,
        "began_offset": life.began_offset,
        "offset": None,
    }


LIVES = CapabilityTables(
    name="lives",
    tables=(LIVES_TABLE,),
    handlers={
        reassignments.ReassignmentCreated: EventHandler(_begun),
        reassignments.ReassignmentAdopted: EventHandler(_begun),
        reassignments.CallIntended: EventHandler(_intended),
        reassignments.CallRejected: EventHandler(_rejected),
        reassignments.ReassignmentBlocked: EventHandler(_blocked),
        reassignments.RollbackRequested: EventHandler(_cancelled),
        reassignments.StopRequested: EventHandler(_cancelled),
        **dict.fromkeys(ENDINGS, EventHandler(_ended, reassignment_of)),
    },
    memory=LivesMemory,
)
