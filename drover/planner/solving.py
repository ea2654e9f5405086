"""Solving: which part of the planner reaches which goal."""

from drover.planner.budget import Budget
from drover.planner.emptying import drain, heal, replace
from drover.planner.evening import add, balance, balance_leaders
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
)
from drover.planner.layout import Layout
from drover.planner.model import ClusterModel
from drover.planner.placing import Solution
from drover.planner.spreading import spread


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
        case SetReplicationFactor(topics, factor):
            set_replication_factor(layout, solution, budget, frozenset(topics), factor)
        case Spread():
            spread(layout, solution, budget)
        case Leaders():
            balance_leaders(layout, solution, budget)
    return solution
