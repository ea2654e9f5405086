"""Moves that are not Drover's: which of them are recorded, and how one is taken over in order to be cancelled.

Drover shows them and leaves them alone, with two exceptions that end as a rollback under a plan of their own: a move
that Kafka can never end, when an operator or a setting asks for it; and the late effect of a call of Drover's own.
"""

import heapq
from collections.abc import Iterable, Mapping

from drover.decide.late_calls import expired_calls
from drover.decide.plan_names import unused_plan_name
from drover.decide.replica_sets import without
from drover.decide.verdict import DROVER, event_name
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanOpened
from drover.events.reassignments import LateChangeFound, ReassignmentAdopted
from drover.events.records import AnyEvent
from drover.events.unmanaged import UnmanagedMoveEnded, UnmanagedMoveSeen
from drover.facts import Move, PartitionFacts
from drover.state.cluster import ClusterState

# How long a move must look endless before a setting alone has it cancelled.
ENDLESS_AFTER_MS = 10_000
# A cluster may have any number of them; this many are recorded at a time. Those that can never end come first.
MAX_UNMANAGED_MOVES = 1000


def unrecorded(
    state: ClusterState, moves: Mapping[TopicPartition, Move], others: Iterable[TopicPartition], at_ms: int
) -> dict[TopicPartition, Move | None]:
    """Return where recorded unmanaged moves differ from Kafka's listing: the listed move, None if it is gone.

    `others` are the listed partitions that Drover does not have in flight.
    """
    differing: dict[TopicPartition, Move | None] = {}
    for key, recorded in state.unmanaged.items():
        move = moves.get(key)
        if move is None or key in state.moves.in_flight:
            differing[key] = None
        elif (move.replicas, move.adding, move.removing) != (recorded.replicas, recorded.adding, recorded.removing):
            differing[key] = move
    room = MAX_UNMANAGED_MOVES - len(state.unmanaged)
    if room > 0:
        new = (
            (not move.never_ends, key)
            for key, move in ((key, moves[key]) for key in others)
            if key not in state.unmanaged and not _is_late(state, key, move, at_ms)
        )
        differing |= {key: moves[key] for _, key in heapq.nsmallest(room, new)}
    return differing


def record(state: ClusterState, key: TopicPartition, move: Move | None) -> AnyEvent:
    """Record that an unmanaged move was seen, or that it has ended (None)."""
    name = event_name(state.name, key)
    if move is None:
        return UnmanagedMoveEnded(**name)
    return UnmanagedMoveSeen(**name, replicas=move.replicas, adding=move.adding, removing=move.removing)


def correct_late(state: ClusterState, key: TopicPartition, seen: PartitionFacts, at_ms: int) -> tuple[AnyEvent, ...]:
    """Take over the late effect of an expired call in order to roll it back; empty without one.

    If the late list is in place already and restoring would copy data, it is only recorded; an operator has to ask.
    """
    expired = expired_calls(state, key, at_ms)
    moving_to = seen.replicas if seen.move is None else seen.move.target
    if expired is None or expired.topic_id != seen.topic_id or moving_to not in expired.sent:
        return ()
    name = event_name(state.name, key)
    late = LateChangeFound(**name, plan=expired.plan, sent=moving_to, replicas=seen.replicas)
    if seen.move is None and not set(seen.replicas) >= set(expired.replicas):
        return (late,)
    plan = _own_plan(state, "late")
    reason = f"a call of plan {expired.plan} for {list(moving_to)} took effect after it had been given up"
    return (
        late,
        PlanOpened(cluster=state.name, plan=plan, by=DROVER, reason=reason),
        *_adopt(state, key, plan, seen, expired.replicas, moving_to),
    )


def repair_unasked(state: ClusterState, key: TopicPartition, seen: PartitionFacts) -> tuple[AnyEvent, ...]:
    """Take over an unmanaged move that can never end, if `repairs_by_itself` is set; else empty."""
    move = seen.move
    if not state.limits.repairs_by_itself or key not in state.unmanaged or move is None or not is_repairable(seen):
        return ()
    plan = _own_plan(state, "repair")
    brokers = ", ".join(map(str, move.never_ends))
    reason = f"broker {brokers} is being both added and removed, which Kafka never ends"
    opened = PlanOpened(cluster=state.name, plan=plan, by=DROVER, reason=reason)
    return (opened, *adopt_stuck(state, key, plan, seen))


def is_repairable(seen: PartitionFacts) -> bool:
    """Whether a move can never end, and Kafka's cancel would leave a replica."""
    return seen.is_endless and seen.move is not None and bool(without(seen.move.replicas, seen.move.adding))


def adopt_stuck(state: ClusterState, key: TopicPartition, plan: str, seen: PartitionFacts) -> tuple[AnyEvent, ...]:
    """Take over a move that `is_repairable` under an open plan: it ends at the list that Kafka's cancel leaves."""
    assert seen.move is not None, f"{key} is not moving"
    original = without(seen.move.replicas, seen.move.adding)
    return _adopt(state, key, plan, seen, original, seen.move.target)


def _adopt(
    state: ClusterState,
    key: TopicPartition,
    plan: str,
    seen: PartitionFacts,
    original: tuple[int, ...],
    moving_to: tuple[int, ...],
) -> tuple[AnyEvent, ...]:
    name = event_name(state.name, key)
    adopted = ReassignmentAdopted(
        **name, topic_id=seen.topic_id, plan=plan, original=original, expected=original, replicas=moving_to
    )
    return (UnmanagedMoveEnded(**name), adopted) if key in state.unmanaged else (adopted,)


def _own_plan(state: ClusterState, why: str) -> str:
    """Name a plan of Drover's own; numbers are never used twice, but a client may have taken the name."""
    return unused_plan_name(state, f"drover-{why}-{state.next_number}")


def _is_late(state: ClusterState, key: TopicPartition, move: Move, at_ms: int) -> bool:
    expired = expired_calls(state, key, at_ms)
    return expired is not None and move.target in expired.sent
