"""The replication factor: more replicas where they fit best, fewer where they are missed least."""

from collections.abc import Collection

from drover.planner.budget import Budget
from drover.planner.eligibility import why_left_alone
from drover.planner.improving import improve
from drover.planner.layout import Layout
from drover.planner.leading import lead_elsewhere
from drover.planner.placing import Solution, best_place, unmet, why_no_place
from drover.planner.proposal import Reason, UnmetCode


def set_replication_factor(
    layout: Layout, solution: Solution, budget: Budget, topics: Collection[str], factor: int
) -> None:
    """Give every partition of these topics so many replicas; those on unregistered brokers do not count, and go."""
    wanted = [
        partition
        for partition, facts in enumerate(layout.model.partitions)
        if facts.topic in topics
        and (len(facts.replicas) != factor or not layout.unregistered.isdisjoint(facts.replicas))
    ]
    for partition in sorted(wanted, key=lambda each: (-layout.size[each], each)):
        refusal = why_left_alone(layout, partition)
        if refusal is None and not budget.spend(len(layout.receivers)):
            refusal = (UnmetCode.INTERRUPTED, "not planned in the time allowed")
        if refusal is not None:
            text = f"{layout.name(partition)} keeps {len(layout.original[partition])} replicas: {refusal[1]}"
            solution.unmet.append(unmet(layout, refusal[0], text, partition))
            continue
        for broker in sorted(layout.unregistered.intersection(layout.replicas[partition])):
            layout.drop(partition, broker)
            solution.note(partition, Reason.LOWER)
        if len(layout.replicas[partition]) < factor:
            _raise(layout, solution, partition, factor)
        elif len(layout.replicas[partition]) > factor:
            _lower(layout, solution, partition, factor)
    improve(layout, solution.items, budget)
    lead_elsewhere(layout, sorted(solution.reasons), budget)
    for partition in sorted(solution.reasons):
        replicas = layout.ordered(partition)
        if layout.crowding(partition):
            names = ", ".join(map(str, replicas))
            text = f"{layout.name(partition)} ends on fewer racks than possible, on brokers {names}"
            solution.unmet.append(unmet(layout, UnmetCode.RACK_SPREAD, text, partition))


def _raise(layout: Layout, solution: Solution, partition: int, factor: int) -> None:
    while len(layout.replicas[partition]) < factor:
        new = best_place(layout, partition, None)
        if new is None:
            solution.unmet.append(why_no_place(layout, partition, None))
            return
        layout.append(partition, new)
        # Racks that the new replica has gained are not given up again for the sake of balance.
        layout.excess[partition] = min(layout.excess[partition], layout.crowding(partition))
        solution.items.append((partition, new))
        solution.note(partition, Reason.RAISE)


def _lower(layout: Layout, solution: Solution, partition: int, factor: int) -> None:
    """Drop what is missed least: dead replicas, then those out of sync, then those that share a rack, never the leader.

    A leader that is dead is dropped like any other. Brokers that are excluded, held or unreachable keep what they have
    before others do, for they would not get it back; only what is out of sync is not kept at the price of what is in
    sync.
    """
    isr = layout.model.partitions[partition].isr
    kept = {broker.id for broker in layout.model.brokers if broker.excluded or broker.held or broker.unreachable}
    while len(layout.replicas[partition]) > factor:
        replicas = layout.replicas[partition]

        def missed(broker: int, replicas: list[int] = replicas) -> tuple[bool, bool, bool, int, bool, float, int]:
            rest = [other for other in replicas if other != broker]
            first = broker == layout.first[partition]
            return (
                broker in layout.alive,
                broker in isr,
                broker in kept,
                layout.racks.pairs(rest),
                first,
                -layout.standing(broker),
                broker,
            )

        layout.drop(partition, min(replicas, key=missed))
        solution.note(partition, Reason.LOWER)
    # The first of the list leads next: it must be one that can.
    if layout.first[partition] not in layout.alive or layout.first[partition] not in isr:
        able = [broker for broker in layout.replicas[partition] if broker in layout.alive and broker in isr]
        if able:
            layout.lead(partition, able[0])
