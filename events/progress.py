"""Byte samples of moving partitions: telemetry on its own topic, never folded into the state."""

from msgspec import Struct

from events.partitions import TopicPartition


class ReplicaBytes(Struct, frozen=True):
    """What one added replica has on disk."""

    broker: int
    bytes: int


class Progress(Struct, frozen=True, kw_only=True, tag_field="kind", tag="progress"):
    """How far one moving partition is.

    `bytes_total` is the leader's size on disk times the replicas being added in this step; `bytes_done` the sum of what
    these have. Both may shrink (retention) or grow (producers write on). `epoch` is the owner's: readers drop samples
    of an epoch below the highest seen. `at_ms` is the sampling worker's wall clock, since epoch.
    """

    cluster: str
    topic: str
    partition: int
    epoch: int
    at_ms: int
    step: int
    bytes_done: int
    bytes_total: int
    adding: tuple[ReplicaBytes, ...]

    @property
    def key(self) -> TopicPartition:
        """The partition the sample is about."""
        return TopicPartition(self.topic, self.partition)
