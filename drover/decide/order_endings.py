"""The effect of a reassignment's end on the canonical order of its partition's list.

These events are in the record of the end. A partition that was moved has its target's order as the canonical one; a
partition that was rolled back has the order that was kept before.
"""

from drover.decide.leader_order import canonical_after, deprioritise
from drover.decide.verdict import event_name
from drover.events.leadership import LeaderOrderChanged, LeaderOrderEnded, LeaderOrderKept, OrderEnd
from drover.events.partitions import TopicPartition
from drover.events.reassignments import (
    Call,
    CallIntended,
    FailureReason,
    ReassignmentCompleted,
    ReassignmentFailed,
    ReassignmentRolledBack,
    ReassignmentStopped,
)
from drover.fold.plans import Ending
from drover.state.leaders import LeadershipState
from drover.state.reassignment import Reassignment

PLAN_PREFIX = "drover-leaders-"

OrderEvent = LeaderOrderKept | LeaderOrderChanged | LeaderOrderEnded


def is_reorder(reassignment: Reassignment) -> bool:
    """Whether it is a reorder that Drover began for leadership; commands may not use such a plan name."""
    return reassignment.plan.startswith(PLAN_PREFIX)


def order_before(state: LeadershipState, reassignment: Reassignment, intended: CallIntended) -> tuple[OrderEvent, ...]:
    """Keep the canonical order before a step puts listed brokers last; it is in the record of the step's intent (X9).

    The last step to a target needs none, since the target becomes the canonical order.
    """
    key, replicas = reassignment.key, intended.replicas
    listed = state.listed_for(key.topic)
    leads_on = intended.final and reassignment.returning_to is None
    if intended.call is not Call.STEP or leads_on or replicas is None:
        return ()
    if state.kept_order(key, reassignment.topic_id) is not None:
        return ()
    canonical = canonical_after(reassignment.original, intended.expected)
    if listed.isdisjoint(canonical) or listed.issuperset(replicas) or is_reorder(reassignment):
        return ()
    name = event_name(state.name, key)
    topic_id = reassignment.topic_id
    return (LeaderOrderKept(**name, topic_id=topic_id, canonical=canonical, replicas=intended.expected),)


def order_after(state: LeadershipState, reassignment: Reassignment, ending: Ending) -> tuple[OrderEvent, ...]:
    """Return the change of the canonical order when this reassignment ends; empty if that needs no record."""
    if _is_unsent(ending):
        return ()
    key, replicas = reassignment.key, ending.replicas
    name = event_name(state.name, key)
    kept = state.orders.get(key)
    ours = state.kept_order(key, reassignment.topic_id)
    if isinstance(ending, ReassignmentCompleted) and not is_reorder(reassignment):
        canonical = reassignment.target
    elif isinstance(ending, ReassignmentFailed):
        # The order of a list that others changed is judged when it is seen; a deleted topic has none.
        gone = kept is not None and ending.why is FailureReason.PARTITION_GONE
        return (LeaderOrderEnded(**name, why=OrderEnd.GONE, replicas=replicas),) if gone else ()
    elif ours is None:
        return _order_of_a_rollback(state, reassignment, ending)
    elif is_reorder(reassignment):
        return () if replicas == ours.replicas else (LeaderOrderChanged(**name, replicas=replicas),)
    else:
        # The original is the canonical order (X9), except of a move taken over from somebody else.
        before = ours.canonical if reassignment.is_adopted else reassignment.original
        canonical = canonical_after(before, replicas)
    if canonical == replicas:
        return () if kept is None else (LeaderOrderEnded(**name, why=OrderEnd.MOVED, replicas=replicas),)
    if ours is not None and (ours.canonical, ours.replicas) == (canonical, replicas):
        return ()
    return (LeaderOrderKept(**name, topic_id=reassignment.topic_id, canonical=canonical, replicas=replicas),)


def now_canonical(
    state: LeadershipState, key: TopicPartition, topic_id: str, replicas: tuple[int, ...]
) -> tuple[OrderEvent, ...]:
    """End a kept order because somebody asks for this order of the list, so that the kept one is not restored later.

    An order kept for a deleted topic of the same name does not apply to this list. It ends as gone, with that topic.
    """
    kept = state.orders.get(key)
    if kept is None or kept.topic_id != topic_id or kept.canonical == replicas:
        return ()
    return (LeaderOrderEnded(**event_name(state.name, key), why=OrderEnd.MOVED, replicas=replicas),)


def _order_of_a_rollback(state: LeadershipState, reassignment: Reassignment, ending: Ending) -> tuple[OrderEvent, ...]:
    """Keep the original order where the list was sent back with brokers that should not lead put last (X9).

    The list of these brokers may have changed since then. The original order is also kept where an unregistered broker
    in the list makes Kafka refuse a new order; it is put back once that broker is registered.
    """
    key, replicas = reassignment.key, ending.replicas
    canonical = canonical_after(reassignment.original, replicas)
    last_step = None if reassignment.step is None else reassignment.step.replicas
    expected = (deprioritise(canonical, state.listed_for(key.topic)), reassignment.restoring, last_step)
    if not isinstance(ending, ReassignmentRolledBack) or canonical == replicas:
        return ()
    if replicas not in expected and set(ending.missing).isdisjoint(replicas):
        return ()
    name = event_name(state.name, key)
    return (LeaderOrderKept(**name, topic_id=reassignment.topic_id, canonical=canonical, replicas=replicas),)


def _is_unsent(ending: Ending) -> bool:
    """Whether it ended before anything was sent, so that the list has not changed."""
    # By type: `isinstance` takes ten times as long with structs, and a cancel may end 100,000.
    return (type(ending) is ReassignmentRolledBack or type(ending) is ReassignmentStopped) and not ending.started
