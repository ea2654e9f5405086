"""The table of healing: the chunks of every heal, and how each of them went."""

from typing import Any

from drover.events import healing
from drover.events.brokers import BrokerFailureRecorded, BrokerReturnRecorded
from drover.spark.tables.measures import listed
from drover.spark.tables.schema import BROKERS, CLUSTER, INTEGER, TEXT, Table, key, known
from drover.spark.tables.sheet import Key
from drover.spark.tables.telling import CapabilityTables, NoMemory, Telling, Told
from drover.state.healing import HealingState

HEAL_CHUNKS_TABLE = Table(
    "heal_chunks",
    "The chunks of every heal: what each replaces, and how it went.",
    "chunks of heals",
    (
        CLUSTER,
        key("heal", TEXT, "name", "the heal"),
        key("chunk", INTEGER, "number from 1", "which of its chunks"),
        known("state", TEXT, "planned, begun, taken-back, ended or dropped", "how far it is"),
        known("brokers", TEXT, BROKERS, "the brokers that are replaced"),
        known("plan", TEXT, "name", "the plan as which it moves; null before, and if nothing was left to do"),
        known("planned_ms", INTEGER, "ms since epoch", "when it was planned"),
        known("begun_ms", INTEGER, "ms since epoch", "when it began; null before"),
        known("ended_ms", INTEGER, "ms since epoch", "when all of it had ended, or it was dropped; null before"),
        known("partitions", INTEGER, "partitions", "that were planned"),
        known("skipped", INTEGER, "partitions", "that could not be healed when it began"),
        known("bytes", INTEGER, "bytes", "to be copied, as measured when it began"),
        known("healed", INTEGER, "partitions", "that are whole again"),
        known("cancelled", INTEGER, "partitions", "that people cancelled"),
        known("failed", INTEGER, "partitions", "that ended otherwise"),
        known("reason", TEXT, "a sentence", "why it was taken back, or why the heal ended before it; null if neither"),
    ),
    expires_by="ended_ms",
)
_Told = Told[HealingState, Any, NoMemory]


def _put(told: _Told, chunk: int, **values: Any) -> None:
    name: Key = (told.event.cluster, told.event.heal, chunk)
    told.sheet.put("heal_chunks", name, **values)


def _planned(told: _Told) -> None:
    event, heal = told.event, told.state.heal
    brokers = None if heal is None else listed(heal.brokers)
    partitions = len(event.assignments)
    _put(told, event.chunk, state="planned", brokers=brokers, planned_ms=told.at_ms, partitions=partitions)


def _begun(told: _Told) -> None:
    event = told.event
    # Without a plan there was nothing to do any more.
    state, ended_ms = ("begun", None) if event.plan is not None else ("ended", told.at_ms)
    values = {"plan": event.plan, "begun_ms": told.at_ms, "ended_ms": ended_ms, "bytes": event.bytes}
    _put(told, event.chunk, state=state, skipped=len(event.skipped), **values)


def _taken_back(told: _Told) -> None:
    _put(told, told.event.chunk, state="taken-back", reason=told.event.why)


def _ended(told: _Told) -> None:
    event = told.event
    counts = {"healed": event.healed, "cancelled": event.cancelled, "failed": event.failed}
    _put(told, event.chunk, state="ended", ended_ms=told.at_ms, **counts)


def _chunks_of(state: HealingState, _event: healing.HealEnded) -> tuple[int, ...]:
    """Return the chunks that have not begun."""
    return tuple(state.heal_chunks)


def _heal_ended(told: _Told) -> None:
    for chunk in told.before:
        _put(told, chunk, state="dropped", ended_ms=told.at_ms, reason=told.event.why)


TABLES = CapabilityTables(
    name="healing",
    tables=(HEAL_CHUNKS_TABLE,),
    tellings={
        healing.HealChunkPlanned: Telling(_planned),
        healing.HealChunkBegun: Telling(_begun),
        healing.HealChunkTakenBack: Telling(_taken_back),
        healing.HealChunkEnded: Telling(_ended),
        healing.HealEnded: Telling(_heal_ended, _chunks_of),
    },
    untold=frozenset(
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
