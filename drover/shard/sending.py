"""What is sent to a cluster: the list of an intended call, and the throttles that are owed or must be read."""

from drover.reassignment.facts import BrokerRates, ThrottledReplicas
from drover.reassignment.state import ClusterState, Phase
from drover.shard.messages import ChangeThrottles, Effect, ReadThrottles
from drover.shard.track import ClusterTrack
from events.partitions import TopicPartition
from events.throttles import Entries


def throttles_pending(state: ClusterState) -> bool:
    """Whether a write to the throttle settings is owed."""
    brokers = any(entry.pending for entry in state.broker_throttles.values())
    return brokers or any(topic.pending for topic in state.topic_throttles.values())


def list_to_send(state: ClusterState, key: TopicPartition) -> tuple[int, ...] | None:
    """Return what an intended call sends of a partition; None cancels."""
    reassignment = state.reassignments[key]
    if reassignment.phase is Phase.CANCEL_INTENDED:
        return None
    if reassignment.phase is Phase.RESTORE_INTENDED:
        return reassignment.original if reassignment.restoring is None else reassignment.restoring
    assert reassignment.step is not None, f"{key} has an intent without a step"
    return reassignment.step.replicas


def throttle_writes(state: ClusterState, track: ClusterTrack, now_ms: int, start_by_ms: int) -> ChangeThrottles | None:
    """Write the throttles that are owed, one call at a time; None if there is nothing to write now."""
    if not throttles_pending(state) or track.changing or track.throttles_from_ms > now_ms:
        return None
    rates = {
        broker: BrokerRates(entry.intended.leader, entry.intended.follower)
        for broker, entry in state.broker_throttles.items()
        if entry.pending and broker in track.live
    }
    add = {topic: _lists(known.add) for topic, known in state.topic_throttles.items() if known.pending}
    remove = {topic: _lists(known.remove) for topic, known in state.topic_throttles.items() if known.pending}
    return ChangeThrottles(state.name, rates, add, remove, start_by_ms) if rates or add else None


def throttle_effects(state: ClusterState, track: ClusterTrack, now_ms: int, start_by_ms: int) -> tuple[Effect, ...]:
    """Write the throttles that are owed, if they may still be, and read what must be known, one of each at a time."""
    effects: list[Effect] = []
    writes = throttle_writes(state, track, now_ms, start_by_ms) if now_ms <= start_by_ms else None
    if writes is not None:
        track.changing = True
        effects.append(writes)
    if (track.read_brokers or track.read_topics) and not track.reading and not track.changing:
        track.reading = True
        effects.append(ReadThrottles(state.name, track.read_brokers, track.read_topics))
    return tuple(effects)


def _lists(entries: Entries) -> ThrottledReplicas:
    return ThrottledReplicas(entries.leader, entries.follower)
