"""PURE: the brokers that what Drover moves, or will move, leads to."""

from collections.abc import Mapping

from drover.state.cluster import ClusterState
from events.partitions import TopicPartition


def destinations(state: ClusterState) -> Mapping[TopicPartition, tuple[int, ...]]:
    """Return by partition the brokers that are to have a replica, of what was accepted and of what is queued."""
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for key, entry in state.reassignments.items():
        then = () if entry.replacement is None else entry.replacement.target
        found[key] = (*(entry.current if entry.awaits_cancel else entry.heading), *then)
    for key, queued in state.queue.items():
        found[key] = (*found.get(key, ()), *queued.target)
    return found
