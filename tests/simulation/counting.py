"""What plans count, counted once more."""

from collections import Counter

from drover.plans.state import PlanStatus
from drover.state.cluster import ClusterState


def plans_agree(state: ClusterState) -> None:
    """Each plan counts what is there of it: under way, in the queue, behind another move; a finished one nothing."""
    moving = state.reassignments.values()
    active = Counter(entry.plan for entry in moving)
    waiting = Counter(entry.plan for entry in state.queue.values())
    waiting.update(entry.replacement.plan for entry in moving if entry.replacement is not None)
    assert {*active, *waiting} <= state.plans.keys()
    for plan in state.plans.values():
        assert (plan.active, plan.waiting) == (active[plan.name], waiting[plan.name]), f"{plan} counts wrong"
        assert plan.is_idle or plan.status is not PlanStatus.FINISHED, f"{plan} has finished too early"
