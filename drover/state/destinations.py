"""PURE: the destinations of the partitions that Drover moves or will move."""

from collections.abc import Mapping

from drover.events.partitions import TopicPartition
from drover.state.cluster import ClusterState
from drover.state.reassignment import Reassignment


def destinations(state: ClusterState) -> Mapping[TopicPartition, tuple[int, ...]]:
    """Return the target brokers of every partition that has a reassignment or a queue entry."""
    brokers: dict[TopicPartition, tuple[int, ...]] = {}
    for key, entry in state.reassignments.items():
        then = () if entry.replacement is None else entry.replacement.target
        brokers[key] = (*(entry.current if entry.awaits_cancel else entry.step_target), *then)
    for key, queued in state.queue.items():
        brokers[key] = (*brokers.get(key, ()), *queued.target)
    return brokers


def targets(state: ClusterState) -> Mapping[TopicPartition, tuple[int, ...]]:
    """Return the list at which each partition will end; for a queued partition, its target."""
    queued = {key: entry.target for key, entry in state.queue.items()}
    return {**queued, **{key: target_of(entry) for key, entry in state.reassignments.items()}}


def target_of(entry: Reassignment) -> tuple[int, ...]:
    """Return the list at which a reassignment will end: its target, or the list of a cancel."""
    return entry.destination if entry.is_cancelled else entry.target
