"""Deciding about the throttle of a plan."""

from drover.capability.decision import Decision, Facts, refuse
from drover.plans.state import PlansState, PlanStatus
from events.commands import Throttle
from events.plans import PlanThrottleSet
from events.refusals import RefusalCode


def decide_throttle(command: Throttle, state: PlansState, _facts: Facts) -> Decision:
    """Set the rate of a plan that is open, or of which something is still on its way back."""
    plan = state.plans.get(command.plan)
    if plan is None:
        return refuse(RefusalCode.UNKNOWN_PLAN, f"there is no plan {command.plan} in {state.name}", plan=command.plan)
    if plan.is_idle and plan.status is not PlanStatus.OPEN:
        detail = f"plan {command.plan} is {plan.status} and nothing of it is moving: there is nothing to throttle"
        return refuse(RefusalCode.PLAN_CLOSED, detail, plan=command.plan)
    if plan.throttle_bytes_per_second == command.bytes_per_second:
        remark = f"{told_rate(command.plan, command.bytes_per_second)}, as before"
        return Decision(plan=command.plan, remarks=(remark,))
    event = PlanThrottleSet(cluster=state.name, plan=command.plan, bytes_per_second=command.bytes_per_second)
    return Decision(events=(event,), plan=command.plan, remarks=(told_rate(command.plan, command.bytes_per_second),))


def told_rate(plan: str, rate: int) -> str:
    """Say a throttle back, so that a mistake of units is seen."""
    return f"plan {plan} is throttled to {rate:,} bytes per second per broker"
