"""Spreading: as many racks for every partition as the brokers allow."""

import math

from drover.planner.budget import Budget
from drover.planner.eligibility import why_not_movable
from drover.planner.improving import improve
from drover.planner.layout import Layout
from drover.planner.leading import lead_elsewhere
from drover.planner.placing import Solution, best_place, unmet
from drover.planner.proposal import Reason, UnmetCode

# A topic with so many replicas for each broker should not leave out one broker in so many, whatever else is known.
SEVERAL = 10
LEFT_OUT = 3


def spread(
    layout: Layout, solution: Solution, budget: Budget, max_bytes: float = math.inf, max_moves: float = math.inf
) -> tuple[int, int]:
    """Repair the partitions that could be on more racks; return the bytes and moves that this takes."""
    copied = moved = 0
    for partition, excess in enumerate(layout.excess):
        if not excess:
            continue
        name = layout.name(partition)
        refusal = why_not_movable(layout, partition)
        if refusal is not None:
            text = f"{name} stays on fewer racks than possible: {refusal[1]}"
            solution.unmet.append(unmet(layout, refusal[0], text, partition))
            continue
        while layout.excess[partition]:
            if not budget.spend(len(layout.receivers)):
                text = f"{name}: not planned in the time allowed"
                solution.unmet.append(unmet(layout, UnmetCode.INTERRUPTED, text, partition))
                break
            if copied + layout.size[partition] > max_bytes or moved + 1 > max_moves:
                text = f"{name} stays on fewer racks than possible: the most bytes or moves are reached"
                solution.unmet.append(unmet(layout, UnmetCode.BOUND_REACHED, text, partition))
                break
            if not _spread_one(layout, solution, partition):
                text = f"{name} stays on fewer racks than possible: no broker in another rack may take a replica"
                solution.unmet.append(unmet(layout, UnmetCode.RACK_SPREAD, text, partition))
                break
            copied += layout.size[partition]
            moved += 1
    improve(layout, solution.items, budget)
    lead_elsewhere(layout, solution.partitions, budget)
    return copied, moved


def _spread_one(layout: Layout, solution: Solution, partition: int) -> bool:
    """Move one replica out of a rack that has too many; whether that was possible."""
    replicas = layout.replicas[partition]
    racks = [layout.racks.of(broker) for broker in replicas]
    crowd = max(racks.count(rack) for rack in racks)
    best: tuple[int, bool, float, int, int] | None = None
    for old in replicas:
        # Living brokers that may not receive replicas keep those they have.
        left_alone = old in layout.alive and old not in layout.receives
        if left_alone or racks.count(layout.racks.of(old)) < crowd or old not in layout.original[partition]:
            continue
        new = best_place(layout, partition, old)
        if new is None:
            continue
        pairs = layout.racks.pairs([new if broker == old else broker for broker in replicas])
        found = (pairs, old == layout.first[partition], -layout.gain(partition, old, new), old, new)
        if best is None or found < best:
            best = found
    if best is None or best[0] >= layout.racks.pairs(replicas):
        return False
    layout.replace(partition, best[3], best[4])
    layout.excess[partition] = layout.crowding(partition)
    solution.items.append((partition, best[4]))
    solution.note(partition, Reason.SPREAD)
    return True


def leaves_out_brokers(layout: Layout) -> bool:
    """Whether a topic has nothing on a third of the brokers, although it has several replicas for each."""
    held: dict[str, dict[int, int]] = {}
    for facts, replicas in zip(layout.model.partitions, layout.replicas, strict=True):
        counts = held.setdefault(facts.topic, {})
        for broker in replicas:
            counts[broker] = counts.get(broker, 0) + 1
    receivers = layout.receivers
    return any(
        sum(counts.values()) >= SEVERAL * len(receivers)
        and sum(broker not in counts for broker in receivers) * LEFT_OUT >= len(receivers)
        for counts in held.values()
    )
