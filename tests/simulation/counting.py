"""What plans and slots count, counted once more."""

from collections import Counter
from collections.abc import Iterable

from drover.state.broker_directions import BrokerDirection
from drover.state.cluster import ClusterState
from drover.state.plans import PlanStatus
from drover.state.reassignment import Step


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


def slots_taken(steps: Iterable[Step]) -> Counter[BrokerDirection]:
    """Count the sixteenths of slots that steps take: a mebibyte is a whole slot, what is not known, too."""
    taken: Counter[BrokerDirection] = Counter()
    for step in steps:
        size = 1 << 20 if step.copy_bytes is None else step.copy_bytes
        share = next((one for one in (1, 2, 4, 8) if size <= one << 16), 16)
        for direction in step.load:
            taken[direction] += share
    return taken
