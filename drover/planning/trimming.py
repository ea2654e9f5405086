"""Trimming: take back moves, or bytes, that no band needs."""

from bisect import bisect_left

from drover.planning.bands import Bands
from drover.planning.budget import Budget
from drover.planning.layout import Layout

Item = tuple[int, int]
# Trimming less than this share of the mean is not worth another pass.
LEAST_SHARE = 1e-4
STEP_SHARE = 5e-3


def source_of(layout: Layout, item: Item) -> int:
    """Return the broker whose place in the list the item has taken."""
    partition, broker = item
    return layout.original[partition][layout.replicas[partition].index(broker)]


def take_back(layout: Layout, bands: Bands, items: list[Item], hosted: dict[int, list[Item]], budget: Budget) -> None:
    """Take back every item that its broker can spare and its source can bear, those that cost the most balance last."""
    while True:
        best: tuple[float, float, int] | None = None
        if not budget.spend(len(items)):
            return
        for index, (partition, broker) in enumerate(items):
            size = layout.size[partition]
            source = source_of(layout, (partition, broker))
            if (
                bands.spares(broker, size)
                and bands.bears(source, size)
                and layout.keeps_spread(partition, broker, source)
            ):
                found = (bands.pressure_with(source, size), -layout.gain(partition, broker, source), index)
                if best is None or found < best:
                    best = found
        if best is None:
            return
        partition, broker = items.pop(best[2])
        source = source_of(layout, (partition, broker))
        layout.replace(partition, broker, source)
        entry = (layout.size[partition], partition)
        hosted[source].insert(bisect_left(hosted[source], entry), entry)


def shrink(layout: Layout, bands: Bands, items: list[Item], hosted: dict[int, list[Item]], budget: Budget) -> None:
    """Exchange items for smaller replicas of the same source, as long as every broker stays in its band.

    `hosted` has by source the replicas that did not move, as size and partition, in order.
    """
    by_broker: dict[int, list[int]] = {}
    for index, (_, broker) in enumerate(items):
        by_broker.setdefault(broker, []).append(index)
    for broker in sorted(by_broker):
        while _shrink_one(layout, bands, items, by_broker[broker], hosted, budget):
            pass


def _shrink_one(
    layout: Layout,
    bands: Bands,
    items: list[Item],
    indexes: list[int],
    hosted: dict[int, list[Item]],
    budget: Budget,
) -> bool:
    """Make the exchange that saves the most bytes on one broker; whether there was one."""
    broker = items[indexes[0]][1]
    spare = layout.disk[broker] - bands.low_disk[broker]
    step = min(spare, STEP_SHARE * bands.mean_disk)
    least = max(LEAST_SHARE * bands.mean_disk, step / 2)
    best: tuple[float, int, int] | None = None
    for index in indexes:
        partition = items[index][0]
        size, source = layout.size[partition], source_of(layout, items[index])
        if not layout.keeps_spread(partition, broker, source):
            continue
        held = hosted[source]
        if not budget.spend(1):
            return False
        for place in range(bisect_left(held, (size - step, -1)), len(held)):
            smaller, other = held[place]
            saved = size - smaller
            if saved < least:
                break
            worth = -layout.over_disk[source] - saved
            if best is not None and worth <= best[0]:
                continue
            if bands.bears_bytes(source, saved) and layout.allowed(other, source, broker):
                best = (worth, index, place)
                break
    if best is None:
        return False
    _, index, place = best
    partition, _ = items[index]
    source = source_of(layout, items[index])
    smaller, other = hosted[source].pop(place)
    layout.replace(partition, broker, source)
    layout.replace(other, source, broker)
    items[index] = (other, broker)
    entry = (layout.size[partition], partition)
    hosted[source].insert(bisect_left(hosted[source], entry), entry)
    return True

