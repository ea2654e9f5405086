"""The effect of a reassignment's end on the canonical order of its partition's list.

These events are in the record of the end. Its own target's order is canonical for a partition that was moved; for one
that was rolled back it is the order that was kept before.
"""

from drover.leadership.order import canonical_after, deprioritise
from drover.leadership.state import LeadershipState
from drover.plans.evolve import Ending
from drover.reassignment.state import Reassignment
from drover.reassignment.verdict import event_name
from events.leadership import LeaderOrderChanged, LeaderOrderEnded, LeaderOrderKept, OrderEnd
from events.partitions import TopicPartition
from events.reassignments import (
    FailureReason,
    ReassignmentCompleted,
    ReassignmentFailed,
    ReassignmentRolledBack,
    ReassignmentStopped,
)

PLAN_PREFIX = "drover-leaders-"

OrderEvent = LeaderOrderKept | LeaderOrderChanged | LeaderOrderEnded


def is_reorder(reassignment: Reassignment) -> bool:
    """Whether it is a reorder that Drover has begun for the sake of leadership; no command may use such a plan."""
    return reassignment.plan.startswith(PLAN_PREFIX)


def order_after(state: LeadershipState, reassignment: Reassignment, ending: Ending) -> tuple[OrderEvent, ...]:
    """Say what becomes of the canonical order when this reassignment ends; nothing if that needs no record."""
    key, replicas = reassignment.key, ending.replicas
    name = event_name(state.name, key)
    kept = state.orders.get(key)
    if isinstance(ending, ReassignmentCompleted) and not is_reorder(reassignment):
        canonical = reassignment.target
    elif _is_unsent(ending):
        return ()
    elif kept is None:
        return _order_of_a_rollback(state, reassignment, ending)
    elif isinstance(ending, ReassignmentFailed):
        # What others did is judged when it is seen; a topic that is gone has no order any more.
        gone = ending.why is FailureReason.PARTITION_GONE
        return (LeaderOrderEnded(**name, why=OrderEnd.GONE, replicas=replicas),) if gone else ()
    elif is_reorder(reassignment):
        return () if replicas == kept.replicas else (LeaderOrderChanged(**name, replicas=replicas),)
    else:
        canonical = canonical_after(kept.canonical, replicas)
    if canonical == replicas:
        return () if kept is None else (LeaderOrderEnded(**name, why=OrderEnd.MOVED, replicas=replicas),)
    if kept is not None and (kept.canonical, kept.replicas, kept.left_alone) == (canonical, replicas, False):
        return ()
    return (LeaderOrderKept(**name, topic_id=reassignment.topic_id, canonical=canonical, replicas=replicas),)


def now_canonical(state: LeadershipState, key: TopicPartition, replicas: tuple[int, ...]) -> tuple[OrderEvent, ...]:
    """Say that the order of a list is what somebody asks for: no other one is restored later."""
    kept = state.orders.get(key)
    if kept is None or kept.canonical == replicas:
        return ()
    return (LeaderOrderEnded(**event_name(state.name, key), why=OrderEnd.MOVED, replicas=replicas),)


def _order_of_a_rollback(state: LeadershipState, reassignment: Reassignment, ending: Ending) -> tuple[OrderEvent, ...]:
    """Keep the original order where the list was sent back with brokers that should not lead put last (X9)."""
    key, replicas = reassignment.key, ending.replicas
    canonical = canonical_after(reassignment.original, replicas)
    is_todays = replicas == deprioritise(canonical, state.listed_for(key.topic))
    if not isinstance(ending, ReassignmentRolledBack) or canonical == replicas or not is_todays:
        return ()
    name = event_name(state.name, key)
    return (LeaderOrderKept(**name, topic_id=reassignment.topic_id, canonical=canonical, replicas=replicas),)


def _is_unsent(ending: Ending) -> bool:
    """Whether it ended before anything was sent: the list is what it was."""
    return isinstance(ending, ReassignmentRolledBack | ReassignmentStopped) and not ending.started
