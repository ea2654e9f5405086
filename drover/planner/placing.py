"""Placing: a broker for every replica that must leave the one it is on, or that is added."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from drover.planner.budget import Budget
from drover.planner.layout import FEW, Layout
from drover.planner.proposal import Reason, Unmet, UnmetCode


@dataclass(slots=True)
class Solution:
    """Results beside the layout: the reason of each change, and everything that could not be met.

    `items` are the replicas that were placed, as partition and broker; they may still be placed better.
    """

    reasons: dict[int, list[Reason]] = field(default_factory=dict)
    unmet: list[Unmet] = field(default_factory=list)
    items: list[tuple[int, int]] = field(default_factory=list)

    @property
    def partitions(self) -> list[int]:
        """The partitions whose replicas were placed."""
        return sorted({partition for partition, _ in self.items})

    def note(self, partition: int, reason: Reason) -> None:
        """Note one more reason why a partition changes."""
        self.reasons.setdefault(partition, []).append(reason)


def replace_all(
    layout: Layout,
    wanted: Sequence[tuple[int, int]],
    solution: Solution,
    budget: Budget,
    first_choice: int | None = None,
) -> None:
    """Replace replicas, given as partition and broker, in their places in the lists.

    Large ones come first, since they are the hardest to place evenly. `first_choice` is taken wherever it is allowed.
    """
    for partition, old in sorted(wanted, key=lambda item: (-layout.size[item[0]], item)):
        if not budget.spend(len(layout.receivers)):
            text = f"{layout.name(partition)}: not planned in the time allowed"
            solution.unmet.append(unmet(layout, UnmetCode.INTERRUPTED, text, partition, old))
            continue
        if first_choice is not None and layout.allowed(partition, old, first_choice):
            new: int | None = first_choice
        else:
            new = best_place(layout, partition, old)
        if new is None:
            solution.unmet.append(why_no_place(layout, partition, old))
            continue
        layout.replace(partition, old, new)
        layout.excess[partition] = min(layout.excess[partition], layout.crowding(partition))
        solution.items.append((partition, new))
        solution.note(partition, Reason.DRAIN if old in layout.alive else Reason.DEAD)


def best_place(layout: Layout, partition: int, old: int | None) -> int | None:
    """Choose the broker that loses the least balance among those on the best racks; None if there is none."""
    best = _best_of(layout, layout.likely(), partition, old)
    if len(layout.receivers) > FEW and (best is None or best[0]):
        best = _best_of(layout, layout.receivers, partition, old)
    return None if best is None else best[2]


def _best_of(
    layout: Layout, receivers: Sequence[int], partition: int, old: int | None
) -> tuple[int, float, int] | None:
    """Return the least pairs of replicas in one rack, the least cost in balance, and the broker that has them."""
    taken = {*layout.replicas[partition], *layout.original[partition]}
    held: dict[str | int, int] = {}
    for broker in layout.replicas[partition]:
        if broker != old:
            rack = layout.racks.of(broker)
            held[rack] = held.get(rack, 0) + 1
    best: tuple[int, float, int] | None = None
    for new in receivers:
        pairs = held.get(layout.rack[new], 0)
        if best is not None and pairs > best[0]:
            continue
        if new in taken or not layout.fits(partition, new):
            continue
        if pairs and not layout.keeps_spread(partition, old, new):
            continue
        found = (pairs, layout.cost(partition, new), new)
        if best is None or found < best:
            best = found
    return best


def why_no_place(layout: Layout, partition: int, old: int | None) -> Unmet:
    """Say why no broker can take a replica."""
    replicas = layout.replicas[partition]
    name = layout.name(partition)
    where = "" if old is None else f" from broker {old}"
    free = [number for number in layout.receivers if number not in replicas]
    if not free:
        text = f"{name}: every broker that may receive replicas has one already, none can be moved{where}"
        return unmet(layout, UnmetCode.TOO_FEW_BROKERS, text, partition, old)
    spread = [number for number in free if layout.keeps_spread(partition, old, number)]
    if not spread:
        text = f"{name}: every broker that has none would put two replicas into one rack{where}"
        return unmet(layout, UnmetCode.RACK_SPREAD, text, partition, old)
    within = layout.within[partition]
    if within is not None and within.isdisjoint(spread):
        text = f"{name}: no broker of its broker set can take a replica{where}"
        return unmet(layout, UnmetCode.BROKER_SET, text, partition, old)
    if any(layout.size[partition] <= min(layout.room[number], layout.largest_room[number]) for number in spread):
        text = f"{name}: no broker{_racks_of(layout, spread)} has network or replicas left for a copy{where}"
        return unmet(layout, UnmetCode.NO_ROOM, text, partition, old)
    size = f"{layout.size[partition]:,} bytes"
    text = f"{name}: no broker{_racks_of(layout, spread)} has room for {size} below the disk limit{where}"
    return unmet(layout, UnmetCode.NO_ROOM, text, partition, old)


def _racks_of(layout: Layout, brokers: Sequence[int]) -> str:
    """Name the racks of brokers; nothing if none of them has a rack."""
    racks = {layout.model.broker_by_id[number].rack for number in brokers}
    named = sorted(rack for rack in racks if rack is not None)
    if not named:
        return ""
    return f" in rack {', '.join(named)}{' or without one' * (None in racks)}"


def unmet(layout: Layout, code: UnmetCode, text: str, partition: int, broker: int | None = None) -> Unmet:
    """Name something that a partition cannot get."""
    topic, number = layout.model.partitions[partition].name
    return Unmet(code, text, topic, number, broker)
