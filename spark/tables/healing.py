"""The table of healing: the chunks of every heal, and how each of them went."""

from typing import Any

from drover.events import healing
from drover.events.brokers import BrokerFailureRecorded, BrokerReturnRecorded
from drover.spark.tables.handlers import CapabilityTables, EventContext, EventHandler, NoMemory
from drover.spark.tables.measures import listed
from drover.spark.tables.row_buffer import Key
from drover.spark.tables.schema import BROKERS, CLUSTER, INTEGER, TEXT, Table, key, retained
from drover.state.healing import HealingState

HEAL_CHUNKS_TABLE = Table(
    "heal_chunks",
    "The chunks of every heal: what each replaces, and how it went.",
    "chunks of heals",
    (
        CLUSTER,
        key("heal", TEXT, "name", "the heal"),
        key("chunk", INTEGER, "number from 1", "which of its chunks"),
        retained("state", TEXT, "planned, begun, taken-back, ended or dropped", "how far it is"),
        retained("brokers", TEXT, BROKERS, "the brokers that are replaced"),
        retained("plan", TEXT, "name", "the plan as which it moves; null before, and if nothing was left to do"),
        retained("planned_ms", INTEGER, "ms since epoch", "when it was planned"),
        retained("begun_ms", INTEGER, "ms since epoch", "when it began; null before"),
        retained("ended_ms", INTEGER, "ms since epoch", "when all of it had ended, or it was dropped; null before"),
        retained("partitions", INTEGER, "partitions", "that were planned"),
        retained("skipped", INTEGER, "partitions", "that could not be healed when it began"),
        retained("bytes", INTEGER, "bytes", "to be copied, as measured when it began"),
        retained("healed", INTEGER, "partitions", "that are whole again"),
        retained("cancelled", INTEGER, "partitions", "that people cancelled"),
        retained("failed", INTEGER, "partitions", "that ended otherwise"),
        retained(
            "reason", TEXT, "a sentence", "why it was taken back, or why the heal ended before it; null if neither"
        ),
    ),
    expires_by="ended_ms",
)
_Context = EventContext[HealingState, Any, NoMemory]


def _put(context: _Context, chunk: int, **values: Any) -> None:
    name: Key = (context.event.cluster, context.event.heal, chunk)
    context.buffer.put("heal_chunks", name, **values)


def _planned(context: _Context) -> None:
    event, heal = context.event, context.state.heal
    brokers = None if heal is None else listed(heal.brokers)
    partitions = len(event.assignments)
    _put(context, event.chunk, state="planned", brokers=brokers, planned_ms=context.at_ms, partitions=partitions)


def _begun(context: _Context) -> None:
    event = context.event
    # Without a plan there was nothing to do any more.
    state, ended_ms = ("begun", None) if event.plan is not None else ("ended", context.at_ms)
    values = {"plan": event.plan, "begun_ms": context.at_ms, "ended_ms": ended_ms, "bytes": event.bytes}
    _put(context, event.chunk, state=state, skipped=len(event.skipped), **values)


def _taken_back(context: _Context) -> None:
    _put(context, context.event.chunk, state="taken-back", reason=context.event.why)


def _ended(context: _Context) -> None:
    event = context.event
    counts = {"healed": event.healed, "cancelled": event.cancelled, "failed": event.failed}
    _put(context, event.chunk, state="ended", ended_ms=context.at_ms, **counts)


def _chunks_of(state: HealingState, _event: healing.HealEnded) -> tuple[int, ...]:
    """Return the chunks that have not begun."""
    return tuple(state.heal_chunks)


def _heal_ended(context: _Context) -> None:
    for chunk in context.before:
        _put(context, chunk, state="dropped", ended_ms=context.at_ms, reason=context.event.why)


TABLES = CapabilityTables(
    name="healing",
    tables=(HEAL_CHUNKS_TABLE,),
    handlers={
        healing.HealChunkPlanned: EventHandler(_planned),
        healing.HealChunkBegun: EventHandler(_begun),
        healing.HealChunkTakenBack: EventHandler(_taken_back),
        healing.HealChunkEnded: EventHandler(_ended),
        healing.HealEnded: EventHandler(_heal_ended, _chunks_of),
    },
    unhandled=frozenset(
        {
            BrokerFailureRecorded,
            BrokerReturnRecorded,
            healing.BrokerOutageNoted,
            healing.BrokerOutageEnded,
            healing.BrokerOutageAlarmed,
            healing.HealingBraked,
            healing.HealingReleased,
            healing.HealChosen,
            healing.HealPlanned,
            healing.HealPartitionsLeft,
        }
    ),
)
