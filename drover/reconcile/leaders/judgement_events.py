"""The events that follow a judgement; those of a reorder are in `drover.reconcile.leaders.reorders`."""

from collections.abc import Iterator

from drover.decide.verdict import event_name
from drover.events.leadership import (
    LeaderElectionIntended,
    LeaderOrderEnded,
    LeaderOrderLeft,
    LeadershipEvent,
    LeaderWaitEnded,
    LeaderWaiting,
)
from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts
from drover.reconcile.leaders.judgement import Elect, Forget, Judgement, LeaveAlone, Wait
from drover.state.cluster import ClusterState


def election(
    state: ClusterState, key: TopicPartition, topic_id: str, replicas: tuple[int, ...], leader: int | None = None
) -> LeaderElectionIntended:
    """Intend the election of the first of a list; `leader` is the present one, None if unknown."""
    return LeaderElectionIntended(**event_name(state.name, key), topic_id=topic_id, replicas=replicas, leader=leader)


def events_of(
    state: ClusterState, key: TopicPartition, judgement: Judgement | None, facts: PartitionFacts | None
) -> Iterator[LeadershipEvent]:
    """Yield the events to record; a wait only when its reason or words are new."""
    name, wait = event_name(state.name, key), state.waiting.get(key)
    match judgement:
        case Elect() if facts is not None:
            yield election(state, key, facts.topic_id, facts.replicas, facts.leader)
        case Wait():
            if wait is None or (wait.why, wait.detail) != (judgement.why, judgement.detail):
                yield LeaderWaiting(**name, why=judgement.why, detail=judgement.detail)
        case Forget():
            yield LeaderOrderEnded(**name, why=judgement.why, replicas=() if facts is None else facts.replicas)
        case LeaveAlone() if facts is not None:
            yield LeaderOrderLeft(**name, replicas=facts.replicas, expected=state.orders[key].replicas)
        case _:
            if wait is not None:
                yield LeaderWaitEnded(**name)
