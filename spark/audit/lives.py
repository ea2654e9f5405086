"""What an audit tells of each reassignment beyond the tables of the job: its steps, its troubles, who undid it. Pure.

It is brought like the tables of a capability, and told beside them.
"""

from typing import Any

from msgspec import Struct

from drover.reassignment.evolve import ENDINGS
from drover.reassignment.state import Reassignment, ReassignmentState
from drover.reassignment.tables import END_STATES, copied_at_end, is_unknown_at_end, reassignment_of
from drover.tables.measures import listed
from drover.tables.schema import CLUSTER, INTEGER, PARTITION, TEXT, TOPIC, Column, Kind, Table, key, latest
from drover.tables.sheet import Row
from drover.tables.telling import CapabilityTables, Telling, Told
from events import reassignments
from events.reassignments import Call

_COLUMNS: dict[str, Kind] = {
    **dict.fromkeys(("plan", "requester", "state", "original", "target", "why"), TEXT),
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
    """What is counted of a reassignment while it is under way; the cancel is the last that was asked for."""

    began_offset: int
    started_ms: int | None = None
    steps: int = 0
    rejected_calls: int = 0
    blocks: int = 0
    cancel_mode: str | None = None
    cancelled_by: str | None = None
    cancel_reason: str | None = None


class LivesMemory(Struct):
    """The lives of what is under way, by topic and partition."""

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
    life = told.memory.lives.pop((event.topic, event.partition))
    row = _row(before, life, told.state, told.shard) | {
        "state": END_STATES[type(event)],
        "ended_ms": told.at_ms,
        "offset": told.offset,
        "bytes_copied": copied_at_end(before, event),
        "bytes_unknown": int(is_unknown_at_end(before, event)),
        "why": getattr(event, "why", None),
    }
    told.sheet.put("lives", (event.cluster, event.topic, event.partition, before.number), **row)


def under_way(state: ReassignmentState, memory: LivesMemory, shard: int) -> dict[tuple[str, str, int, int], Row]:
    """Return the rows of what has not ended, by key."""
    return {
        (state.name, *key, one.number): _row(one, memory.lives[key], state, shard)
        for key, one in state.reassignments.items()
    }


def _row(one: Reassignment, life: Life, state: ReassignmentState, shard: int) -> Row:
    return {
        "plan": one.plan,
        "requester": state.plans[one.plan].by,
        "state": one.phase.value,
        "original": listed(one.original),
        "target": listed(one.target),
        "began_ms": one.queued_ms,
        "bytes_copied": one.bytes_copied,
        "bytes_unknown": int(one.bytes_unknown),
        "why": None if one.block is None else one.block.why,
        "shard": shard,
        **{name: getattr(life, name) for name in life.__struct_fields__},
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
