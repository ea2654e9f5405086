"""Emptying brokers: drain, evacuate, replace and heal."""

from collections.abc import Collection

from drover.planner.budget import Budget
from drover.planner.eligibility import only_movable
from drover.planner.goals import Heal
from drover.planner.improving import improve
from drover.planner.layout import Layout
from drover.planner.leading import Leading, lead_elsewhere
from drover.planner.placing import Solution, replace_all
from drover.planner.refining import Refining


def drain(layout: Layout, solution: Solution, budget: Budget) -> None:
    """Take all replicas off the leaving brokers, and choose who leads instead of them."""
    touched = empty(layout, solution, budget)
    leading = Leading(layout, touched)
    leading.even_out(budget)
    leading.restore(touched)


def empty(layout: Layout, solution: Solution, budget: Budget) -> list[int]:
    """Take all replicas off the leaving brokers; return the partitions that changed."""
    touched = _empty(layout, solution, budget, _replicas_on(layout, layout.leaving))
    leading = Leading(layout, touched)
    leading.choose([each for each in touched if layout.first[each] != layout.original[each][0]], budget)
    return touched


def heal(layout: Layout, solution: Solution, budget: Budget, goal: Heal) -> None:
    """Replace the dead replicas of the named partitions, each in its place; none leads that should not."""
    wanted = _replicas_on(layout, layout.leaving)
    if goal.partitions is not None:
        named = set(goal.partitions)
        wanted = [(each, broker) for each, broker in wanted if layout.model.partitions[each].name in named]
    lead_elsewhere(layout, _empty(layout, solution, budget, wanted), budget)


def replace(layout: Layout, solution: Solution, budget: Budget, replacement: int) -> None:
    """Give the replacement all that the leaving broker has; what it cannot take goes to others.

    Each replica keeps its place in the order, but for a first one that should not lead.
    """
    wanted = only_movable(layout, solution, _replicas_on(layout, layout.leaving))
    replace_all(layout, wanted, solution, budget, first_choice=replacement)
    improve(layout, [item for item in solution.items if item[1] != replacement], budget)
    lead_elsewhere(layout, solution.partitions, budget)


def _empty(layout: Layout, solution: Solution, budget: Budget, wanted: list[tuple[int, int]]) -> list[int]:
    """Replace the wanted replicas, and return the partitions that changed."""
    replace_all(layout, only_movable(layout, solution, wanted), solution, budget)
    improve(layout, solution.items, budget)
    touched = sorted({partition for partition, _ in solution.items})
    Refining(layout, None, touched, budget, only_placed=True).run()
    return touched


def _replicas_on(layout: Layout, brokers: Collection[int]) -> list[tuple[int, int]]:
    return [
        (partition, broker)
        for partition, replicas in enumerate(layout.original)
        for broker in replicas
        if broker in brokers
    ]
