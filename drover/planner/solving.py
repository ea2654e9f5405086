"""Solving: which part of the planner reaches which goal."""

from drover.planner.budget import Budget
from drover.planner.emptying import drain, empty, heal, replace
from drover.planner.evening import add, balance, balance_leaders, bounds_of, lead_in_racks
from drover.planner.factor import set_replication_factor
from drover.planner.goals import (
    Add,
    Balance,
    Drain,
    Evacuate,
    Goal,
    Heal,
    Leaders,
    Replace,
    SetReplicationFactor,
    Spread,
    TopicSpread,
)
from drover.planner.layout import Layout
from drover.planner.loads import Measures, measures_of
from drover.planner.model import ClusterModel
from drover.planner.placing import Solution
from drover.planner.spreading import leaves_out_brokers, spread


def leaving_of(model: ClusterModel, goal: Goal) -> frozenset[int]:
    """Name the brokers that a goal empties."""
    match goal:
        case Drain(brokers) | Heal(brokers, _):
            return frozenset(brokers)
        case Replace(broker, _):
            return frozenset((broker,))
        case Evacuate(rack):
            return frozenset(broker.id for broker in model.brokers if broker.rack == rack)
        case Add() | Balance() | SetReplicationFactor() | Spread() | Leaders():
            return frozenset()


def filled_by(goal: Goal) -> frozenset[int]:
    """Name the brokers that a goal fills because they have joined."""
    match goal:
        case Add(brokers):
            return frozenset(brokers)
        case Replace(_, replacement):
            return frozenset((replacement,))
        case _:
            return frozenset()


def solve(layout: Layout, goal: Goal, budget: Budget) -> Solution:
    """Change the layout so that it reaches the goal as far as it can."""
    solution = Solution()
    measures = measures_of(layout.model)
    asks_for_limits = not measures.absolute.isdisjoint(layout.limits.limits)
    if measures.has_rates or asks_for_limits or layout.limits.asks_for_bands or layout.model.min_leaders:
        _solve_by_load(layout, goal, budget, solution, measures)
    else:
        _solve_by_count(layout, goal, budget, solution)
    return solution


def _solve_by_count(layout: Layout, goal: Goal, budget: Budget, solution: Solution) -> None:
    """Reach a goal by replicas, bytes and leaders alone."""
    match goal:
        case Drain() | Evacuate():
            drain(layout, solution, budget)
        case Heal():
            heal(layout, solution, budget, goal)
        case Replace(_, replacement):
            replace(layout, solution, budget, replacement)
        case Add(brokers):
            add(layout, solution, budget, brokers)
        case Balance():
            balance(layout, solution, budget, goal)
            _spread_topics(layout, goal, budget, solution)
        case SetReplicationFactor(topics, factor):
            set_replication_factor(layout, solution, budget, frozenset(topics), factor)
        case Spread():
            spread(layout, solution, budget)
        case Leaders():
            balance_leaders(layout, solution, budget)


def _spread_topics(layout: Layout, goal: Balance, budget: Budget, solution: Solution) -> None:
    """Bring topics to the brokers that have nothing of them, where they have several replicas for each broker."""
    if layout.limits.topic_spread is TopicSpread.OFF or not leaves_out_brokers(layout):
        return
    # numpy costs start-up time, and few commands need it.
    from drover.planner.weighing import copied_of, level_all  # noqa: PLC0415

    most_bytes, most_moves = bounds_of(goal)
    copied, moved = copied_of(layout)
    level_all(layout, solution, budget, measures_of(layout.model), (most_bytes - copied, most_moves - moved))


def _solve_by_load(layout: Layout, goal: Goal, budget: Budget, solution: Solution, measures: Measures) -> None:
    """Reach a goal by every load that is known."""
    # numpy costs start-up time, and few commands need it.
    from drover.planner.levelling import Reorders  # noqa: PLC0415
    from drover.planner.weighing import level_all, level_copies, level_orders, spare, spare_copies  # noqa: PLC0415

    match goal:
        case Drain() | Evacuate():
            touched = empty(layout, solution, budget)
            level_copies(layout, solution, budget, measures, touched)
            spare(layout, solution, budget, measures)
        case Heal():
            heal(layout, solution, budget, goal)
            level_copies(layout, solution, budget, measures, solution.partitions, reorders=Reorders.NONE)
            spare_copies(layout, solution, budget, measures, reorders=Reorders.NONE)
        case Replace(_, replacement):
            replace(layout, solution, budget, replacement)
            level_copies(
                layout, solution, budget, measures, solution.partitions, fixed=(replacement,), reorders=Reorders.NONE
            )
            spare_copies(layout, solution, budget, measures)
        case Add(brokers):
            layout.receive_only(brokers)
            level_all(layout, solution, budget, measures, filling=True)
        case Balance():
            most_bytes, most_moves = bounds_of(goal)
            copied, moved = spread(layout, solution, budget, most_bytes, most_moves)
            lead_in_racks(layout, solution, budget)
            level_all(layout, solution, budget, measures, (most_bytes - copied, most_moves - moved))
        case SetReplicationFactor(topics, factor):
            set_replication_factor(layout, solution, budget, frozenset(topics), factor)
            level_copies(layout, solution, budget, measures, solution.partitions, reorders=Reorders.NONE)
            spare_copies(layout, solution, budget, measures)
        case Spread():
            spread(layout, solution, budget)
            spare_copies(layout, solution, budget, measures)
        case Leaders():
            lead_in_racks(layout, solution, budget)
            level_orders(layout, solution, budget, measures)
