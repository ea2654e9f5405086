"""The next chunk of a heal: its partitions that still need it, and the events that begin it (R46-4, R46-5)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from drover.brokers import Brokers, hidden_leaders
from drover.cluster_model import closed_by_directories
from drover.decide.plan_names import unused_plan_name
from drover.decide.verdict import DROVER
from drover.events.healing import HealAssignment, HealChunkBegun, LeftPartition, LeftReason
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanOpened, PlanThrottleSet, Priority
from drover.events.reassignments import ReassignmentCreated
from drover.events.records import AnyEvent
from drover.facts import PartitionFacts
from drover.inventory import LogDirectory
from drover.state.cluster import ClusterState
from drover.state.healing import Heal, HealChunk
from drover.unreachable import unreachable_in_words


@dataclass(frozen=True, slots=True)
class Seen:
    """One observation of a chunk's partitions and of the brokers.

    None is a partition that does not exist, or that Drover moves and that was not observed. `directories` are the log
    directories of the brokers that have reported theirs.
    """

    partitions: Mapping[TopicPartition, PartitionFacts | None]
    moving: Collection[TopicPartition]
    brokers: Brokers
    directories: Mapping[int, tuple[LogDirectory, ...]] = field(default_factory=dict)


def keys_of(chunk: HealChunk) -> tuple[TopicPartition, ...]:
    """List the partitions of a chunk."""
    return tuple(TopicPartition(assignment.topic, assignment.partition) for assignment in chunk.assignments)


def next_chunk(state: ClusterState) -> HealChunk | None:
    """Return the next chunk; None if none is left."""
    return state.heal_chunks[min(state.heal_chunks)] if state.heal_chunks else None


def begin_chunk(state: ClusterState, heal: Heal, chunk: HealChunk, seen: Seen, throttle: int | None) -> list[AnyEvent]:
    """Accept the partitions that still need it as a plan of Drover's own; skip the others, with the reason.

    A partition that Drover or another client moves is skipped: manual plans win (X4).
    """
    skipped: list[LeftPartition] = []
    taken: list[HealAssignment] = []
    for assignment in chunk.assignments:
        why = _why_not(assignment, heal, state, seen)
        if why is None:
            taken.append(assignment)
        else:
            skipped.append(LeftPartition(assignment.topic, assignment.partition, *why))
    plan = unused_plan_name(state, f"{heal.name}-{chunk.number}") if taken else None
    begun = HealChunkBegun(
        cluster=state.name,
        heal=heal.name,
        chunk=chunk.number,
        plan=plan,
        skipped=tuple(skipped),
        bytes=sum(assignment.copied_bytes for assignment in taken),
    )
    if plan is None:
        return [begun]
    names = ", ".join(map(str, heal.brokers))
    reason = f"broker {names} is away: chunk {chunk.number} of {heal.chunks}"
    opened = PlanOpened(cluster=state.name, plan=plan, by=DROVER, reason=reason, priority=Priority.HIGH)
    events: list[AnyEvent] = [begun, opened]
    if throttle is not None:
        events.append(PlanThrottleSet(cluster=state.name, plan=plan, bytes_per_second=throttle))
    events += (_created(assignment, state, plan) for assignment in taken)
    return events


def _created(assignment: HealAssignment, state: ClusterState, plan: str) -> ReassignmentCreated:
    """Accept one partition, in its canonical order where Drover has put brokers last that should not lead (X9)."""
    canonical = state.canonical_of(
        TopicPartition(assignment.topic, assignment.partition), assignment.topic_id, assignment.original
    )
    replaced_by = dict(zip(assignment.original, assignment.target, strict=True))
    return ReassignmentCreated(
        cluster=state.name,
        topic=assignment.topic,
        partition=assignment.partition,
        topic_id=assignment.topic_id,
        plan=plan,
        original=canonical,
        target=tuple(replaced_by[broker] for broker in canonical),
        current=None if canonical == assignment.original else assignment.original,
    )


def _why_not(assignment: HealAssignment, heal: Heal, state: ClusterState, seen: Seen) -> tuple[LeftReason, str] | None:
    key = TopicPartition(assignment.topic, assignment.partition)
    active = state.reassignments.get(key)
    if active is not None:
        return (LeftReason.MOVING, f"plan {active.plan} moves it to {list(active.target)}")
    if key in state.queue:
        return (LeftReason.MOVING, f"it is in the queue, in plan {state.queue[key].plan}")
    facts = seen.partitions[key]
    if facts is None or facts.topic_id != assignment.topic_id:
        return (LeftReason.GONE, "")
    if facts.move is not None or key in seen.moving:
        return (LeftReason.MOVING, "somebody else moves it")
    if not set(heal.brokers) & set(facts.replicas):
        return (LeftReason.WHOLE, f"it is on {list(facts.replicas)}")
    if facts.replicas != assignment.original:
        return (LeftReason.CHANGED, f"it was on {list(assignment.original)}, and is on {list(facts.replicas)}")
    if facts.leader is None:
        hidden = hidden_leaders(facts, seen.brokers.live)
        return (LeftReason.NO_LEADER, unreachable_in_words(hidden) if hidden else "it has no leader to copy from")
    dead = seen.brokers.dead(assignment.target)
    if dead:
        return (LeftReason.DESTINATION_DIED, f"broker {', '.join(map(str, dead))} is not alive")
    unreachable = [broker for broker in assignment.target if broker in seen.brokers.unreachable]
    if not set(assignment.original).issuperset(unreachable):
        return (LeftReason.DESTINATION_DIED, unreachable_in_words(unreachable))
    closed = [
        remark.cause
        for broker in assignment.target
        if broker not in facts.replicas
        for remark in closed_by_directories(broker, seen.directories.get(broker, ()))
    ]
    if closed:
        return (LeftReason.NO_BROKER, "; ".join(closed))
    return None
