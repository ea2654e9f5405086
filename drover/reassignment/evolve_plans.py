"""The fold of plans: what they are, how many of their reassignments are under way, and how those ended."""

from typing import assert_never

from msgspec.structs import replace

from drover.reassignment.foreign import LATE_MS, GivenUp
from drover.reassignment.state import ClusterState, Plan, PlanStatus, Reassignment
from events import plans
from events.reassignments import (
    ReassignmentCompleted,
    ReassignmentFailed,
    ReassignmentRolledBack,
    ReassignmentStopped,
)
from events.records import PlanEvent

Ending = ReassignmentCompleted | ReassignmentRolledBack | ReassignmentStopped | ReassignmentFailed


def evolve(before: Plan | None, event: PlanEvent, at_ms: int) -> Plan:
    """Fold one event into one plan."""
    if isinstance(event, plans.PlanOpened):
        return Plan(name=event.plan, by=event.by, reason=event.reason, opened_ms=at_ms, extended_ms=at_ms)
    assert before is not None, f"plan {event.plan} was never opened"
    match event:
        case plans.PlanExtended():
            return replace(before, more=event.more, extended_ms=at_ms)
        case plans.PlanThrottleSet():
            return replace(before, throttle_bytes_per_second=event.bytes_per_second)
        case plans.PlanCancelled():
            return replace(before, status=PlanStatus.CANCELLED, more=False)
        case plans.PlanFinished():
            if before.status is PlanStatus.CANCELLED:
                return before
            return replace(before, status=PlanStatus.FINISHED)
        case _:
            assert_never(event)


def end(state: ClusterState, event: Ending, at_ms: int) -> None:
    """Let a reassignment go: count its end, and remember what a call of unknown outcome may still do to it."""
    before = state.reassignments[event.key]
    state.drop(before)
    state.plans[before.plan] = _count_ended(state.plans[before.plan], event)
    if before.replacement is not None:
        # Whether it is queued now is the next event's to say; it waits no more.
        stop_waiting(state, before.replacement.plan)
    _remember(state, before, event, at_ms)


def wait(state: ClusterState, name: str) -> None:
    """Count one more target of a plan that is to be queued later."""
    plan = state.plans[name]
    state.plans[name] = replace(plan, waiting=plan.waiting + 1)


def stop_waiting(state: ClusterState, name: str, *, withdrawn: bool = False) -> None:
    """Count one target less that is to be queued later; `withdrawn` says that it never will be."""
    plan = state.plans[name]
    state.plans[name] = replace(plan, waiting=plan.waiting - 1, withdrawn=plan.withdrawn + withdrawn)


def _count_ended(plan: Plan, event: Ending) -> Plan:
    active = plan.active - 1
    match event:
        case ReassignmentCompleted():
            return replace(plan, active=active, completed=plan.completed + 1)
        case ReassignmentRolledBack():
            return replace(plan, active=active, rolled_back=plan.rolled_back + 1)
        case ReassignmentStopped():
            return replace(plan, active=active, stopped=plan.stopped + 1)
        case ReassignmentFailed():
            return replace(plan, active=active, failed=plan.failed + 1)
        case _:
            assert_never(event)


def _remember(state: ClusterState, before: Reassignment, event: Ending, at_ms: int) -> None:
    if not state.given_up and not before.lost_lists:
        return
    if state.given_up:
        horizon_ms = at_ms - LATE_MS
        state.given_up = {key: known for key, known in state.given_up.items() if known.ended_ms > horizon_ms}
    # What an earlier reassignment may still do counts on, but for what this one has come to itself.
    earlier = state.given_up.pop(before.key, None)
    known = () if earlier is None or earlier.topic_id != before.topic_id else earlier.sent
    sent = tuple(replicas for replicas in dict.fromkeys((*known, *before.lost_lists)) if replicas != event.replicas)
    if sent:
        state.given_up[before.key] = GivenUp(before.topic_id, before.plan, sent, event.replicas, at_ms)
