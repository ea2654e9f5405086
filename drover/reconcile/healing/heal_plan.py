"""The plan of a heal: the replicas on dead brokers are replaced in place, in chunks, the most endangered first."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from drover.cluster_model import Knowledge, model_of
from drover.events.healing import (
    HealAssignment,
    HealChunkPlanned,
    HealPartitionsLeft,
    HealPlanned,
    LeftPartition,
    LeftReason,
)
from drover.events.partitions import TopicPartition
from drover.inventory import Inventory
from drover.planner.disks import closed_brokers
from drover.planner.goals import Heal, Limits
from drover.planner.model import Broker, ClusterModel
from drover.planner.proposal import Move, Proposal, Unmet, UnmetCode
from drover.planner.propose import propose
from drover.planner.rules import NO_RULES, Rules
from drover.reconcile.healing.brokers_to_heal import BrokersToHeal

# At most so many partitions that cannot be healed are named; the others are only counted.
MAX_NAMED = 100
# At most so many brokers are named that receive nothing because of their log directories.
MAX_CLOSED_NAMED = 3
# Reasons that spared brokers or fewer racks may remove.
_TIGHT = frozenset({UnmetCode.TOO_FEW_BROKERS, UnmetCode.RACK_SPREAD, UnmetCode.NO_ROOM, UnmetCode.BROKER_SET})
_WHY: Mapping[UnmetCode, LeftReason] = {
    UnmetCode.OFFLINE: LeftReason.NO_LEADER,
    UnmetCode.MOVING: LeftReason.MOVING,
    **dict.fromkeys(_TIGHT, LeftReason.NO_BROKER),
}


@dataclass(frozen=True, slots=True)
class HealPlan:
    """A heal plan: new lists, the most endangered partition first, and the partitions that are left."""

    assignments: tuple[HealAssignment, ...]
    left: tuple[LeftPartition, ...]


def plan_heal(
    inventory: Inventory, to_heal: BrokersToHeal, disk_limit_percent: int, rules: Rules = NO_RULES
) -> HealPlan:
    """Plan the replacement of every replica on the due brokers. The same arguments give the same plan.

    `rules` hold as for every plan, except that disks have a limit of their own for heals.

    A partition with a replica on another absent broker, which is not due yet, waits for that one: on some versions of
    Kafka a move to a list with an absent broker never ends.
    """
    waiting = tuple(_waiting(inventory, to_heal))
    dead = {(key.topic, key.partition): key for key in _with_due(inventory, to_heal)}
    for partition in waiting:
        del dead[partition.topic, partition.partition]
    if not dead:
        return HealPlan((), waiting)
    limits = replace(rules.limits, disk_limit=disk_limit_percent / 100, include_internal=True)
    model = rules.on(model_of(inventory, _knowledge(inventory, to_heal)))
    moves, unmet = _moves(model, to_heal, limits, tuple(sorted(dead)))
    with_facts = [(inventory.partitions[dead[move.topic, move.partition]], move) for move in moves]
    with_facts.sort(key=lambda each: (len(each[0].isr), -(each[1].size_bytes or 0), each[1].topic, each[1].partition))
    assignments = tuple(
        HealAssignment(move.topic, move.partition, facts.topic_id, facts.replicas, move.after, move.size_bytes)
        for facts, move in with_facts
    )
    healed = {(assignment.topic, assignment.partition) for assignment in assignments}
    left = _left(unmet, [name for name in dead if name not in healed])
    return HealPlan(assignments, (*waiting, *left))


def _knowledge(inventory: Inventory, to_heal: BrokersToHeal) -> Knowledge:
    silent = {broker for broker, facts in inventory.brokers.items() if facts.directories is None}
    return Knowledge(
        held=to_heal.spared | silent,
        dead=to_heal.away | frozenset(to_heal.due),
        moving=to_heal.moving,
        destinations=to_heal.destinations,
    )


def _moves(
    model: ClusterModel, to_heal: BrokersToHeal, limits: Limits, names: tuple[tuple[str, int], ...]
) -> tuple[list[Move], list[Unmet]]:
    """Replace replicas under all rules first, then also on spared brokers, then in fewer racks.

    Two replicas in one rack are better than one replica less.
    """
    moves: list[Move] = []
    unmet: list[Unmet] = []
    spares_any = any(broker.held for broker in model.brokers)
    for relaxed in (_as_it_is, _with_spared_brokers, _without_racks):
        model = relaxed(model)
        proposal = propose(model, Heal(to_heal.due, names), limits)
        whole = [move for move in proposal.moves if _is_whole(move, to_heal)]
        crowded = {move for move in whole if relaxed is _as_it_is and spares_any and _loses_a_rack(move, model)}
        made = [move for move in whole if move not in crowded]
        moves += made
        left = _by_name(proposal, names)
        unmet += left
        named = {(move.topic, move.partition) for move in made}
        names = tuple(sorted({*_tight(left), *((move.topic, move.partition) for move in crowded)} - named))
        if not names:
            break
        model = _after(model, made)
    return moves, _with_closed_brokers(unmet, model)


def _with_closed_brokers(unmet: Collection[Unmet], model: ClusterModel) -> list[Unmet]:
    """Where brokers are too few, name those that take no replica because of their log directories."""
    named = "; ".join(remark.cause for remark in closed_brokers(model)[:MAX_CLOSED_NAMED])
    if not named:
        return list(unmet)
    return [replace(goal, text=f"{goal.text}; {named}") if goal.code in _TIGHT else goal for goal in unmet]


def _is_whole(move: Move, to_heal: BrokersToHeal) -> bool:
    """Whether the new list has no dead replica: a list that can be healed only in part stays as it is."""
    return not to_heal.away & set(move.after)


def _loses_a_rack(move: Move, model: ClusterModel) -> bool:
    """Whether the new list is in fewer racks: a spared broker may be in the missing one."""
    racks = {broker.id: broker.rack for broker in model.brokers if broker.rack is not None}
    before, after = ({racks[broker] for broker in each if broker in racks} for each in (move.before, move.after))
    return len(after) < len(before)


def _by_name(proposal: Proposal, names: Collection[tuple[str, int]]) -> Collection[Unmet]:
    """Return the unmet goals by partition; a refusal names none and holds for all: all brokers may be spared, say."""
    if not proposal.refused:
        return proposal.unmet
    return [replace(goal, topic=topic, partition=number) for goal in proposal.unmet for topic, number in names]


def _tight(unmet: Collection[Unmet]) -> set[tuple[str, int]]:
    return {
        (goal.topic, goal.partition)
        for goal in unmet
        if goal.code in _TIGHT and goal.topic is not None and goal.partition is not None
    }


def _as_it_is(model: ClusterModel) -> ClusterModel:
    return model


def _with_spared_brokers(model: ClusterModel) -> ClusterModel:
    return replace(model, brokers=tuple(replace(broker, held=False) for broker in model.brokers))


def _without_racks(model: ClusterModel) -> ClusterModel:
    return replace(model, brokers=tuple(replace(broker, rack=None) for broker in model.brokers))


def _after(model: ClusterModel, moves: Collection[Move]) -> ClusterModel:
    """Return the model with the moves made: the lists are the new ones, and the copies take room."""
    lists = {(move.topic, move.partition): move.after for move in moves}
    arriving: dict[int, list[int]] = {}
    for move in moves:
        for broker in move.adding:
            arriving.setdefault(broker, []).append(move.size_bytes or 0)
    return replace(
        model,
        brokers=tuple(_filled(broker, arriving.get(broker.id, ())) for broker in model.brokers),
        partitions=tuple(
            replace(partition, replicas=lists.get(partition.name, partition.replicas)) for partition in model.partitions
        ),
    )


def _filled(broker: Broker, sizes: Collection[int]) -> Broker:
    """Let copies arrive on a broker."""
    return replace(broker, arriving_bytes=broker.arriving_bytes + sum(sizes))


def heal_events(
    plan: HealPlan, cluster: str, number: int, brokers: tuple[int, ...], chunk_partitions: int
) -> Iterator[HealPlanned | HealChunkPlanned]:
    """Write a plan down, chunk by chunk, so that it is made once (R46-3)."""
    name = heal_name(number)
    chunks = [
        plan.assignments[first : first + chunk_partitions]
        for first in range(0, len(plan.assignments), chunk_partitions)
    ]
    yield HealPlanned(
        cluster=cluster,
        heal=name,
        number=number,
        brokers=brokers,
        chunks=len(chunks),
        partitions=len(plan.assignments),
        bytes=sum(assignment.copied_bytes for assignment in plan.assignments),
    )
    for chunk, assignments in enumerate(chunks, start=1):
        yield HealChunkPlanned(cluster=cluster, heal=name, chunk=chunk, assignments=assignments)


def left_event(plan: HealPlan, cluster: str) -> HealPartitionsLeft:
    """Name the partitions that cannot be healed, with the reasons."""
    return HealPartitionsLeft(cluster=cluster, count=len(plan.left), partitions=plan.left[:MAX_NAMED])


def heal_name(number: int) -> str:
    """Return the name of a heal; its chunks are plans of Drover's own, named `<heal>-<chunk>`."""
    return f"drover-heal-{number}"


def _with_due(inventory: Inventory, to_heal: BrokersToHeal) -> Iterator[TopicPartition]:
    due = frozenset(to_heal.due)
    return (key for key, facts in inventory.partitions.items() if not due.isdisjoint(facts.replicas))


def _waiting(inventory: Inventory, to_heal: BrokersToHeal) -> Iterator[LeftPartition]:
    not_due = to_heal.away - frozenset(to_heal.due)
    for key in sorted(_with_due(inventory, to_heal)) if not_due else ():
        others = [broker for broker in inventory.partitions[key].replicas if broker in not_due]
        if others:
            names = ", ".join(map(str, others))
            detail = f"broker {names} is away too: it is planned once that is to be healed, or is back"
            yield LeftPartition(key.topic, key.partition, LeftReason.WAITS, detail)


def _left(unmet: Collection[Unmet], names: Collection[tuple[str, int]]) -> tuple[LeftPartition, ...]:
    reasons = {
        (goal.topic, goal.partition): LeftPartition(
            goal.topic, goal.partition, _WHY.get(goal.code, LeftReason.NOT_PLANNED), goal.text
        )
        for goal in unmet
        if goal.topic is not None and goal.partition is not None
    }
    unknown = LeftReason.NOT_PLANNED
    return tuple(reasons.get(name) or LeftPartition(*name, unknown) for name in sorted(names))
