"""Improving: better places for replicas that move anyway, without another copied byte."""

from bisect import bisect_left

from drover.planner.bands import ROUNDING, Bands
from drover.planner.budget import Budget
from drover.planner.layout import Layout

# Squares of shares of the mean: what rounding may pretend to gain.
LEAST_GAIN = 1e-12
# A round that takes off less than this share of the imbalance is the last one.
LEAST_SHARE = 1e-3
# The candidates that one improvement may try, a few seconds.
MOST_WORK = 3_000_000
# So many brokers at either end of the order by load exchange replicas in one round.
EXTREMES = 48
# How many brokers at either end of the order by load are tried for exchanges in one round.
NEIGHBOURS = 3


def improve(layout: Layout, items: list[tuple[int, int]], budget: Budget, bands: Bands | None = None) -> None:
    """Move and exchange items (partition, broker) until nothing gets better, or the work is spent; updates the list.

    With `bands`, no two brokers may be further outside theirs for it.
    """
    budget = budget.part(MOST_WORK)
    before = layout.imbalance()
    while _move_each(layout, items, budget, bands) + _exchange(layout, items, budget, bands):
        after = layout.imbalance()
        if before - after <= LEAST_SHARE * before:
            return
        before = after


def _move_each(layout: Layout, items: list[tuple[int, int]], budget: Budget, bands: Bands | None) -> int:
    """Take each item to the broker that gains the most; return how many were taken."""
    moved = 0
    for index, (partition, old) in enumerate(items):
        receivers = layout.likely()
        if not budget.spend(len(receivers)):
            return 0
        ranked = sorted((-layout.gain(partition, old, new), new) for new in receivers if new != old)
        for loss, new in ranked:
            if loss > -LEAST_GAIN:
                break
            worse = bands is not None and bands.relief(old, new, layout.size[partition]) < -ROUNDING
            if not worse and layout.allowed(partition, old, new):
                layout.replace(partition, old, new)
                items[index] = (partition, new)
                moved += 1
                break
    return moved


def _exchange(layout: Layout, items: list[tuple[int, int]], budget: Budget, bands: Bands | None) -> int:
    """Exchange items of different size between two brokers where that evens out their disks."""
    by_broker: dict[int, list[tuple[int, int, int]]] = {}
    for index, (partition, broker) in enumerate(items):
        by_broker.setdefault(broker, []).append((layout.size[partition], partition, index))
    for held in by_broker.values():
        held.sort()
    exchanged = 0
    for full, empty in _pairs(layout, list(by_broker)):
        if budget.spent:
            return 0
        while _exchange_between(layout, items, by_broker, (full, empty), budget, bands):
            exchanged += 1
    return exchanged


def _pairs(layout: Layout, brokers: list[int]) -> list[tuple[int, int]]:
    """Pair the brokers, those that differ the most first."""
    ranked = sorted(brokers, key=lambda broker: (-layout.over_disk[broker], broker))
    found = [
        (full, empty)
        for index, full in enumerate(ranked[:EXTREMES])
        for empty in ranked[max(index + 1, len(ranked) - EXTREMES) :]
    ]
    found.sort(key=lambda pair: layout.over_disk[pair[1]] - layout.over_disk[pair[0]])
    return found


def _exchange_between(
    layout: Layout,
    items: list[tuple[int, int]],
    by_broker: dict[int, list[tuple[int, int, int]]],
    pair: tuple[int, int],
    budget: Budget,
    bands: Bands | None,
) -> bool:
    """Exchange the pair whose sizes differ by nearly half of what the disks differ; whether that was worth it."""
    full, empty = pair
    there, here = by_broker[full], by_broker[empty]
    difference = (layout.over_disk[full] - layout.over_disk[empty]) / 2
    if difference <= 0 or not budget.spend(len(there) * NEIGHBOURS):
        return False
    best: tuple[float, int, int] | None = None
    for large, (size, partition, _) in enumerate(there):
        place = bisect_left(here, (size - difference, -1, -1))
        for small in range(max(0, place - NEIGHBOURS), min(len(here), place + NEIGHBOURS)):
            other_size, other, _ = here[small]
            delta = size - other_size
            gain = 2 * layout.disk_weight * delta * (2 * difference - delta)
            if bands is not None and bands.relief_of_bytes(full, empty, delta) < -ROUNDING:
                continue
            if (
                (best is None or gain > best[0])
                and gain > LEAST_GAIN
                and _may_exchange(layout, partition, full, other, empty)
            ):
                best = (gain, large, small)
    if best is None:
        return False
    _, large, small = best
    (size, partition, index), (other_size, other, other_index) = there.pop(large), here.pop(small)
    layout.replace(partition, full, empty)
    layout.replace(other, empty, full)
    items[index], items[other_index] = (partition, empty), (other, full)
    here.insert(bisect_left(here, (size, partition, index)), (size, partition, index))
    there.insert(bisect_left(there, (other_size, other, other_index)), (other_size, other, other_index))
    return True


def _may_exchange(layout: Layout, one: int, full: int, other: int, empty: int) -> bool:
    if one == other or empty in layout.replicas[one] or full in layout.replicas[other]:
        return False
    if empty in layout.original[one] or full in layout.original[other]:
        return False
    if not (layout.keeps_spread(one, full, empty) and layout.keeps_spread(other, empty, full)):
        return False
    if not (layout.is_within(one, empty) and layout.is_within(other, full)):
        return False
    # Each makes room where it leaves, so that the larger one needs room for the difference only.
    return (
        full in layout.receives
        and empty in layout.receives
        and layout.size[one] - layout.size[other] <= layout.room[empty]
        and layout.size[other] - layout.size[one] <= layout.room[full]
        and layout.write[one] - layout.write[other] <= layout.network_room[empty]
        and layout.write[other] - layout.write[one] <= layout.network_room[full]
        and layout.size[one] <= layout.largest_room[empty]
        and layout.size[other] <= layout.largest_room[full]
    )
