"""The ports that steps in flight hold, so that what an event frees is known without a scan."""

from drover.events.partitions import TopicPartition
from drover.state.cluster import ClusterState
from drover.state.ports import Ports
from drover.state.reassignment import Step


class HeldPorts:
    """Remembers the step of each partition in flight; a new owner starts with an empty memory."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._steps: dict[TopicPartition, Step] = {}

    def follow(self, key: TopicPartition) -> Ports:
        """Return the ports that a partition held before its last event and may have freed with it."""
        entry, before = self._state.reassignments.get(key), self._steps.pop(key, None)
        step = None if entry is None else entry.weighing_step
        if step is not None:
            self._steps[key] = step
        return () if before is None or before is step else before.load
