"""The three kinds of record on the event log, and the outcome of each command in a batch."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from drover.events.adaptation import AdaptationEvent
from drover.events.brokers import BlacklistSet, BrokerFailureRecorded, BrokerReturnRecorded
from drover.events.clusters import (
    BrokerHeld,
    BrokerReleased,
    BrokersSeen,
    ClusterFrozen,
    ClusterIdentified,
    ClusterMatched,
    ClusterMismatched,
    ClusterOutOfReach,
    ClusterTraitsSeen,
    ClusterUnfrozen,
    ClusterWithinReach,
    FreezeEnded,
    LimitsChanged,
    LimitsSet,
    PlanWindowsSet,
    UnreachableBrokersChanged,
    WindowClosed,
    WindowOpened,
)
from drover.events.healing import HealingEvent
from drover.events.leadership import LeadershipEvent
from drover.events.partitions import PartitionReference
from drover.events.plans import (
    ClusterThrottleSet,
    PlanCancelled,
    PlanExtended,
    PlanFinished,
    PlanOpened,
    PlanPaused,
    PlanResumed,
    PlansForgotten,
    PlanThrottleCleared,
    PlanThrottleRaised,
    PlanThrottleSet,
)
from drover.events.queue_entries import QueueEntryAdded, QueueEntryRemoved
from drover.events.reassignments import (
    CallAccepted,
    CallIntended,
    CallLapsed,
    CallOutcomeLost,
    CallRejected,
    CancelMode,
    CancelWithdrawn,
    LateChangeFound,
    ReassignmentAdopted,
    ReassignmentBlocked,
    ReassignmentCompleted,
    ReassignmentCreated,
    ReassignmentFailed,
    ReassignmentRolledBack,
    ReassignmentStopped,
    ReassignmentUnblocked,
    ReplacementWithdrawn,
    ReturnBegun,
    RollbackRequested,
    RollbackSkipped,
    SkipReason,
    StepConfirmed,
    StepPostponed,
    StepPrepared,
    StepTakenBack,
    StopRequested,
    TargetReplaced,
)
from drover.events.refusals import Refusal
from drover.events.throttles import (
    BrokerThrottleAdopted,
    BrokerThrottleChanged,
    BrokerThrottleIntended,
    BrokerThrottleLeft,
    BrokerThrottleRefused,
    BrokerThrottleSet,
    TopicThrottleAdopted,
    TopicThrottleChanged,
    TopicThrottleIntended,
    TopicThrottleLeft,
    TopicThrottleRefused,
    TopicThrottleSet,
)
from drover.events.unmanaged import UnmanagedMoveEnded, UnmanagedMoveSeen

SCHEMA_VERSION = 1

FreezeEvent = ClusterFrozen | FreezeEnded | ClusterUnfrozen | BrokerHeld | BrokerReleased
ReachEvent = ClusterOutOfReach | ClusterWithinReach
LimitsEvent = LimitsSet | LimitsChanged | PlanWindowsSet | WindowClosed | WindowOpened
IdentityEvent = (
    BrokersSeen | ClusterIdentified | ClusterMismatched | ClusterMatched | ClusterTraitsSeen | UnreachableBrokersChanged
)
ClusterEvent = IdentityEvent | ReachEvent | LimitsEvent | FreezeEvent
BrokerEvent = BlacklistSet | BrokerFailureRecorded | BrokerReturnRecorded
PlanThrottleEvent = PlanThrottleSet | PlanThrottleCleared | PlanThrottleRaised
PauseEvent = PlanPaused | PlanResumed
OnePlanEvent = PlanOpened | PlanExtended | PauseEvent | PlanThrottleEvent | PlanCancelled | PlanFinished
PlanEvent = OnePlanEvent | PlansForgotten
CallEvent = CallIntended | CallAccepted | CallRejected | CallLapsed | CallOutcomeLost
ReassignmentEvent = (
    ReassignmentCreated
    | StepPrepared
    | StepPostponed
    | CallIntended
    | CallAccepted
    | CallRejected
    | CallLapsed
    | CallOutcomeLost
    | StepConfirmed
    | ReassignmentCompleted
    | RollbackRequested
    | StopRequested
    | TargetReplaced
    | ReplacementWithdrawn
    | RollbackSkipped
    | CancelWithdrawn
    | ReturnBegun
    | StepTakenBack
    | ReassignmentRolledBack
    | ReassignmentStopped
    | ReassignmentAdopted
    | LateChangeFound
    | ReassignmentBlocked
    | ReassignmentUnblocked
    | ReassignmentFailed
)
BrokerThrottleEvent = (
    BrokerThrottleIntended
    | BrokerThrottleSet
    | BrokerThrottleRefused
    | BrokerThrottleLeft
    | BrokerThrottleChanged
    | BrokerThrottleAdopted
)
TopicThrottleEvent = (
    TopicThrottleIntended
    | TopicThrottleSet
    | TopicThrottleRefused
    | TopicThrottleLeft
    | TopicThrottleChanged
    | TopicThrottleAdopted
)
ThrottleEvent = BrokerThrottleEvent | TopicThrottleEvent
WaitingEvent = QueueEntryAdded | QueueEntryRemoved
UnmanagedEvent = UnmanagedMoveSeen | UnmanagedMoveEnded
AnyEvent = (
    ClusterEvent
    # One line per family; a new capability adds its own.
    | AdaptationEvent
    | BrokerEvent
    | PlanEvent
    | ReassignmentEvent
    | ThrottleEvent
    | ClusterThrottleSet
    | WaitingEvent
    | UnmanagedEvent
    | HealingEvent
    | LeadershipEvent
)


class DeferredCancel(Struct, frozen=True):
    """A partition whose rollback or stop a guard holds off for now, and which."""

    topic: str
    partition: int
    why: SkipReason


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one command: recorded in the very batch that decided it.

    `topic` and `offset` say where the command is. `verdict` is `accepted` when at least one partition (or the
    command as a whole) was, `refused` when nothing was, `duplicate` when the same command had been decided before:
    then `first_offset` is the log offset of the batch that holds that outcome, None meaning this very batch.
    `unchanged` holds partitions that already were as asked. `deferred` names those of the accepted ones whose rollback
    or stop a guard holds off, as far as was seen by then: it is tried again until it is withdrawn. `digest` identifies
    the command's whole content (R5); it is empty for a command that could not be read. `remarks` are sentences for
    a person: what an accepted command did not do, and what remains.
    """

    id: str
    cluster: str
    type: str
    by: str
    reason: str
    topic: str
    offset: int
    verdict: Literal["accepted", "refused", "duplicate"]
    digest: bytes = b""
    plan: str | None = None
    accepted: tuple[PartitionReference, ...] = ()
    unchanged: tuple[PartitionReference, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    first_offset: int | None = None
    deferred: tuple[DeferredCancel, ...] = ()
    remarks: tuple[str, ...] = ()


class Cursor(Struct, frozen=True):
    """The next offset to decide in one command topic's partition, and that topic's id."""

    topic_id: str
    next_offset: int


class Cancelled(StrEnum):
    """What a cancel does to a partition."""

    REQUESTED = "requested"
    ENDED = "ended"
    UNQUEUED = "unqueued"


class CancelledPartitions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Partitions of a cancel, in the place of the events of each; readers put the events back as they decode a record.

    They stand before event number `before` of the record. Of each partition, `requested` stands for a
    rollback-requested or, where `mode` is `stop`, a stop-requested, with `until_withdrawn`; `ended` for that and for
    the end that follows at once, a reassignment-rolled-back or reassignment-stopped that was not `started`, with its
    list in `replicas`; `unqueued` for a queue-entry-removed, as withdrawn. A partition is the index of its topic in
    `topics`, and its number. The outcome of `command` has accepted all that is `requested` or `ended`, and does not
    repeat it.
    """

    before: int
    cluster: str
    effect: Cancelled
    topics: tuple[str, ...]
    partitions: tuple[tuple[int, int], ...]
    command: str | None = None
    mode: CancelMode | None = None
    replicas: tuple[tuple[int, ...], ...] = ()


class Genesis(Struct, frozen=True, kw_only=True, tag_field="kind", tag="genesis"):
    """The first record of a shard: fixes how many shards there are."""

    schema: int
    shards: int
    shard: int


class Acquire(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="acquire"):
    """A worker takes the shard: a compare-and-swap, valid only with `epoch` == current + 1 (R1).

    `resumes_after` is an administrator's word: the offset of a damaged record at which every reader has stopped. The
    shard goes on after this acquire, with the state from before the damage; everything between the two is void (R9).
    The form of this record never changes in another way than by fields that may be left out.
    """

    schema: int
    epoch: int
    token: bytes
    owner: str
    group: str
    generation: int
    resumes_after: int | None = None


class Batch(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="batch"):
    """One decision of the shard's owner: all of it or nothing (R3); counts only under the current token (R2).

    `sequence` counts valid batches from 1. `at_ms` is the log's time: that of its brokers, at most a minute ahead of
    the owner's clock; within a shard it never goes back.
    `cursors` has one entry per command topic, in the order of `TopicNames.commands`. `previous_hash` chains the valid
    batches; `state_hash`, where present, is the hash of the state before this batch.
    `snapshot_digest` is that of a snapshot's manifest: its owner has written it, and readers may begin with it.
    `cancelled` is only in what is written: see there.
    """

    schema: int
    token: bytes
    epoch: int
    sequence: int
    at_ms: int
    cursors: tuple[Cursor, ...]
    previous_hash: bytes
    outcomes: tuple[Outcome, ...] = ()
    events: tuple[AnyEvent, ...] = ()
    cancelled: tuple[CancelledPartitions, ...] = ()
    state_hash: bytes | None = None
    snapshot_digest: bytes | None = None


Record = Genesis | Acquire | Batch
