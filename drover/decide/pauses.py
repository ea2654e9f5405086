"""Decide to pause a plan and to resume it."""

from drover.decide.decision import Decision, Facts, refuse
from drover.events.commands import PausePlan, ResumePlan
from drover.events.plans import PlanPaused, PlanResumed
from drover.events.refusals import RefusalCode
from drover.state.plans import PlansState, PlanStatus


def decide_pause(command: PausePlan, state: PlansState, _facts: Facts) -> Decision:
    """Let no further step of a plan begin; has no effect on one that is paused already."""
    name = command.plan
    plan = state.plans.get(name)
    if plan is None:
        return refuse(RefusalCode.UNKNOWN_PLAN, f"there is no plan {name} in {state.name}", plan=name)
    if plan.is_idle and plan.status is not PlanStatus.OPEN:
        return refuse(RefusalCode.PLAN_CLOSED, f"plan {name} is {plan.status}: there is nothing to pause", plan=name)
    pause = state.paused_plans.get(name)
    if pause is not None:
        remark = f"plan {name} was paused by {pause.by} already ({pause.reason}), and remains so"
        return Decision(plan=name, remarks=(remark,))
    event = PlanPaused(cluster=state.name, plan=name, by=command.by, reason=command.reason)
    return Decision(events=(event,), plan=name)


def decide_resume(command: ResumePlan, state: PlansState, _facts: Facts) -> Decision:
    """Let steps of a plan begin again, no matter who paused it; no effect on a plan that is not paused."""
    name = command.plan
    if name not in state.plans:
        return refuse(RefusalCode.UNKNOWN_PLAN, f"there is no plan {name} in {state.name}", plan=name)
    if name not in state.paused_plans:
        return Decision(plan=name, remarks=(f"plan {name} was not paused",))
    event = PlanResumed(cluster=state.name, plan=name, by=command.by, reason=command.reason)
    return Decision(events=(event,), plan=name)
