"""PURE: where the partitions that Drover moves, or will move, are going."""

from collections.abc import Mapping

from drover.state.cluster import ClusterState
from events.partitions import TopicPartition


def destinations(state: ClusterState) -> Mapping[TopicPartition, tuple[int, ...]]:
    """Return the target brokers of every partition that has a reassignment or a queue entry."""
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for key, entry in state.reassignments.items():
        then = () if entry.replacement is None else entry.replacement.target
        found[key] = (*(entry.current if entry.awaits_cancel else entry.heading), *then)
    for key, queued in state.queue.items():
        found[key] = (*found.get(key, ()), *queued.target)
    return found
