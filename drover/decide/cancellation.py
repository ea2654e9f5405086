"""Cancellation of a running reassignment: rollback, stop, or a rollback that makes way for another target.

Each function returns events to record; the reconciler in `drover.reconcile.moves` makes the calls.
"""

from dataclasses import dataclass
from typing import TypedDict

from drover.decide.decision import refuse_partition
from drover.decide.order_endings import is_reorder
from drover.decide.verdict import event_name
from drover.events.commands import Command
from drover.events.reassignments import (
    Blocker,
    CancelMode,
    CancelWithdrawn,
    ReassignmentCompleted,
    ReassignmentCreated,
    ReassignmentFailed,
    ReassignmentRolledBack,
    ReassignmentStopped,
    ReplacementWithdrawn,
    RollbackRequested,
    StepPostponed,
    StopRequested,
    TargetReplaced,
    WithdrawalReason,
)
from drover.events.records import ReassignmentEvent
from drover.events.refusals import Refusal, RefusalCode
from drover.fold.plans import Ending
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment


class Fields(TypedDict):
    """The author and reason of a cancellation, as fields of an event."""

    by: str
    reason: str
    command: str | None


@dataclass(frozen=True, slots=True)
class Asking:
    """The author and reason of a cancellation, and its command if that is decided in the same record."""

    by: str
    reason: str
    command: str | None = None

    @classmethod
    def of(cls, command: Command) -> "Asking":
        """Return the author and reason of the command that is being decided."""
        return cls(command.by, command.reason, command.id)

    @property
    def fields(self) -> Fields:
        """The fields that an event takes over."""
        return {"by": self.by, "reason": self.reason, "command": self.command}


def is_untouched(reassignment: Reassignment) -> bool:
    """Whether Drover has sent no call for the partition yet: it is pending, or its first step is prepared."""
    if reassignment.phase is Phase.PENDING:
        return True
    step = reassignment.step
    return reassignment.phase is Phase.PREPARED and step is not None and step.number == 1


def has_lost_its_start(reassignment: Reassignment) -> bool:
    """Whether somebody else changed the partition before anything was sent: its original list is gone."""
    block = reassignment.block
    return block is not None and block.why is Blocker.UNMANAGED_CHANGE and is_untouched(reassignment)


def give_way(reassignment: Reassignment, cluster: str) -> ReassignmentRolledBack:
    """End an untouched reassignment, so that another target can be created in its place."""
    name, started = event_name(cluster, reassignment.key), reassignment.attempts > 0
    return ReassignmentRolledBack(**name, replicas=reassignment.current, started=started)


def cancel(
    reassignment: Reassignment, mode: CancelMode, asked: Asking, cluster: str
) -> tuple[ReassignmentEvent, ...] | Refusal:
    """Ask for a rollback or a stop; empty if that is under way already.

    An untouched reassignment ends at once. A rollback overrules a stop, and a stop is refused where a rollback is under
    way. A target that waits for the end is given up in any case.
    """
    withdrawn = withdraw_replacement(reassignment, WithdrawalReason.CANCELLED, asked, cluster)
    if withdrawn and reassignment.is_cancelled:
        # Only the replacement had asked for the rollback under way, which continues without it.
        return withdrawn
    if reassignment.cancel_mode is mode:
        return ()
    if reassignment.cancel_mode is CancelMode.ROLLBACK:
        detail = (
            f"{reassignment.key} is being rolled back in plan {reassignment.plan}, which is not stopped: wait for it"
        )
        return refuse_partition(reassignment.key, RefusalCode.REASSIGNMENT_IN_PROGRESS, detail)
    return (*withdrawn, *_request(reassignment, mode, asked, cluster))


def _request(
    reassignment: Reassignment, mode: CancelMode, asked: Asking, cluster: str
) -> tuple[ReassignmentEvent, ...]:
    name, replicas = event_name(cluster, reassignment.key), reassignment.current
    started = reassignment.attempts > 0
    requested: ReassignmentEvent
    ended: ReassignmentEvent
    if mode is CancelMode.ROLLBACK:
        requested = RollbackRequested(**name, **asked.fields, until_withdrawn=True)
        ended = ReassignmentRolledBack(**name, replicas=replicas, started=started)
    else:
        requested = StopRequested(**name, **asked.fields, until_withdrawn=True)
        ended = ReassignmentStopped(**name, replicas=replicas, started=started)
    return (requested, ended) if is_untouched(reassignment) else (*postponed(reassignment, cluster), requested)


def postponed(reassignment: Reassignment, cluster: str) -> tuple[StepPostponed, ...]:
    """Give up a prepared step, which was not sent, and its slot; empty if no step is prepared.

    If the partition moves to the step's list from here on, that is somebody else's move.
    """
    step = reassignment.step
    if reassignment.phase is not Phase.PREPARED or step is None:
        return ()
    return (StepPostponed(**event_name(cluster, reassignment.key), step=step.number),)


def replace_target(
    reassignment: Reassignment, plan: str, target: tuple[int, ...], asked: Asking, cluster: str, order: tuple[int, ...]
) -> tuple[ReassignmentEvent, ...]:
    """Give a moving partition another target (R455-8): it is rolled back first, never re-targeted (X18).

    An untouched reassignment is created again at once, with the same original list; after a reorder that is the
    canonical `order` of the list. Otherwise the new target waits for the end (see `succession`), in place of an earlier
    one that waited.
    """
    name = event_name(cluster, reassignment.key)
    # Even an untouched reassignment may have one: it waited for a deferred rollback, and the step was postponed.
    events = [*withdraw_replacement(reassignment, WithdrawalReason.REPLACED, asked, cluster)]
    if is_untouched(reassignment):
        events.append(give_way(reassignment, cluster))
        if target not in {order, reassignment.original, reassignment.current}:
            events.append(_created(reassignment, plan, order, reassignment.current, target, cluster))
        return tuple(events)
    if reassignment.cancel_mode is not CancelMode.ROLLBACK:
        events += postponed(reassignment, cluster)
        events.append(RollbackRequested(**name, **asked.fields, until_withdrawn=True))
    return (*events, TargetReplaced(**name, plan=plan, target=target))


@dataclass(frozen=True, slots=True)
class Succession:
    """The events around the end of a reassignment, for the same record."""

    before: tuple[ReassignmentEvent, ...] = ()
    after: tuple[ReassignmentEvent, ...] = ()


def succession(
    reassignment: Reassignment, ending: Ending, cluster: str, canonical: tuple[int, ...] | None = None
) -> Succession:
    """Begin the target that waits for this end, or give it up.

    It begins at the list at which the reassignment ended. Where that list is the target already, it completes at once.
    After a failure it is given up, because the partition has changed since it was decided. `canonical` is the kept
    order of the list, if any, since a reorder ends in another order.
    """
    waiting = reassignment.replacement
    if waiting is None:
        return Succession()
    if isinstance(ending, ReassignmentFailed):
        nobody = Asking("", "")
        return Succession(before=withdraw_replacement(reassignment, WithdrawalReason.FAILED, nobody, cluster))
    if is_reorder(reassignment):
        order = ending.replicas if canonical is None else canonical
    else:
        order = reassignment.target if isinstance(ending, ReassignmentCompleted) else reassignment.original
    created = _created(reassignment, waiting.plan, order, ending.replicas, waiting.target, cluster)
    return Succession(after=(created, *done_already(created)))


def done_already(created: ReassignmentCreated) -> tuple[ReassignmentCompleted, ...]:
    """Complete a reassignment whose partition has the target already when it is accepted; empty if it must move."""
    present = created.original if created.current is None else created.current
    if created.target not in {created.original, present}:
        return ()
    return (ReassignmentCompleted(**event_name(created.cluster, created.key), replicas=present),)


def _created(
    reassignment: Reassignment,
    plan: str,
    canonical: tuple[int, ...],
    replicas: tuple[int, ...],
    target: tuple[int, ...],
    cluster: str,
) -> ReassignmentCreated:
    """Accept another target from the list that is there; its order is `canonical` if that is the same list (X9)."""
    name = event_name(cluster, reassignment.key)
    is_reordered = sorted(replicas) == sorted(canonical) and replicas != canonical
    return ReassignmentCreated(
        **name,
        topic_id=reassignment.topic_id,
        plan=plan,
        original=canonical if is_reordered else replicas,
        target=target,
        current=replicas if is_reordered else None,
    )


def withdraw_cancel(reassignment: Reassignment, asked: Asking, cluster: str) -> tuple[ReassignmentEvent, ...]:
    """Withdraw a rollback or stop that is deferred, if there is one."""
    if reassignment.deferred_by is None:
        return ()
    return (CancelWithdrawn(**event_name(cluster, reassignment.key), **asked.fields),)


def withdraw_replacement(
    reassignment: Reassignment, why: WithdrawalReason, asked: Asking, cluster: str
) -> tuple[ReassignmentEvent, ...]:
    """Withdraw the target that waits for the end of a reassignment, if there is one."""
    if reassignment.replacement is None:
        return ()
    name = event_name(cluster, reassignment.key)
    return (ReplacementWithdrawn(**name, why=why, **asked.fields),)
