"""Decide throttles: of a plan, and of the cluster for plans without one of their own."""

from drover.decide.decision import Decision, Facts, refuse
from drover.events.commands import Throttle
from drover.events.plans import ClusterThrottleSet, PlanThrottleCleared, PlanThrottleSet
from drover.events.refusals import RefusalCode
from drover.state.plans import Plan, PlansState, PlanStatus


def decide_throttle(command: Throttle, state: PlansState, _facts: Facts) -> Decision:
    """Set the rate of the cluster, of an open plan, or of a cancelled one with partitions still on their way back."""
    if command.plan is None:
        return _decide_cluster(command, state)
    plan = state.plans.get(command.plan)
    if plan is None:
        return refuse(RefusalCode.UNKNOWN_PLAN, f"there is no plan {command.plan} in {state.name}", plan=command.plan)
    if plan.is_idle and plan.status is not PlanStatus.OPEN:
        detail = f"plan {command.plan} is {plan.status} and nothing of it is moving: there is nothing to throttle"
        return refuse(RefusalCode.PLAN_CLOSED, detail, plan=command.plan)
    return _decide_plan(command, plan, state)


def _decide_plan(command: Throttle, plan: Plan, state: PlansState) -> Decision:
    rate, bound = command.bytes_per_second, state.throttle_bounds.get(plan.name)
    said = _cleared_remark(plan.name, state) if rate is None else rate_remark(plan.name, rate, command.may_rise_to)
    if plan.throttle_bytes_per_second == rate and bound == command.may_rise_to:
        return Decision(plan=plan.name, remarks=(f"{said}, as before",))
    event = (
        PlanThrottleCleared(cluster=state.name, plan=plan.name)
        if rate is None
        else PlanThrottleSet(cluster=state.name, plan=plan.name, bytes_per_second=rate, may_rise_to=command.may_rise_to)
    )
    return Decision(events=(event,), plan=plan.name, remarks=(said,))


def _decide_cluster(command: Throttle, state: PlansState) -> Decision:
    rate, before = command.bytes_per_second, state.cluster_throttle
    predicate = "are not throttled" if rate is None else f"are throttled to {rate:,} bytes per second per broker"
    said = f"plans of {state.name} without a throttle of their own {predicate}"
    own = [plan.name for plan in state.plans.values() if plan.active and plan.throttle_bytes_per_second is not None]
    kept = f"plans under way with a throttle of their own: {len(own)} (`drover throttle set PLAN none`)"
    remarks = (said, *((kept,) if own else ()))
    if (None if before is None else before.bytes_per_second) == rate:
        return Decision(remarks=(f"{said}, as before",))
    event = ClusterThrottleSet(cluster=state.name, bytes_per_second=rate, by=command.by, reason=command.reason)
    return Decision(events=(event,), remarks=remarks)


def rate_remark(plan: str, rate: int, bound: int | None = None) -> str:
    """Repeat a throttle in a remark, so that a mistake of units is noticed."""
    rise = "" if bound is None else f", and Drover may raise it to {bound:,}"
    return f"plan {plan} is throttled to {rate:,} bytes per second per broker{rise}"


def _cleared_remark(plan: str, state: PlansState) -> str:
    throttle = state.cluster_throttle
    otherwise = (
        "and the cluster has none" if throttle is None else f"the cluster's holds: {throttle.bytes_per_second:,}"
    )
    return f"plan {plan} has no throttle of its own, {otherwise}"
