"""The events with which a judgement is acted on, all but a reorder's (`drover.reconcile.leaders.reorders`)."""

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
    """Intend the election of the first of a list; `leader` leads now, None if that is not known."""
    return LeaderElectionIntended(**event_name(state.name, key), topic_id=topic_id, replicas=replicas, leader=leader)


def events_of(
    state: ClusterState, key: TopicPartition, found: Judgement | None, facts: PartitionFacts | None
) -> Iterator[LeadershipEvent]:
    """Yield what is to be recorded; a wait only once while its reason and words stay the same."""
    name, known = event_name(state.name, key), state.waiting.get(key)
    match found:
        case Elect() if facts is not None:
            yield election(state, key, facts.topic_id, facts.replicas, facts.leader)
        case Wait():
            if known is None or (known.why, known.detail) != (found.why, found.detail):
                yield LeaderWaiting(**name, why=found.why, detail=found.detail)
        case Forget():
            yield LeaderOrderEnded(**name, why=found.why, replicas=() if facts is None else facts.replicas)
        case LeaveAlone() if facts is not None:
            yield LeaderOrderLeft(**name, replicas=facts.replicas, expected=state.orders[key].replicas)
        case _:
            if known is not None:
                yield LeaderWaitEnded(**name)
