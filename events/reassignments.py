"""Events about one reassignment: a partition on its way from its original replica list to a target."""

from enum import StrEnum

from drover.events.base import PartitionEvent


class Call(StrEnum):
    """What an AlterPartitionReassignments call about one partition is for."""

    STEP = "step"
    CANCEL = "cancel"
    RESTORE = "restore"


class CancelMode(StrEnum):
    """The two ways to cancel: back to the originals (KIP-236), or keep what earlier steps brought in (KIP-455)."""

    ROLLBACK = "rollback"
    STOP = "stop"


class Blocker(StrEnum):
    """Why a reassignment waits although a slot is free for it."""

    NO_LEADER = "no-leader"
    DEAD_DESTINATION = "dead-destination"
    BELOW_MIN_ISR = "below-min-isr"
    REPLICAS_OUT_OF_SYNC = "replicas-out-of-sync"
    UNMANAGED_CHANGE = "unmanaged-change"
    ORIGINALS_OUT_OF_SYNC = "originals-out-of-sync"
    CALL_REJECTED = "call-rejected"
    BROKER_IN_BOTH_LISTS = "broker-in-both-lists"
    THROTTLE_TOO_LOW = "throttle-too-low"
    UNREACHABLE_BROKER = "unreachable-broker"
    FAILED_LOG_DIRECTORY = "failed-log-directory"
    THROTTLE_REFUSED = "throttle-refused"
    UNREGISTERED_BROKER = "unregistered-broker"


class SkipReason(StrEnum):
    """Why a rollback was not carried out and the reassignment goes on (R236-8)."""

    NO_ORIGINAL_IN_SYNC = "no-original-in-sync"
    BELOW_MIN_ISR = "below-min-isr"


class FailureReason(StrEnum):
    """Why a reassignment ended without reaching its target or its originals."""

    REFUSED_BY_KAFKA = "refused-by-kafka"
    CANCELLED_ELSEWHERE = "cancelled-elsewhere"
    UNMANAGED_CHANGE = "unmanaged-change"
    PARTITION_GONE = "partition-gone"


class WithdrawalReason(StrEnum):
    """Why a target that was to replace another one is given up."""

    CANCELLED = "cancelled"
    REPLACED = "replaced"
    FAILED = "failed"


class ReassignmentCreated(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="reassignment-created"):
    """A reassignment was accepted and waits for a slot.

    `original` is the ordered list at this moment and is what a rollback restores (R236-2); it is never overwritten.
    Where brokers that should not lead were put last, `original` is the canonical order (X9), and `current` the list
    that is there.
    """

    topic_id: str
    plan: str
    original: tuple[int, ...]
    target: tuple[int, ...]
    current: tuple[int, ...] | None = None


class StepPrepared(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="step-prepared"):
    """The reassignment took a slot and its next step is known; the call follows when the plan's throttle is set.

    `copy_bytes` is the size of one of its copies, as far as it is known.
    """

    step: int
    final: bool
    expected: tuple[int, ...]
    replicas: tuple[int, ...]
    leader: int
    copy_bytes: int | None = None


class StepPostponed(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="step-postponed"):
    """The step was prepared and cannot begin now: nothing is sent, and its room is free for others.

    The reassignment waits as it did before the step was prepared, and the step is planned anew.
    """

    step: int


class CallIntended(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="call-intended"):
    """An alter call will be made: the intent, durable before the call.

    `expected` is the list before the call, `replicas` the list sent (None cancels). `step`, `final` and `leader` say
    about a step which one it is, whether it is the last, and who led when it was planned; `copy_bytes` is the size of
    one of its copies, as far as it is known.
    """

    call: Call
    expected: tuple[int, ...]
    replicas: tuple[int, ...] | None = None
    step: int = 0
    final: bool = False
    leader: int | None = None
    copy_bytes: int | None = None


class CallAccepted(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="call-accepted"):
    """The controller took the call; `adopted` says that this was seen on the cluster, not in an answer.

    Of a cancel that is `adopted` nothing is left in Kafka's list of moves: what is listed afterwards is somebody
    else's.
    """

    call: Call
    adopted: bool = False


class CallRejected(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="call-rejected"):
    """The controller refused the call for this partition, with Kafka's own code and words.

    `unregistered` is the broker in the list for which Kafka has no registration, where that is why. No further list of
    this reassignment names that broker until it is alive.
    """

    call: Call
    code: int
    message: str | None = None
    unregistered: int | None = None


class CallLapsed(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="call-lapsed"):
    """The call is known not to have taken effect; it may be intended again."""

    call: Call
    detail: str


class CallOutcomeLost(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="call-outcome-lost"):
    """Nobody knows whether the call took effect; only an observation can tell."""

    call: Call
    detail: str


class StepConfirmed(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="step-confirmed"):
    """A step that was not the last is done: not listed, and the replica list is the step's as a sequence.

    `bytes_unknown` says that it was over before any size was sampled: more may have been copied.
    """

    step: int
    replicas: tuple[int, ...]
    bytes_copied: int = 0
    bytes_unknown: bool = False


class ReassignmentCompleted(
    PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="reassignment-completed"
):
    """The partition is not listed and its replica list equals the target as a sequence (X13).

    `out_of_sync` names members of the target that were not in the ISR then. `before_cancel` says that a rollback had
    been asked for but the move was done before the cancel reached the controller; `deferred_by` is the guard that held
    one off to the end. `bytes_unknown` says that a step was over before any size was sampled: `bytes_copied` is the
    least that was copied.
    """

    replicas: tuple[int, ...]
    out_of_sync: tuple[int, ...] = ()
    before_cancel: bool = False
    bytes_copied: int = 0
    deferred_by: SkipReason | None = None
    bytes_unknown: bool = False


class RollbackRequested(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="rollback-requested"):
    """A cancel command wants this reassignment rolled back (KIP-236).

    `until_withdrawn` says that it is tried again when a guard has held it off; `again` that this is such a try, of what
    was asked for before: it does not repeat by whom and why.
    """

    by: str = ""
    reason: str = ""
    until_withdrawn: bool = False
    again: bool = False
    command: str | None = None


class StopRequested(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="stop-requested"):
    """A cancel command wants this reassignment to end where its confirmed steps have brought it (R455-9).

    `until_withdrawn` says that it is tried again when a guard has held it off; `again` that this is such a try, of what
    was asked for before: it does not repeat by whom and why.
    """

    by: str = ""
    reason: str = ""
    until_withdrawn: bool = False
    again: bool = False
    command: str | None = None


class TargetReplaced(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="target-replaced"):
    """An alter command names another target for a partition that is moving (R455-8).

    The running reassignment is taken back first; in the record that ends it, the new target is queued under `plan`.
    """

    plan: str
    target: tuple[int, ...]


class ReplacementWithdrawn(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="replacement-withdrawn"):
    """The target that waits for the end of the running reassignment is given up; its plan counts it as withdrawn.

    A cancel or a later target said so, or the running reassignment fails in this very record. `by` and `reason` are
    empty when nobody asked.
    """

    why: WithdrawalReason
    by: str = ""
    reason: str = ""
    command: str | None = None


class RollbackSkipped(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="rollback-skipped"):
    """Cancelling would have harmed the partition: its reassignment goes on (R236-8).

    What was asked for until it is withdrawn is deferred only: it is tried again as soon as the guard allows it.
    """

    why: SkipReason
    isr: tuple[int, ...]


class CancelWithdrawn(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="cancel-withdrawn"):
    """A rollback or stop that is deferred is not wanted any more: an alter command names the same target again."""

    by: str = ""
    reason: str = ""
    command: str | None = None


class ReassignmentRolledBack(
    PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="reassignment-rolled-back"
):
    """The original replicas are back in their original order; `started` is False if nothing had ever been sent.

    `missing` names the original replicas that could not be brought back because their brokers are gone: they are not in
    `replicas`, or, where that would have left too few replicas in sync, still there and out of sync.
    """

    replicas: tuple[int, ...]
    started: bool = True
    missing: tuple[int, ...] = ()


class StepTakenBack(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="step-taken-back"):
    """A step was cancelled because a broker that it copies to is dead: the list from before it is there again.

    The reassignment goes on, with what the destination needs on live brokers first.
    """

    step: int
    replicas: tuple[int, ...]


class ReturnBegun(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="return-begun"):
    """The rollback needs copies: it goes by steps, from `replicas` to `destination`, like every other move.

    `destination` is the original list; without originals that are gone for good, what stays in their place.
    """

    replicas: tuple[int, ...]
    destination: tuple[int, ...]


class ReassignmentStopped(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="reassignment-stopped"):
    """The reassignment ended where its confirmed steps had brought it; nobody repairs the replication factor (R455-9).

    `started` is False if nothing had ever been sent. `missing` names replicas whose brokers have no registration: Kafka
    takes no list that names them, so that not even their order could be put right.
    """

    replicas: tuple[int, ...]
    started: bool = True
    missing: tuple[int, ...] = ()


class ReassignmentAdopted(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="reassignment-adopted"):
    """A move that Drover does not know as its own is taken over in order to be cancelled.

    Either it can never end (a broker is both added and removed), or it is the late effect of a call that was given up.
    It heads for `replicas`, from `expected`; `original` is the list that will be put back.
    """

    topic_id: str
    plan: str
    original: tuple[int, ...]
    expected: tuple[int, ...]
    replicas: tuple[int, ...]


class LateChangeFound(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="late-change-found"):
    """A list that Drover had sent, with an outcome that stayed unknown, showed up after it was given up.

    `sent` is that list, `replicas` what was seen. It is corrected once.
    """

    plan: str
    sent: tuple[int, ...]
    replicas: tuple[int, ...]


class ReassignmentBlocked(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="reassignment-blocked"):
    """The reassignment cannot go on now; `detail` says what would unblock it."""

    why: Blocker
    detail: str


class ReassignmentUnblocked(
    PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="reassignment-unblocked"
):
    """What blocked the reassignment is gone."""


class ReassignmentFailed(PartitionEvent, frozen=True, kw_only=True, omit_defaults=True, tag="reassignment-failed"):
    """The reassignment ended elsewhere than at its target or its originals; `replicas` is what was seen last."""

    why: FailureReason
    detail: str
    replicas: tuple[int, ...]
