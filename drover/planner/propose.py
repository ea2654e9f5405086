"""Propose: the one way in. A model, a goal and limits make a proposal."""

from collections.abc import Callable
from dataclasses import replace

from drover.planner.assess import move_of, proposal_of
from drover.planner.budget import Budget
from drover.planner.checks import refusals
from drover.planner.goals import DEFAULT_LIMITS, Add, Balance, Goal, Leaders, Limits
from drover.planner.judgement import crowded_racks, left_out
from drover.planner.layout import Layout
from drover.planner.model import ClusterModel
from drover.planner.placement import too_few_leaders
from drover.planner.placing import Solution
from drover.planner.proposal import Move, Proposal, UnmetCode
from drover.planner.solving import leaving_of, solve


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
    refused = refusals(model, goal, limits)
    if refused:
        return replace(proposal_of(model, (), limits, unmet=refused), refused=True)
    leaving = leaving_of(model, goal)
    budget = Budget(limits.work, stop)
    layout = Layout(model, limits, leaving)
    solution = solve(layout, goal, budget)
    moves = _moves(layout, solution)
    named = {(one.topic, one.partition) for one in solution.unmet if one.code is UnmetCode.RACK_SPREAD}
    crowded = crowded_racks(model, [move for move in moves if (move.topic, move.partition) not in named])
    only_fewer = not isinstance(goal, Add | Balance | Leaders)
    few = too_few_leaders(model, moves, only_fewer=only_fewer, leaving=leaving)
    unmet = (*solution.unmet, *left_out(model.brokers, leaving), *crowded, *few)
    return proposal_of(model, moves, limits, leaving=leaving, unmet=unmet, interrupted=budget.spent)


def _moves(layout: Layout, solution: Solution) -> list[Move]:
    """Put the moves in order: partitions that lack living replicas first, then the other copies, orders last."""
    partitions = layout.model.partitions
    alive = {broker.id for broker in layout.model.brokers if broker.alive}
    found = [
        move_of(partitions[index], layout.ordered(index), tuple(dict.fromkeys(solution.reasons[index])))
        for index in layout.changed()
    ]
    found.sort(
        key=lambda move: (
            not any(broker not in alive for broker in move.before),
            not move.adding,
            move.topic,
            move.partition,
        )
    )
    return found
