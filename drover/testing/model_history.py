"""The present and past Metadata of a model cluster, since brokers lag behind the controller."""

from collections import deque

from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts
from drover.testing.controller_model import Partition
from drover.testing.model_state import ModelState

Past = deque[tuple[int, PartitionFacts | None]]


class MetadataHistory:
    """The earlier states, with their ends, of each partition that has changed within `keep_ms`; none are kept at 0."""

    def __init__(self, state: ModelState) -> None:
        self.keep_ms = 0
        self._state = state
        self._past: dict[TopicPartition, Past] = {}
        state.on_change.append(self._remember)

    def current(self, partition: TopicPartition) -> PartitionFacts | None:
        """Return a partition by the newest metadata."""
        return self._facts(partition, self._state.partition(partition))

    def facts(self, partition: TopicPartition, at_ms: int) -> PartitionFacts | None:
        """Return a partition by the metadata of `at_ms`, without the changes at that time."""
        for until_ms, shown in self._past.get(partition, ()):
            if at_ms <= until_ms:
                return shown
        return self.current(partition)

    def _remember(self, partition: TopicPartition, before: Partition | None, _after: Partition | None) -> None:
        if self.keep_ms == 0:
            return
        past = self._past.setdefault(partition, deque())
        past.append((self._state.now_ms, self._facts(partition, before)))
        while past and past[0][0] < self._state.now_ms - self.keep_ms:
            past.popleft()

    def _facts(self, partition: TopicPartition, state: Partition | None) -> PartitionFacts | None:
        if state is None:
            return None
        lacks_listener = state.leader is not None and self._state.brokers[state.leader].lacks_listener
        leader = None if lacks_listener else state.leader
        topic_id = self._state.topics[partition.topic].topic_id
        return PartitionFacts(topic_id, leader, state.replicas, state.isr, leader_lacks_listener=lacks_listener)
