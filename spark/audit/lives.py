"""What an audit tells of each reassignment beyond the tables of the job: its steps, its troubles, who undid it. Pure.

It is brought like the tables of a capability, and told beside them.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from drover.events import reassignments
from drover.events.reassignments import Call
from drover.fold.plans import ENDINGS
from drover.spark.tables.measures import listed
from drover.spark.tables.moves import END_STATES, copied_at_end, is_unknown_at_end, reassignment_of
from drover.spark.tables.schema import CLUSTER, INTEGER, PARTITION, TEXT, TOPIC, Column, Kind, Table, key, latest
from drover.spark.tables.sheet import Row
from drover.spark.tables.telling import CapabilityTables, Telling, Told
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


_Told = Told[ReassignmentState, Any, LivesMemory]


def _life(told: _Told) -> Life:
    return told.memory.lives[told.event.topic, told.event.partition]


def _begun(told: _Told) -> None:
    told.memory.lives[told.event.topic, told.event.partition] = Life(told.offset)


def _intended(told: _Told) -> None:
    if told.event.call is Call.STEP:
        life = _life(told)
        life.started_ms = told.at_ms if life.started_ms is None else life.started_ms
        life.steps = max(life.steps, told.event.step)


def _rejected(told: _Told) -> None:
    _life(told).rejected_calls += 1


def _blocked(told: _Told) -> None:
    _life(told).blocks += 1


def _cancelled(told: _Told) -> None:
    life, event = _life(told), told.event
    if not event.by:
        return  # a request that is tried again does not repeat who made it
    life.cancel_mode = "rollback" if isinstance(event, reassignments.RollbackRequested) else "stop"
    life.cancelled_by, life.cancel_reason = event.by, event.reason


def _ended(told: _Told) -> None:
    event, before = told.event, told.before
    place = (event.topic, event.partition)
    row = _row(place, before, told.memory.lives.pop(place), told.state, told.shard)
    row["state"] = END_STATES[type(event)]
    row["ended_ms"] = told.at_ms
    row["offset"] = told.offset
    row["bytes_copied"] = copied_at_end(before, event)
    row["bytes_unknown"] = int(is_unknown_at_end(before, event))
    row["why"] = getattr(event, "why", None)
    # No other row has this key: no column is joined.
    told.sheet.replace("lives", (event.cluster, *place, before.number), row)


def under_way(state: ReassignmentState, memory: LivesMemory, shard: int) -> Iterator[Row]:
    """Yield the rows of what has not ended."""
    return (
        _row(key, reassignment, memory.lives[key], state, shard) for key, reassignment in state.reassignments.items()
    )


def _row(place: tuple[str, int], reassignment: Reassignment, life: Life, state: ReassignmentState, shard: int) -> Row:
    """Make the row of a reassignment that is under way, with its keys."""
    # Of this moment: the plan's name may be another plan's later.
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
        "began_ms": reassignment.queued_ms,
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
    tellings={
        reassignments.ReassignmentQueued: Telling(_begun),
        reassignments.ReassignmentAdopted: Telling(_begun),
        reassignments.CallIntended: Telling(_intended),
        reassignments.CallRejected: Telling(_rejected),
        reassignments.ReassignmentBlocked: Telling(_blocked),
        reassignments.RollbackRequested: Telling(_cancelled),
        reassignments.StopRequested: Telling(_cancelled),
        **dict.fromkeys(ENDINGS, Telling(_ended, reassignment_of)),
    },
    memory=LivesMemory,
)
