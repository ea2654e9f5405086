"""Solving: which replicas each goal moves, and which parts of the planner find their places."""

from dataclasses import dataclass, field

from drover.planning.bands import Bands
from drover.planning.budget import Budget
from drover.planning.goals import (
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
from drover.planning.improving import improve
from drover.planning.layout import Layout
from drover.planning.leading import Leading
from drover.planning.model import ClusterModel
from drover.planning.placing import Placement, replace_all
from drover.planning.proposal import Reason, Unmet, UnmetCode
from drover.planning.trimming import shrink, take_back
from drover.planning.rebalancing import Rebalancing


@dataclass(slots=True)
class Solution:
    """Why each changed partition changes, and what could not be met."""

    reasons: dict[int, list[Reason]] = field(default_factory=dict)
    unmet: list[Unmet] = field(default_factory=list)


def leaving_of(model: ClusterModel, goal: Goal) -> frozenset[int]:
    """Name the brokers that a goal empties."""
    match goal:
        case Drain(brokers) | Heal(brokers, _):
            return frozenset(brokers)
        case Replace(broker, _):
            return frozenset((broker,))
        case Evacuate(rack):
            return frozenset(broker.id for broker in model.brokers if broker.rack == rack)
        case _:
            return frozenset()


def solve(layout: Layout, goal: Goal, budget: Budget) -> Solution:
    """Change the layout so that it reaches the goal as far as it can."""
    solution = Solution()
    match goal:
        case Drain() | Evacuate():
            empty(layout, solution, budget)
        case Add(brokers):
            add(layout, solution, budget, brokers)
        case Balance(max_bytes, max_moves):
            balance(layout, solution, budget, max_bytes, max_moves)
    return solution


def movable(layout, solution, partition) -> bool:
    return True


def empty(layout: Layout, solution: Solution, budget: Budget) -> None:
    wanted = [(p, b) for p, reps in enumerate(layout.original) for b in reps if b in layout.leaving]
    placement = Placement(solution.reasons, solution.unmet)
    replace_all(layout, wanted, Reason.DRAIN, placement, budget)
    improve(layout, placement.items, budget)
    touched = sorted({p for p, _ in wanted})
    leading = Leading(layout, touched)
    leading.choose([p for p in touched if layout.first[p] != layout.original[p][0]], budget)
    leading.even_out(budget)


def add(layout: Layout, solution: Solution, budget: Budget, brokers) -> None:
    layout.receivers = sorted(brokers)
    layout.may_lead = layout.receives
    layout.receives = frozenset(brokers)
    sources = [n for n in layout.count if n not in layout.receives]
    bands = Bands(layout, sources, layout.receivers, bounded_sources=False)
    run = Rebalancing(layout, bands, budget, sources, range(len(layout.original)), 1e30, 1e30)
    run.shed()
    run.fill()
    improve(layout, run.items, budget)
    take_back(layout, bands, run.items, run.hosted, budget)
    shrink(layout, bands, run.items, run.hosted, budget)
    for p, _ in run.items:
        solution.reasons.setdefault(p, []).append(run.reasons.get(p, Reason.DISK))
    lead(layout, solution, budget)


def lead(layout, solution, budget):
    leading = Leading(layout, range(len(layout.original)))
    leading.choose([p for p in solution.reasons if layout.first[p] != layout.original[p][0]], budget)
    leading.even_out(budget)
    leading.restore(range(len(layout.original)))
    for p in layout.changed():
        solution.reasons.setdefault(p, [Reason.LEADERS])


def balance(layout: Layout, solution: Solution, budget: Budget, max_bytes, max_moves) -> None:
    sources = layout.receivers
    bands = Bands(layout, sources, layout.receivers, bounded_sources=True)
    run = Rebalancing(layout, bands, budget, sources, range(len(layout.original)), 1e30, 1e30)
    run.shed()
    run.fill()
    improve(layout, run.items, budget)
    take_back(layout, bands, run.items, run.hosted, budget)
    shrink(layout, bands, run.items, run.hosted, budget)
    for p, _ in run.items:
        solution.reasons.setdefault(p, []).append(run.reasons.get(p, Reason.DISK))
    lead(layout, solution, budget)
