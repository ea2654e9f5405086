"""The fold of plans: their properties, and the counts of their reassignments by result."""

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard, get_args

from msgspec.structs import replace

from drover.events import plans
from drover.events.base import Event
from drover.events.reassignments import (
    ReassignmentCompleted,
    ReassignmentFailed,
    ReassignmentRolledBack,
    ReassignmentStopped,
)
from drover.state.cluster import ClusterState
from drover.state.plans import ClusterThrottle, Copied, Pause, Plan, PlanGoal, PlansState, PlanStatus

NOTHING_COPIED = Copied()
Ending = ReassignmentCompleted | ReassignmentRolledBack | ReassignmentStopped | ReassignmentFailed
ENDINGS: frozenset[type[Event]] = frozenset(get_args(Ending))


def is_ending(event: Event) -> TypeGuard[Ending]:
    """Whether an event ends a reassignment.

    It compares types, because it is called several times per event and `isinstance` takes ten times as long with
    structs.
    """
    return type(event) in ENDINGS


def start_move(state: PlansState, name: str) -> None:
    """Count one more reassignment of a plan that has not ended."""
    before = state.plans[name]
    plan = replace(before, active=before.active + 1)
    if before.active:
        state.plans[name] = plan  # not idle before, not idle now: no index changes
    else:
        state.put_plan(plan)


def _roll_back(plan: Plan, active: int) -> Plan:
    return replace(plan, active=active, rolled_back=plan.rolled_back + 1)


def _stop(plan: Plan, active: int) -> Plan:
    return replace(plan, active=active, stopped=plan.stopped + 1)


def _fail(plan: Plan, active: int) -> Plan:
    return replace(plan, active=active, failed=plan.failed + 1)


_COUNT_END: Mapping[type[Ending], Callable[[Plan, int], Plan]] = {
    ReassignmentRolledBack: _roll_back,
    ReassignmentStopped: _stop,
    ReassignmentFailed: _fail,
}


def end_move(state: PlansState, name: str, event: Ending, at_ms: int) -> None:
    """Count the end of one of a plan's reassignments by its kind."""
    before = state.plans[name]
    if type(event) is ReassignmentCompleted:  # the most frequent by far
        if not event.bytes_unknown:
            copied = state.copied.get(name, NOTHING_COPIED)
            state.copied[name] = Copied(copied.partitions + 1, copied.bytes + event.bytes_copied)
        plan = replace(before, active=before.active - 1, completed=before.completed + 1)
    else:
        plan = _COUNT_END[type(event)](before, before.active - 1)
    if plan.active:
        state.plans[name] = plan  # not idle before, not idle now: no index changes
    else:
        _put(state, plan, at_ms)


def wait(state: PlansState, name: str) -> None:
    """Count another target of a plan that waits to be accepted."""
    plan = state.plans[name]
    state.put_plan(replace(plan, waiting=plan.waiting + 1))


def stop_waiting(state: PlansState, name: str, at_ms: int, *, withdrawn: bool = False) -> None:
    """Count one waiting target less; `withdrawn` says that it will never be accepted."""
    plan = state.plans[name]
    _put(state, replace(plan, waiting=plan.waiting - 1, withdrawn=plan.withdrawn + withdrawn), at_ms)


def _put(state: PlansState, plan: Plan, at_ms: int) -> None:
    state.put_plan(plan)
    if plan.is_idle and plan.status is not PlanStatus.OPEN:
        state.ended_plans.pop(plan.name, None)
        state.ended_plans[plan.name] = at_ms


def _opened(state: PlansState, event: plans.PlanOpened, at_ms: int) -> None:
    state.put_plan(Plan(name=event.plan, by=event.by, reason=event.reason, opened_ms=at_ms, extended_ms=at_ms))
    _step(state, event)
    _aim(state, event)


def _extended(state: PlansState, event: plans.PlanExtended, at_ms: int) -> None:
    state.put_plan(replace(state.plans[event.plan], more=event.more, extended_ms=at_ms))
    _step(state, event)
    _aim(state, event)


def _step(state: PlansState, event: plans.PlanOpened | plans.PlanExtended) -> None:
    if event.stepping is not None:
        state.steppings[event.plan] = event.stepping
    if event.priority is not None:
        state.priorities[event.plan] = event.priority


def _aim(state: PlansState, event: plans.PlanOpened | plans.PlanExtended) -> None:
    if event.empties or event.fills:
        before = state.goals.get(event.plan, PlanGoal())
        empties, fills = (*before.empties, *event.empties), (*before.fills, *event.fills)
        state.goals[event.plan] = PlanGoal(tuple(sorted(set(empties))), tuple(sorted(set(fills))))


def _paused(state: PlansState, event: plans.PlanPaused, at_ms: int) -> None:
    state.paused_plans[event.plan] = Pause(event.by, event.reason, at_ms)


def _resumed(state: PlansState, event: plans.PlanResumed, _at_ms: int) -> None:
    state.paused_plans.pop(event.plan, None)


def _throttle_set(state: PlansState, event: plans.PlanThrottleSet, _at_ms: int) -> None:
    plan = state.plans[event.plan]
    state.put_plan(replace(plan, throttle_bytes_per_second=event.bytes_per_second))
    state.throttle_bounds.pop(event.plan, None)
    if event.may_rise_to is not None:
        state.throttle_bounds[event.plan] = event.may_rise_to


def _throttle_cleared(state: PlansState, event: plans.PlanThrottleCleared, _at_ms: int) -> None:
    state.put_plan(replace(state.plans[event.plan], throttle_bytes_per_second=None))
    state.throttle_bounds.pop(event.plan, None)


def _throttle_raised(state: PlansState, event: plans.PlanThrottleRaised, _at_ms: int) -> None:
    state.put_plan(replace(state.plans[event.plan], throttle_bytes_per_second=event.bytes_per_second))


def _cluster_throttle_set(state: PlansState, event: plans.ClusterThrottleSet, at_ms: int) -> None:
    rate = event.bytes_per_second
    state.cluster_throttle = None if rate is None else ClusterThrottle(rate, event.by, event.reason, at_ms)


def _cancelled(state: ClusterState, event: plans.PlanCancelled, at_ms: int) -> None:
    _put(state, replace(state.plans[event.plan], status=PlanStatus.CANCELLED, more=False), at_ms)
    state.goals.pop(event.plan, None)
    state.forget_windows(event.plan)


def _finished(state: ClusterState, event: plans.PlanFinished, at_ms: int) -> None:
    plan = state.plans[event.plan]
    state.goals.pop(event.plan, None)
    state.forget_windows(event.plan)
    if plan.status is not PlanStatus.CANCELLED:
        _put(state, replace(plan, status=PlanStatus.FINISHED), at_ms)


def _forgotten(state: PlansState, event: plans.PlansForgotten, _at_ms: int) -> None:
    for name in event.plans:
        del state.plans[name]
        del state.ended_plans[name]
        for by_plan in (
            state.steppings,
            state.throttle_bounds,
            state.priorities,
            state.paused_plans,
            state.copied,
        ):
            by_plan.pop(name, None)


APPLYING: Mapping[type[Event], Callable[[Any, Any, int], None]] = {
    plans.PlanOpened: _opened,
    plans.PlanExtended: _extended,
    plans.PlanThrottleSet: _throttle_set,
    plans.PlanThrottleCleared: _throttle_cleared,
    plans.PlanThrottleRaised: _throttle_raised,
    plans.ClusterThrottleSet: _cluster_throttle_set,
    plans.PlanPaused: _paused,
    plans.PlanResumed: _resumed,
    plans.PlanCancelled: _cancelled,
    plans.PlanFinished: _finished,
    plans.PlansForgotten: _forgotten,
}
