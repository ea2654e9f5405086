"""Evening out: fill added brokers, balance all of them, balance leaders."""

import math
from collections.abc import Collection, Iterable, Sequence

from drover.planner.bands import Bands
from drover.planner.budget import Budget
from drover.planner.eligibility import movable
from drover.planner.goals import Balance
from drover.planner.improving import improve
from drover.planner.layout import Layout
from drover.planner.leading import Leading
from drover.planner.placing import Solution
from drover.planner.proposal import Reason, Unmet, UnmetCode
from drover.planner.rebalancing import Rebalancing
from drover.planner.spreading import spread
from drover.planner.trimming import trim


def add(layout: Layout, solution: Solution, budget: Budget, brokers: Sequence[int]) -> None:
    """Fill the added brokers from those that hold the most."""
    sources = [number for number in layout.receivers if number not in brokers]
    layout.receive_only(brokers)
    bands = Bands(layout, sources, layout.receivers, only_fill=True)
    _rebalance(solution, Rebalancing(bands, sources, movable(layout), budget))
    balance_leaders(layout, solution, budget)


def balance(layout: Layout, solution: Solution, budget: Budget, goal: Balance) -> None:
    """Spread over racks first, then bring every broker into its band, then balance the leaders."""
    max_bytes, max_moves = bounds_of(goal)
    copied, moved = spread(layout, solution, budget, max_bytes, max_moves)
    bands = Bands(layout, layout.receivers, layout.receivers, only_fill=False)
    run = Rebalancing(bands, layout.receivers, movable(layout), budget, max_bytes - copied, max_moves - moved)
    _rebalance(solution, run)
    balance_leaders(layout, solution, budget)


def bounds_of(goal: Balance) -> tuple[float, float]:
    """Return the most bytes and moves of a goal; infinite without a bound."""
    return (
        math.inf if goal.max_bytes is None else goal.max_bytes,
        math.inf if goal.max_moves is None else goal.max_moves,
    )


def _rebalance(solution: Solution, run: Rebalancing) -> None:
    run.shed()
    run.fill()
    improve(run.layout, run.items, run.budget, run.bands)
    run.refine()
    trim(run)
    for partition, _ in run.items:
        reason = Reason.ADD if run.bands.only_fill else run.reasons.get(partition)
        if reason is not None or partition not in solution.reasons:
            solution.note(partition, reason or Reason.EVEN)
    solution.unmet.extend(_outside(run))


def _outside(run: Rebalancing) -> Iterable[Unmet]:
    """Name every broker that is still outside its band, and the bound that kept it there."""
    layout, bands = run.layout, run.bands
    why = ": the most bytes or moves are reached" if run.bounded else ""
    for broker in bands.receivers:
        count, disk = layout.count[broker], layout.disk[broker]
        high_count, high_disk = bands.high_count[broker], bands.high_disk[broker]
        if not bands.only_fill and (count > high_count or disk > high_disk):
            text = f"broker {broker} stays overloaded with {_loads(layout, broker)}{why}"
            yield Unmet(UnmetCode.BOUND_REACHED if run.bounded else UnmetCode.OVERLOADED, text, broker=broker)
        elif count < bands.low_count[broker] or disk < bands.low_disk[broker] - 1:
            text = f"broker {broker} stays underloaded with {_loads(layout, broker)}{why}"
            yield Unmet(UnmetCode.BOUND_REACHED if run.bounded else UnmetCode.UNDERLOADED, text, broker=broker)


def _loads(layout: Layout, broker: int) -> str:
    count, disk = layout.shares.count[broker], layout.shares.disk[broker]
    replicas = f"{layout.count[broker]:,} replicas (its fair share is {count:,.0f})"
    return f"{replicas} and {layout.disk[broker]:,} bytes ({disk:,.0f})"


def lead_in_racks(layout: Layout, solution: Solution, budget: Budget) -> None:
    """Let replicas in the racks that are preferred lead, where there are any."""
    if not layout.model.leaders_in_racks:
        return
    partitions = movable(layout)
    Leading(layout, partitions).choose(_led_elsewhere(layout, partitions), budget)
    for partition in layout.changed():
        if partition not in solution.reasons:
            solution.note(partition, Reason.LEADERS)


def _led_elsewhere(layout: Layout, partitions: Collection[int]) -> list[int]:
    """Return the partitions that are led outside the racks that are preferred; none if no rack is."""
    racks = layout.model.leaders_in_racks
    return [each for each in partitions if racks and layout.rack.get(layout.first[each]) not in racks]


def balance_leaders(layout: Layout, solution: Solution, budget: Budget) -> None:
    """Balance the preferred leaders by orders alone, and name the brokers for which that is not enough."""
    partitions = movable(layout)
    leading = Leading(layout, partitions)
    lost = [each for each in solution.reasons if layout.first[each] not in layout.original[each]]
    leading.choose(lost, budget)
    leading.even_out(budget)
    leading.restore(partitions)
    elsewhere = _led_elsewhere(layout, partitions)
    if elsewhere:
        leading.choose(elsewhere, budget)
        leading.even_out(budget)
    for partition in layout.changed():
        if partition not in solution.reasons:
            solution.note(partition, Reason.LEADERS)
    for broker, leaders in leading.outside():
        text = (
            f"broker {broker} leads {leaders:,} partitions, and orders alone cannot bring it near {leading.mean:,.1f}"
        )
        code = UnmetCode.OVERLOADED if leaders > leading.mean else UnmetCode.UNDERLOADED
        solution.unmet.append(Unmet(code, text, broker=broker))
