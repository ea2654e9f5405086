"""The next steps, the events that begin one, and the election between two of them."""

from typing import TypedDict

from drover.decide.cancellation import postponed
from drover.decide.order_endings import is_reorder
from drover.decide.verdict import Context, blocked, event_name
from drover.events.leadership import LeaderElectionIntended
from drover.events.partitions import TopicPartition
from drover.events.reassignments import (
    Blocker,
    Call,
    CallIntended,
    FailureReason,
    ReassignmentFailed,
    ReassignmentUnblocked,
    StepPrepared,
)
from drover.events.records import ReassignmentEvent
from drover.facts import PartitionFacts
from drover.reconcile.moves.context import completion_of, stepping_of
from drover.reconcile.moves.start import effective_step_target
from drover.reconcile.moves.stepping import Situation, next_step
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.reassignment import Block, Reassignment, Step


class _StepFields(TypedDict):
    cluster: str
    topic: str
    partition: int
    step: int
    final: bool
    expected: tuple[int, ...]
    replicas: tuple[int, ...]
    leader: int
    copy_bytes: int | None


def prepare_step(cluster: str, key: TopicPartition, step: Step) -> StepPrepared:
    """Take a slot for a step whose throttle is still to be set."""
    return StepPrepared(**_fields(cluster, key, step))


def intend_step(cluster: str, key: TopicPartition, step: Step) -> CallIntended:
    """Intend the call of a step."""
    return CallIntended(**_fields(cluster, key, step), call=Call.STEP)


def blocked_start(reassignment: Reassignment, block: Block, cluster: str) -> tuple[ReassignmentEvent, ...]:
    """Record that the next step cannot begin: a prepared step is given up.

    A reorder for the sake of leadership ends if Kafka would refuse its list. It begins again once it can be done, and
    nothing else of its partition waits for it.
    """
    if not (is_reorder(reassignment) and block.why is Blocker.UNREGISTERED_BROKER):
        return (*postponed(reassignment, cluster), *blocked(reassignment, block, cluster))
    name, why = event_name(cluster, reassignment.key), FailureReason.REFUSED_BY_KAFKA
    return (ReassignmentFailed(**name, why=why, detail=block.detail, replicas=reassignment.current),)


def waiting_for_throttle(
    reassignment: Reassignment, refusal: Block | None, cluster: str
) -> tuple[ReassignmentEvent, ...]:
    """Block a step that Kafka's refusal of its throttle holds up; end the block of one that passed every other gate."""
    if refusal is not None:
        return blocked(reassignment, refusal, cluster)
    if reassignment.block is None:
        return ()
    return (ReassignmentUnblocked(**event_name(cluster, reassignment.key)),)


def _fields(cluster: str, key: TopicPartition, step: Step) -> _StepFields:
    return {
        "cluster": cluster,
        "topic": key.topic,
        "partition": key.partition,
        "step": step.number,
        "final": step.final,
        "expected": step.expected,
        "replicas": step.replicas,
        "leader": -1 if step.leader is None else step.leader,
        "copy_bytes": step.copy_bytes,
    }


def is_prepared(reassignment: Reassignment, step: Step) -> bool:
    """Whether room is taken and throttles are set for this very step: for its copies and the leader that it moves."""
    prepared = reassignment.step
    if reassignment.phase is not Phase.PREPARED or prepared is None or step.moves_leader > prepared.moves_leader:
        return False
    return set(step.adding) <= set(prepared.adding)


def likely_step(
    state: ClusterState, observed: ObservationCache, reassignment: Reassignment, leader: int | None
) -> Step | None:
    """Return the likely next step; None if unknown. `leader` is the one last observed.

    None as well for a prepared step, which has its room, and for one to a dead broker, which is tried to record that.
    """
    live = observed.live
    if reassignment.phase is Phase.PREPARED or not live:
        return None
    topic = reassignment.key.topic
    listed = state.listed_for(topic)
    # As if all replicas were in sync: others change the step only where min.insync.replicas is missed.
    now = Situation(
        current=reassignment.current,
        target=effective_step_target(reassignment, listed),
        original=reassignment.original,
        live=live,
        isr=reassignment.current,
        leader=leader,
        min_isr=observed.min_isr.get(topic, 1),
        max_replicas_per_step=state.limits.max_replicas_per_step,
        drops_last=reassignment.returning_to is not None,
        listed=listed,
        completion=completion_of(state),
        racks=observed.racks,
    )
    step = next_step(reassignment, stepping_of(state, reassignment), now)
    if step is None or any(broker not in live for broker in step.adding):
        return None
    return step


def election_after(reassignment: Reassignment, seen: PartitionFacts, context: Context) -> LeaderElectionIntended | None:
    """Return the election that is due between two steps (R435-3); None if there is none, or it cannot be held.

    The first of the list is the target's first, was added by the last step, is in sync and alive, and does not lead. A
    broker that should not lead is not elected (X8): Kafka makes it the leader when no other replica is left.
    """
    step, head = reassignment.step, reassignment.current[0]
    is_prepared = (
        reassignment.phase is Phase.CONFIRMED
        and reassignment.returning_to is None
        and step is not None
        and step.replicas == reassignment.current == seen.replicas
        and head in step.adding
        and head == effective_step_target(reassignment, context.listed)[0]
    )
    can_lead = head in seen.isr and head in context.live and head not in context.listed
    if not is_prepared or not can_lead or seen.leader in {None, head} or seen.move is not None:
        return None
    name = event_name(context.cluster, reassignment.key)
    replicas = reassignment.current
    return LeaderElectionIntended(**name, topic_id=reassignment.topic_id, replicas=replicas, leader=seen.leader)
