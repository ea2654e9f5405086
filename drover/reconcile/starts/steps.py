"""The events with which a step begins, and whether its room was taken before."""

from typing import TypedDict

from drover.decide.cancellation import postponed
from drover.decide.order_endings import is_reorder
from drover.decide.verdict import blocked, event_name
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


def held_up(reassignment: Reassignment, block: Block, cluster: str) -> tuple[ReassignmentEvent, ...]:
    """Record that the next step cannot begin: what was prepared is given up.

    A reorder for the sake of leadership whose list Kafka would refuse ends with that: it is begun again when it can be
    done, and nothing else of its partition waits for it.
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
    """Whether room was taken and throttles are set for this very step: its copies, and the leader that it moves."""
    prepared = reassignment.step
    if reassignment.phase is not Phase.PREPARED or prepared is None or step.moves_leader > prepared.moves_leader:
        return False
    return set(step.adding) <= set(prepared.adding)
