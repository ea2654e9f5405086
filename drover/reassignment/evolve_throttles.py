"""The fold of the throttle ledger: what Drover has put on brokers and topics, and what it found there before."""

from typing import assert_never

from msgspec.structs import replace

from drover.reassignment.state import BrokerThrottle, ClusterState, TopicThrottle
from events import throttles
from events.records import ThrottleEvent
from events.throttles import NO_ENTRIES, Entries


def apply(state: ClusterState, event: ThrottleEvent) -> None:
    """Fold one event into the ledger; an entry leaves it when nothing of Drover's is left in the cluster."""
    match event:
        case throttles.BrokerThrottleIntended():
            known = state.broker_throttles.get(event.broker)
            baseline = event.found if known is None else known.baseline
            state.broker_throttles[event.broker] = BrokerThrottle(
                baseline=baseline, intended=event.rates, pending=True, release=event.release
            )
        case throttles.BrokerThrottleSet():
            entry = state.broker_throttles[event.broker]
            if entry.release:
                del state.broker_throttles[event.broker]
            else:
                state.broker_throttles[event.broker] = replace(entry, pending=False)
        case throttles.BrokerThrottleLeft():
            state.broker_throttles.pop(event.broker, None)
        case throttles.TopicThrottleIntended():
            topic = state.topic_throttles.get(event.topic, TopicThrottle())
            state.topic_throttles[event.topic] = replace(
                topic, add=event.add, remove=event.remove, pending=True, left=False, topic_id=event.topic_id
            )
        case throttles.TopicThrottleSet():
            topic = _settled(state.topic_throttles[event.topic])
            if topic.present == NO_ENTRIES:
                del state.topic_throttles[event.topic]
            else:
                state.topic_throttles[event.topic] = topic
        case throttles.TopicThrottleLeft():
            state.topic_throttles[event.topic] = TopicThrottle(left=True, topic_id=event.topic_id)
        case _:
            assert_never(event)


def _settled(topic: TopicThrottle) -> TopicThrottle:
    present = Entries(
        leader=_changed(topic.present.leader, topic.add.leader, topic.remove.leader),
        follower=_changed(topic.present.follower, topic.add.follower, topic.remove.follower),
    )
    return TopicThrottle(present=present, topic_id=topic.topic_id)


def _changed(present: tuple[str, ...], add: tuple[str, ...], remove: tuple[str, ...]) -> tuple[str, ...]:
    """Keep the entries sorted, so that equal ledgers are equal values."""
    if not add and not remove:
        return present
    gone = {*remove, *add}
    kept = [entry for entry in present if entry not in gone]
    kept += {*add} - {*remove}
    kept.sort()
    return tuple(kept)
