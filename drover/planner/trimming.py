"""Trimming: take back moves, or bytes, that no band needs."""

from bisect import bisect_left, insort
from collections.abc import Collection

from drover.planner.bands import ROUNDING
from drover.planner.rebalancing import Rebalancing

# Saving less than this share of the mean on a broker is not worth another look.
LEAST_SHARE = 1e-4
# How much one exchange saves at the most, so that no source gets it all back.
STEP_SHARE = 5e-3

Return = tuple[float, float, int, int]


def trim(run: Rebalancing) -> None:
    """Take back every move that is not needed, and exchange others for smaller ones, until all are needed."""
    take_back(run)
    shrink(run)
    take_back(run)


def take_back(run: Rebalancing) -> None:
    """Take back items as long as no broker is further outside its band for it; least loaded sources first."""
    layout = run.layout
    waiting = dict(enumerate(run.items))
    # By broker the items that its load counts for: only these are looked at again when it changes.
    near: dict[int, set[int]] = {}
    for number, (partition, broker) in waiting.items():
        for other in (broker, *layout.original[partition]):
            near.setdefault(other, set()).add(number)
    returns: dict[int, Return | None] = {}
    stale: Collection[int] = waiting.keys()
    while run.budget.spend(len(stale)):
        for number in stale:
            returns[number] = _best_return(run, number, waiting[number])
        best = min((each for each in returns.values() if each is not None), default=None)
        if best is None:
            break
        _, _, number, source = best
        partition, broker = waiting.pop(number)
        del returns[number]
        layout.replace(partition, broker, source)
        layout.tidy(partition)
        insort(run.hosted[source], (layout.size[partition], partition))
        stale = (near[broker] | near[source]) & waiting.keys()
    run.items[:] = waiting.values()


def _best_return(run: Rebalancing, number: int, item: tuple[int, int]) -> Return | None:
    """Return how loaded the source is to which an item goes back best, what that costs, and both; None if to none."""
    layout, bands = run.layout, run.bands
    partition, broker = item
    size = layout.size[partition]
    return min(
        (
            (bands.pressure_with(source, size), -layout.gain(partition, broker, source), number, source)
            for source in layout.original[partition]
            if may_return(run, item, source) and bands.relief(broker, source, size) >= -ROUNDING
        ),
        default=None,
    )


def may_return(run: Rebalancing, item: tuple[int, int], source: int) -> bool:
    """Whether an item may go back to a source of the original list: it has left, and no racks are lost."""
    partition, broker = item
    if source not in run.hosted:
        return False
    return source not in run.layout.replicas[partition] and run.layout.keeps_spread(partition, broker, source)


def shrink(run: Rebalancing) -> None:
    """Exchange items for smaller replicas of the same source, as long as no broker is further outside its band."""
    by_broker: dict[int, list[int]] = {}
    for index, (_, broker) in enumerate(run.items):
        by_broker.setdefault(broker, []).append(index)
    for broker in sorted(by_broker):
        while _shrink_one(run, broker, by_broker[broker]):
            pass


def _shrink_one(run: Rebalancing, broker: int, indexes: list[int]) -> bool:
    """Make the exchange that its source bears best; whether there was one."""
    layout, bands = run.layout, run.bands
    spare = layout.disk[broker] - bands.low_disk[broker]
    step = min(spare, STEP_SHARE * bands.mean_disk)
    least = max(LEAST_SHARE * bands.mean_disk, step / 2)
    best: tuple[float, int, int] | None = None
    for index in indexes:
        if not run.budget.spend(1):
            return False
        partition = run.items[index][0]
        size, source = layout.size[partition], run.source_of(index)
        if not may_return(run, run.items[index], source):
            continue
        held = run.hosted[source]
        for place in range(bisect_left(held, (size - step, -1)), len(held)):
            smaller, other = held[place]
            saved = size - smaller
            worth = -layout.over_disk[source] - saved
            if saved < least:
                break
            if best is not None and worth <= best[0]:
                continue
            if bands.relief_of_bytes(broker, source, saved) >= -ROUNDING and layout.allowed(other, source, broker):
                best = (worth, index, place)
                break
    if best is None:
        return False
    _exchange(run, best[1], best[2])
    return True


def _exchange(run: Rebalancing, index: int, place: int) -> None:
    partition, broker = run.items[index]
    source = run.source_of(index)
    _, other = run.hosted[source].pop(place)
    run.layout.replace(partition, broker, source)
    run.layout.replace(other, source, broker)
    run.items[index] = (other, broker)
    run.reasons.setdefault(other, run.reasons[partition])
    insort(run.hosted[source], (run.layout.size[partition], partition))
