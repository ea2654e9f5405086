"""The fold of failed and absent brokers, and of healing."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from drover.events import healing
from drover.events.base import Event
from drover.events.brokers import BrokerFailureRecorded, BrokerReturnRecorded
from drover.events.partitions import TopicPartition
from drover.events.reassignments import ReassignmentCreated, ReassignmentRolledBack
from drover.state.cluster import ClusterState
from drover.state.healing import Absence, Brake, Heal, HealChunk, HealedBroker, HealingState, LeftBehind, RunningChunk
from drover.state.limit_names import MOST_RETURNS

HOUR_MS = 3_600_000
_DAY_HOURS = 24
_BACK = frozenset({healing.OutageEnd.RETURNED, healing.OutageEnd.REPORTED_BACK, healing.OutageEnd.UNREACHABLE})


def brake_key(why: healing.BrakeReason, broker: int | None) -> str:
    """Return the key of a brake: its reason, and the broker if it holds for one alone."""
    return why.value if broker is None else f"{why.value}:{broker}"


def _failed(state: HealingState, event: BrokerFailureRecorded, _at_ms: int) -> None:
    state.failed_brokers[event.broker] = event.failed_at_ms


def _returned(state: HealingState, event: BrokerReturnRecorded, _at_ms: int) -> None:
    state.failed_brokers.pop(event.broker, None)


def _noted(state: HealingState, event: healing.BrokerOutageNoted, at_ms: int) -> None:
    """Record an absence with the time of its first record, unless that record's clock was ahead (R46-1)."""
    if event.broker not in state.absent_brokers:
        state.healed_brokers.pop(event.broker, None)
    absence = state.absent_brokers.get(event.broker, Absence(at_ms))
    since_ms = min(absence.since_ms, at_ms)
    state.absent_brokers[event.broker] = replace(absence, since_ms=since_ms, seen=absence.seen or event.seen)
    state.emptied_brokers.pop(event.broker, None)


def _ended(state: HealingState, event: healing.BrokerOutageEnded, at_ms: int) -> None:
    absence = state.absent_brokers.pop(event.broker, None)
    was_seen = absence is not None and absence.seen
    if event.why is healing.OutageEnd.NOT_ASSIGNED and was_seen:
        state.emptied_brokers[event.broker] = at_ms
        return
    state.healed_brokers.pop(event.broker, None)
    if event.why in _BACK:
        state.emptied_brokers.pop(event.broker, None)
        if was_seen:
            earlier = state.recent_returns.get(event.broker, ())
            state.recent_returns[event.broker] = (*earlier, at_ms)[-MOST_RETURNS:]


def _alarmed(state: HealingState, event: healing.BrokerOutageAlarmed, _at_ms: int) -> None:
    state.absent_brokers[event.broker] = replace(state.absent_brokers[event.broker], is_alarmed=True)


def _braked(state: HealingState, event: healing.HealingBraked, at_ms: int) -> None:
    state.healing_brakes[brake_key(event.why, event.broker)] = Brake(event.why, event.detail, at_ms, event.broker)


def _released(state: HealingState, event: healing.HealingReleased, _at_ms: int) -> None:
    state.healing_brakes.pop(brake_key(event.why, event.broker), None)


def _chosen(state: HealingState, event: healing.HealChosen, _at_ms: int) -> None:
    state.absent_brokers[event.broker] = replace(state.absent_brokers[event.broker], choice=event.choice)


def _planned(state: HealingState, event: healing.HealPlanned, at_ms: int) -> None:
    state.heal = Heal(event.heal, event.brokers, event.chunks, event.partitions, event.bytes, at_ms)
    state.heal_chunks = {}
    state.heals_planned = event.number


def _chunk_planned(state: HealingState, event: healing.HealChunkPlanned, _at_ms: int) -> None:
    heal = state.heal
    assert heal is not None, f"{event.heal} has a chunk and no plan"
    state.heal = replace(heal, known_chunks=heal.known_chunks + 1)
    state.heal_chunks[event.chunk] = HealChunk(event.heal, event.chunk, event.assignments)


def _left(state: HealingState, event: healing.HealPartitionsLeft, _at_ms: int) -> None:
    state.heal_left = LeftBehind(event.count, event.partitions) if event.count else None


def _chunk_begun(state: HealingState, event: healing.HealChunkBegun, at_ms: int) -> None:
    heal = state.heal
    assert heal is not None, f"{event.heal} begins a chunk and was not planned"
    chunk = state.heal_chunks.pop(event.chunk)
    state.heal = replace(heal, skipped=heal.skipped + len(event.skipped))
    if event.plan is None:
        return
    skipped = {(partition.topic, partition.partition) for partition in event.skipped}
    keys = (TopicPartition(assignment.topic, assignment.partition) for assignment in chunk.assignments)
    taken = tuple(key for key in keys if key not in skipped)
    state.heal_running = RunningChunk(event.heal, event.chunk, heal.chunks, event.plan, heal.brokers, taken, at_ms)
    hour = at_ms // HOUR_MS
    if event.bytes:
        kept = {each: spent for each, spent in state.heal_bytes.items() if hour - _DAY_HOURS < each <= hour}
        state.heal_bytes = {**kept, hour: kept.get(hour, 0) + event.bytes}


def _chunk_taken_back(state: HealingState, _event: healing.HealChunkTakenBack, _at_ms: int) -> None:
    assert state.heal_running is not None, "no chunk is under way"
    state.heal_running = replace(state.heal_running, is_taken_back=True)


def _chunk_ended(state: HealingState, event: healing.HealChunkEnded, _at_ms: int) -> None:
    running, heal = state.heal_running, state.heal
    state.heal_running, state.heal_superseded = None, {}
    if running is not None and event.healed:
        _note_healed(state, running, event.healed)
    if heal is not None and heal.name == event.heal:
        own = running is not None and running.is_taken_back
        state.heal = replace(
            heal,
            healed=heal.healed + event.healed,
            cancelled=heal.cancelled + (0 if own else event.cancelled),
            failed=heal.failed + event.failed,
        )


def _note_healed(state: HealingState, running: RunningChunk, partitions: int) -> None:
    """Add the partitions of a chunk to those that were healed in this absence of its brokers."""
    for broker in running.brokers:
        healed, absence = state.healed_brokers.get(broker), state.absent_brokers.get(broker)
        if healed is None and absence is not None:
            healed = HealedBroker(absence.since_ms, running.heal, 0)
        if healed is not None:
            state.healed_brokers[broker] = replace(healed, heal=running.heal, partitions=healed.partitions + partitions)


def _heal_ended(state: HealingState, event: healing.HealEnded, _at_ms: int) -> None:
    heal = state.heal
    if event.leaves_rest and heal is not None:
        for broker in heal.brokers:
            if broker in state.absent_brokers:
                state.absent_brokers[broker] = replace(state.absent_brokers[broker], choice=healing.HealChoice.SKIP)
    state.heal, state.heal_chunks = None, {}


def _rolled_back(state: ClusterState, event: ReassignmentRolledBack, _at_ms: int) -> None:
    """Record a partition of the chunk that gave way: another target waits for its end, or no rollback was requested.

    In the second case no replica has moved yet: the list stays as it is, unless the next event brings another target.
    """
    running = state.heal_running
    if running is None:
        return
    before = state.reassignments[event.key]
    if before.plan == running.plan and before.replacement is not None:
        state.heal_superseded[before.key] = before.replacement.target
    elif before.plan == running.plan and before.cancel_mode is None:
        state.heal_superseded[before.key] = event.replicas


def _created(state: ClusterState, event: ReassignmentCreated, _at_ms: int) -> None:
    """Record the target to which a partition of the chunk has given way."""
    if state.heal_superseded and event.key in state.heal_superseded:
        state.heal_superseded[event.key] = event.target


# Rules of healing for events of reassignments; called before those of reassignments, with the state before the event.
BEFORE_REASSIGNMENTS: Mapping[type[Event], Callable[[Any, Any, int], None]] = {
    ReassignmentRolledBack: _rolled_back,
    ReassignmentCreated: _created,
}

APPLYING: Mapping[type[Event], Callable[[Any, Any, int], None]] = {
    BrokerFailureRecorded: _failed,
    BrokerReturnRecorded: _returned,
    healing.BrokerOutageNoted: _noted,
    healing.BrokerOutageEnded: _ended,
    healing.BrokerOutageAlarmed: _alarmed,
    healing.HealingBraked: _braked,
    healing.HealingReleased: _released,
    healing.HealChosen: _chosen,
    healing.HealPlanned: _planned,
    healing.HealChunkPlanned: _chunk_planned,
    healing.HealPartitionsLeft: _left,
    healing.HealChunkBegun: _chunk_begun,
    healing.HealChunkTakenBack: _chunk_taken_back,
    healing.HealChunkEnded: _chunk_ended,
    healing.HealEnded: _heal_ended,
}
