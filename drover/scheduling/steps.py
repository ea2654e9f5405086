"""The events with which a step begins, and whether its room was taken before."""

from typing import TypedDict

from drover.reassignment.phase import Phase
from drover.reassignment.values import Block, Reassignment, Step
from drover.reassignment.verdict import blocked, event_name
from events.partitions import TopicPartition
from events.reassignments import Call, CallIntended, ReassignmentUnblocked, StepPostponed, StepPrepared
from events.records import ReassignmentEvent


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


def postponed(reassignment: Reassignment, cluster: str) -> tuple[StepPostponed, ...]:
    """Give up the room of a prepared step that cannot begin; nothing if no step is prepared."""
    key, step = reassignment.key, reassignment.step
    if reassignment.phase is not Phase.PREPARED or step is None:
        return ()
    return (StepPostponed(cluster=cluster, topic=key.topic, partition=key.partition, step=step.number),)


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
