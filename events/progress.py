"""Samples of moving partitions, projections and workers: telemetry on its own topic, never folded into the state."""

from msgspec import Struct

from events.partitions import TopicPartition


class ReplicaBytes(Struct, frozen=True):
    """What one added replica has on disk."""

    broker: int
    bytes: int


class Progress(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="progress"):
    """How far one moving partition is.

    `bytes_total` is the leader's size on disk times the replicas being added in this step; `bytes_done` the sum of what
    these have. Both may shrink (retention) or grow (producers write on). `epoch` is the owner's: readers drop samples
    of an epoch below the highest seen. `at_ms` is the sampling worker's wall clock, since epoch. `leader` is the broker
    that the copies come from; None while there is none.
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
    leader: int | None = None

    @property
    def key(self) -> TopicPartition:
        """The partition the sample is about."""
        return TopicPartition(self.topic, self.partition)


class ProjectionSample(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="projection"):
    """How far one projector is with one cluster's tree.

    `role` is `writing`, `following` (another one writes), `taking-over` or `waiting`. `lag_events` are not in the tree
    yet, the oldest for `lag_ms`. `drifted` counts nodes that others had changed. `error` says what it waits for.
    `at_ms` is the projector's wall clock, since epoch.
    """

    cluster: str
    writer: str
    role: str
    at_ms: int
    lag_events: int
    lag_ms: int
    drifted: int = 0
    error: str | None = None


class OwnedShard(Struct, frozen=True):
    """A shard that a worker owns, and under which epoch."""

    shard: int
    epoch: int


class WorkerSample(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="worker"):
    """A sign of life: a worker runs at `at_ms` (its wall clock, since epoch) and owns these shards."""

    worker: str
    at_ms: int
    shards: tuple[OwnedShard, ...]


Sample = Progress | ProjectionSample | WorkerSample
