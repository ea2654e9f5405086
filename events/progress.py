"""Samples of moving partitions, projections and workers: telemetry on its own topic, never folded into the state.

A client with write access can send any numbers, so each field has bounds; a sample beyond them counts as unreadable.
Tables hold at most 63 bits, and dates at most four digits of a year.
"""

from typing import Annotated

from msgspec import Meta, Struct

from drover.events.fields import LAST_MS, BrokerId, Index
from drover.events.partitions import TopicPartition

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
WallClock = Annotated[int, Meta(ge=0, le=LAST_MS)]


class ReplicaBytes(Struct, frozen=True):
    """What one added replica has on disk."""

    broker: BrokerId
    bytes: Count


class Progress(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="progress"):
    """How far one moving partition is.

    `bytes_total` is the leader's size on disk times the replicas being added in this step; `bytes_done` the sum of what
    these have. Both may shrink (retention) or grow (producers write on). `epoch` is the owner's: readers drop samples
    of an epoch below the highest seen. `at_ms` is the sampling worker's wall clock, since epoch. `leader` is the broker
    that the copies come from; None while there is none.
    """

    cluster: str
    topic: str
    partition: Index
    epoch: Count
    at_ms: WallClock
    step: Count
    bytes_done: Count
    bytes_total: Count
    adding: tuple[ReplicaBytes, ...]
    leader: BrokerId | None = None

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
    at_ms: WallClock
    lag_events: Count
    lag_ms: Count
    drifted: Count = 0
    error: str | None = None


class OwnedShard(Struct, frozen=True):
    """A shard that a worker owns, and under which epoch."""

    shard: Index
    epoch: Count


class WorkerSample(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="worker"):
    """A sign of life: a worker runs at `at_ms` (its wall clock, since epoch) and owns these shards."""

    worker: str
    at_ms: WallClock
    shards: tuple[OwnedShard, ...]


Sample = Progress | ProjectionSample | WorkerSample
