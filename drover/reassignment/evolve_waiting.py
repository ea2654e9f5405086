"""The fold of what waits to be decided, and of moves that others have begun."""

from typing import assert_never

from drover.reassignment.evolve_plans import stop_waiting, wait
from drover.reassignment.foreign import ForeignMove
from drover.reassignment.state import ClusterState
from drover.reassignment.waiting import HeldCommand, QueueEntry
from events.foreign import ForeignMoveEnded, ForeignMoveSeen
from events.records import ForeignEvent, WaitingEvent
from events.waiting import CommandHeld, CommandReleased, QueueEntryAdded, QueueEntryRemoved, QueueExit


def apply(state: ClusterState, event: WaitingEvent | ForeignEvent, at_ms: int) -> None:
    """Fold one event."""
    match event:
        case CommandHeld():
            state.held[event.id] = HeldCommand(event.payload, event.topic, event.offset, at_ms)
        case CommandReleased():
            del state.held[event.id]
        case QueueEntryAdded():
            assert event.key not in state.queue, f"{event.key} is in the queue already"
            state.queue[event.key] = QueueEntry(
                id=event.id,
                plan=event.plan,
                target=event.target,
                since_ms=at_ms,
                original_replicas=event.original_replicas,
                allow_replication_factor_change=event.allow_replication_factor_change,
                allow_drover_topics=event.allow_drover_topics,
            )
            wait(state, event.plan)
        case QueueEntryRemoved():
            entry = state.queue.pop(event.key)
            stop_waiting(state, entry.plan, withdrawn=event.why is not QueueExit.STARTED)
        case ForeignMoveSeen():
            known = state.foreign.get(event.key)
            since_ms = at_ms if known is None else known.since_ms
            state.foreign[event.key] = ForeignMove(event.replicas, event.adding, event.removing, since_ms)
        case ForeignMoveEnded():
            del state.foreign[event.key]
        case _:
            assert_never(event)
