"""Goals by load, where rates are known: what moves is placed by every load, and no broker stays above its limits."""

import math
from collections.abc import Collection, Iterator

import numpy as np

from drover.planner.budget import Budget
from drover.planner.eligibility import movable
from drover.planner.layout import Layout
from drover.planner.levelling import MOST_RECEIVERS, Levelling, Reorders
from drover.planner.load_table import Flags, Floats, LoadTable
from drover.planner.loads import Measures
from drover.planner.placing import Solution
from drover.planner.proposal import Reason, Unmet, UnmetCode

# How much evenness within the bands counts beside being in them, where that costs no bytes.
SQUARES = 4.0
# What it counts to be outside a band at all, once the sum of what brokers are outside is small.
STEP = 0.05
# Less than this is not worth a word.
LEAST_SHOWN = 0.001


def level_copies(
    layout: Layout,
    solution: Solution,
    budget: Budget,
    measures: Measures,
    partitions: Collection[int],
    *,
    fixed: Collection[int] = (),
    reorders: Reorders = Reorders.COPIED,
) -> None:
    """Find better places for what these partitions copy anyway, then better leaders, without another copied byte."""
    table = LoadTable(layout, measures, layout.limits)
    table.squares = SQUARES
    run = Levelling(table, sorted(partitions), budget, only_copies=True, reorders=reorders, fixed=fixed)
    if len(run.receivers) <= MOST_RECEIVERS:
        run.level()
    else:
        # In a large cluster, places that replicas and bytes are even with have to do.
        run.reorder()
    table.squares = 0.0
    if reorders is not Reorders.NONE:
        run.restore_orders()
        if layout.limits.reorder_all:
            run = Levelling(table, movable(layout), budget)
            run.reorder()
            table.step = STEP
            run.reorder()
            run.restore_orders()
    _store(table, run, solution, Reason.LOADS)


def spare(
    layout: Layout,
    solution: Solution,
    budget: Budget,
    measures: Measures,
    most: tuple[float, float] = (math.inf, math.inf),
) -> None:
    """Take brokers below their limits that are above them, for the fewest bytes, and name those that stay."""
    table = _below_limits(layout, solution, budget, measures, most)
    solution.unmet.extend(_above_limits(table, np.any(table.above_limit() > LEAST_SHOWN, axis=0)))


def _below_limits(
    layout: Layout,
    solution: Solution,
    budget: Budget,
    measures: Measures,
    most: tuple[float, float],
    *,
    trims: bool = True,
) -> LoadTable:
    """Take brokers below their limits that are above them, for the fewest bytes; return the table in which they are.

    With `trims`, copies that no limit needs are taken back.
    """
    table = LoadTable(layout, measures, layout.limits)
    table.only_limits()
    if table.above_limit().any():
        run = Levelling(table, movable(layout), budget, most, reorders=_reorders(layout))
        _spare(table, run, solution, trims=trims)
    return table


def spare_copies(
    layout: Layout, solution: Solution, budget: Budget, measures: Measures, *, reorders: Reorders = Reorders.COPIED
) -> None:
    """Choose other places, and leaders, for what is copied anyway, where a broker would end above a limit.

    Names the brokers that end above a limit and bear more than before.
    """
    table = LoadTable(layout, measures, layout.limits)
    table.only_limits()
    if not table.above_limit().any():
        return
    run = Levelling(table, sorted(solution.partitions), budget, only_copies=True, reorders=reorders)
    _spare(table, run, solution)
    more = table.share > table.before * table.unit + LEAST_SHOWN
    solution.unmet.extend(_above_limits(table, np.any((table.above_limit() > LEAST_SHOWN) & more, axis=0)))


def _spare(table: LoadTable, run: Levelling, solution: Solution, *, trims: bool = True) -> None:
    # Few large copies do this with less to wait for than many small ones.
    run.copy_cost = float(table.size.mean())
    run.level()
    if trims:
        run.trim()
    _store(table, run, solution, Reason.LIMIT)


def _above_limits(table: LoadTable, brokers: Flags) -> Iterator[Unmet]:
    """Name these brokers, with what they bear above a limit."""
    limits = table.limits
    for broker in np.flatnonzero(brokers).tolist():
        loads = ", ".join(
            f"{load.value} {limits.limit(load) * used:.0%} of {limits.limit(load):.0%}"
            for load, used, much in zip(
                table.loads,
                (table.share / table.limit)[:, broker].tolist(),
                table.above_limit()[:, broker].tolist(),
                strict=True,
            )
            if much > LEAST_SHOWN
        )
        number = table.numbers[broker]
        text = f"broker {number} stays above the limit of what it can bear: {loads}"
        yield Unmet(UnmetCode.OVERLOADED, text, broker=number)


def level_all(
    layout: Layout,
    solution: Solution,
    budget: Budget,
    measures: Measures,
    most: tuple[float, float] = (math.inf, math.inf),
    *,
    filling: bool = False,
) -> None:
    """Bring every load of every broker into its band, for the fewest bytes, and name what stays outside.

    With `filling`, only the brokers that may receive are to be brought there, and only what moves is reordered unless
    all may be.
    """
    before = copied_of(layout)
    _below_limits(layout, solution, budget, measures, most)
    left = _left(layout, before, most)
    table = LoadTable(layout, measures, layout.limits)
    reorders = _reorders(layout) if filling else Reorders.ALL
    run = Levelling(table, movable(layout), budget, left, reorders=reorders)
    run.level()
    # Where not all can be inside, as few as possible are outside.
    table.step = STEP
    run.finish()
    _store(table, run, solution, Reason.ADD if filling else Reason.LOADS)
    if table.above_limit().any():
        # What evens out a load may take another one above its limit, however little. The copies that bands need stay.
        above = _below_limits(layout, solution, budget, measures, _left(layout, before, most), trims=False)
        solution.unmet.extend(_above_limits(above, np.any(above.above_limit() > LEAST_SHOWN, axis=0)))
        table = LoadTable(layout, measures, layout.limits)
    judged = table.receives if filling else table.counting
    solution.unmet.extend(_outside(table, np.flatnonzero(judged).tolist(), bounded=run.bounded))


def level_orders(layout: Layout, solution: Solution, budget: Budget, measures: Measures) -> None:
    """Even out what brokers lead by orders alone."""
    table = LoadTable(layout, measures, layout.limits)
    run = Levelling(table, movable(layout), budget)
    run.reorder()
    run.restore_orders()
    _store(table, run, solution, Reason.LOADS)


def copied_of(layout: Layout) -> tuple[int, int]:
    """Return the bytes and copies that the lists take so far."""
    sizes = [
        layout.size[partition]
        for partition, (replicas, original) in enumerate(zip(layout.replicas, layout.original, strict=True))
        for broker in replicas
        if broker not in original
    ]
    return sum(sizes), len(sizes)


def _left(layout: Layout, before: tuple[int, int], most: tuple[float, float]) -> tuple[float, float]:
    """Return what is left of the most bytes and copies, given what the lists took before."""
    copied, moved = copied_of(layout)
    return most[0] - (copied - before[0]), most[1] - (moved - before[1])


def _reorders(layout: Layout) -> Reorders:
    return Reorders.ALL if layout.limits.reorder_all else Reorders.COPIED


def _store(table: LoadTable, run: Levelling, solution: Solution, reason: Reason) -> None:
    """Write what has changed back to the layout, with a reason for each partition."""
    layout = table.layout
    before = {int(partition): layout.ordered(partition) for partition in run.partitions.tolist()}
    table.store(list(before))
    for partition, replicas in before.items():
        after = layout.ordered(partition)
        if after == replicas or partition in solution.reasons:
            continue
        solution.note(partition, Reason.LEADERS if set(after) == set(replicas) else reason)


def _outside(table: LoadTable, brokers: Collection[int], *, bounded: bool) -> Iterator[Unmet]:
    """Name the brokers that are outside a band or above a limit, with their loads."""
    why = ": the most bytes or moves are reached" if bounded else ""
    for broker in brokers:
        number = table.numbers[broker]
        for code, wrong, side in (
            (UnmetCode.OVERLOADED, _above(table, broker), "overloaded"),
            (UnmetCode.UNDERLOADED, table.low[:, broker] - table.share[:, broker], "underloaded"),
        ):
            loads = [
                f"{load.value} {share:.2f}"
                for load, share, much in zip(table.loads, table.share[:, broker].tolist(), wrong.tolist(), strict=True)
                if much > LEAST_SHOWN
            ]
            if loads:
                text = f"broker {number} stays {side}, in shares of what is fair: {', '.join(loads)}{why}"
                yield Unmet(UnmetCode.BOUND_REACHED if bounded else code, text, broker=number)


def _above(table: LoadTable, broker: int) -> Floats:
    return table.share[:, broker] - np.minimum(table.high[:, broker], table.limit[:, broker])
