"""The steps that weigh on brokers, as last seen: the ports that a partition has left are those of its step before."""

from drover.reassignment.ports import Ports
from drover.reassignment.state import Step
from drover.state.cluster import ClusterState
from events.partitions import TopicPartition


class Weighing:
    """What each partition in flight weighed on when it was last followed; gone with the ownership."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._steps: dict[TopicPartition, Step] = {}

    def follow(self, key: TopicPartition) -> Ports:
        """Return the ports that a partition may have left since it was last followed."""
        entry, before = self._state.reassignments.get(key), self._steps.pop(key, None)
        step = None if entry is None else entry.weighing_step
        if step is not None:
            self._steps[key] = step
        return () if before is None or before is step else before.load
