"""The events with which a step begins."""

from drover.reassignment.state import Step
from events.partitions import TopicPartition
from events.reassignments import Call, CallIntended, StepPrepared


def prepare_step(cluster: str, key: TopicPartition, step: Step) -> StepPrepared:
    """Take a slot for a step whose throttle is still to be set."""
    return StepPrepared(
        cluster=cluster,
        topic=key.topic,
        partition=key.partition,
        step=step.number,
        final=step.final,
        expected=step.expected,
        replicas=step.replicas,
        leader=-1 if step.leader is None else step.leader,
    )


def intend_step(cluster: str, key: TopicPartition, step: Step) -> CallIntended:
    """Intend the call of a step."""
    return CallIntended(
        cluster=cluster,
        topic=key.topic,
        partition=key.partition,
        call=Call.STEP,
        expected=step.expected,
        replicas=step.replicas,
        step=step.number,
        final=step.final,
        leader=-1 if step.leader is None else step.leader,
    )
