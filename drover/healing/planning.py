"""The plan of a heal: the replicas on dead brokers are replaced in place, in chunks, the most endangered first."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from drover.facts import PartitionFacts, Survey
from drover.planning.goals import Heal, Limits
from drover.planning.model import Broker, ClusterModel, Partition
from drover.planning.proposal import Move, Proposal, Unmet, UnmetCode
from drover.planning.propose import propose
from events.healing import HealAssignment, HealChunkPlanned, HealPartitionsLeft, HealPlanned, LeftPartition, LeftReason
from events.partitions import TopicPartition

# So many partitions that cannot be healed are named; the rest is counted.
MAX_NAMED = 100
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_WHY: Mapping[UnmetCode, LeftReason] = {
    UnmetCode.OFFLINE: LeftReason.NO_LEADER,
    UnmetCode.MOVING: LeftReason.MOVING,
    UnmetCode.TOO_FEW_BROKERS: LeftReason.NO_BROKER,
    UnmetCode.RACK_SPREAD: LeftReason.NO_BROKER,
    UnmetCode.NO_ROOM: LeftReason.NO_BROKER,
}
_LIMITS = Limits(include_internal=True)

Sizes = Mapping[TopicPartition, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Patient:
    """The input of a heal plan: brokers that are `due`, `away` or `distrusted`, and partitions that are `moving`."""

    due: tuple[int, ...]
    away: frozenset[int]
    distrusted: frozenset[int] = frozenset()
    moving: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class HealPlan:
    """A heal plan: new lists, the most endangered partition first, and the partitions that are left."""

    assignments: tuple[HealAssignment, ...]
    left: tuple[LeftPartition, ...]


def plan_heal(survey: Survey, sizes: Sizes, patient: Patient) -> HealPlan:
    """Plan the replacement of every replica on the due brokers. The same arguments give the same plan.

    A partition that has a replica on another absent broker as well, whose time has not come, waits for that: on some
    versions of Kafka a move to a list with an absent broker never ends.
    """
    waiting = tuple(_waiting(survey, patient))
    dead = {(key.topic, key.partition): key for key in _with_due(survey, patient)}
    for one in waiting:
        del dead[one.topic, one.partition]
    if not dead:
        return HealPlan((), waiting)
    model = _model(survey, sizes, patient)
    proposal = propose(model, Heal(patient.due, tuple(sorted(dead))), _LIMITS)
    unmet = proposal.unmet
    moves = _whole(proposal, patient)
    tight = sorted(_names(proposal, UnmetCode.RACK_SPREAD) - {(move.topic, move.partition) for move in moves})
    if tight:
        # Two replicas in one rack are better than one replica less.
        proposal = propose(_without_racks(model), Heal(patient.due, tuple(tight)), _LIMITS)
        moves += _whole(proposal, patient)
        unmet += proposal.unmet
    found = [(survey.partitions[dead[move.topic, move.partition]], move) for move in moves]
    found.sort(key=lambda each: (len(each[0].isr), -(each[1].size_bytes or 0), each[1].topic, each[1].partition))
    assignments = tuple(
        HealAssignment(move.topic, move.partition, facts.topic_id, facts.replicas, move.after, move.size_bytes)
        for facts, move in found
    )
    healed = {(one.topic, one.partition) for one in assignments}
    left = _left(unmet, [name for name in dead if name not in healed])
    return HealPlan(assignments, (*waiting, *left))


def _whole(proposal: Proposal, patient: Patient) -> list[Move]:
    """List the moves after which no dead replica is left: a list that can be healed in part only stays as it is."""
    return [move for move in proposal.moves if not patient.away & set(move.after)]


def _names(proposal: Proposal, code: UnmetCode) -> set[tuple[str, int]]:
    return {
        (one.topic, one.partition)
        for one in proposal.unmet
        if one.code is code and one.topic is not None and one.partition is not None
    }


def _without_racks(model: ClusterModel) -> ClusterModel:
    return ClusterModel.of((replace(broker, rack=None) for broker in model.brokers), model.partitions)


def heal_events(
    plan: HealPlan, cluster: str, number: int, brokers: tuple[int, ...], chunk_partitions: int
) -> Iterator[HealPlanned | HealChunkPlanned]:
    """Write a plan down, chunk by chunk, so that nobody ever has to plan it again (R46-3)."""
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
        bytes=sum(one.copied_bytes for one in plan.assignments),
    )
    for each, assignments in enumerate(chunks, start=1):
        yield HealChunkPlanned(cluster=cluster, heal=name, chunk=each, assignments=assignments)


def left_event(plan: HealPlan, cluster: str) -> HealPartitionsLeft:
    """Name what cannot be healed, with the reasons."""
    return HealPartitionsLeft(cluster=cluster, count=len(plan.left), partitions=plan.left[:MAX_NAMED])


def heal_name(number: int) -> str:
    """Return the name of a heal; its chunks are plans of Drover's own, named `<heal>-<chunk>`."""
    return f"drover-heal-{number}"


def _with_due(survey: Survey, patient: Patient) -> Iterator[TopicPartition]:
    due = frozenset(patient.due)
    return (key for key, facts in survey.partitions.items() if not due.isdisjoint(facts.replicas))


def _waiting(survey: Survey, patient: Patient) -> Iterator[LeftPartition]:
    not_due = patient.away - frozenset(patient.due)
    for key in sorted(_with_due(survey, patient)) if not_due else ():
        others = [broker for broker in survey.partitions[key].replicas if broker in not_due]
        if others:
            names = ", ".join(map(str, others))
            detail = f"broker {names} is away too: it is planned once that is to be healed, or is back"
            yield LeftPartition(key.topic, key.partition, LeftReason.WAITS, detail)


def _model(survey: Survey, sizes: Sizes, patient: Patient) -> ClusterModel:
    live = frozenset(survey.live_brokers)
    assigned = {broker for facts in survey.partitions.values() for broker in facts.replicas}
    brokers = (
        Broker(
            broker,
            rack=survey.racks.get(broker),
            alive=broker in live and broker not in patient.away,
            failing=broker in patient.distrusted,
        )
        for broker in live | assigned | patient.away
    )
    partitions = (
        _partition(key, facts, sizes.get(key, {}), is_moving=key in patient.moving)
        for key, facts in survey.partitions.items()
    )
    return ClusterModel.of(brokers, partitions)


def _partition(key: TopicPartition, facts: PartitionFacts, sizes: Mapping[int, int], *, is_moving: bool) -> Partition:
    size = sizes.get(facts.leader) if facts.leader is not None else None
    return Partition(
        topic=key.topic,
        partition=key.partition,
        replicas=facts.replicas,
        leader=facts.leader,
        isr=facts.isr,
        size_bytes=max(sizes.values(), default=None) if size is None else size,
        internal=key.topic in _INTERNAL,
        moving=is_moving,
    )


def _left(unmet: tuple[Unmet, ...], names: Collection[tuple[str, int]]) -> tuple[LeftPartition, ...]:
    reasons = {
        (one.topic, one.partition): LeftPartition(
            one.topic, one.partition, _WHY.get(one.code, LeftReason.NOT_PLANNED), one.text
        )
        for one in unmet
        if one.topic is not None and one.partition is not None
    }
    unknown = LeftReason.NOT_PLANNED
    return tuple(reasons.get(name) or LeftPartition(*name, unknown) for name in sorted(names))
