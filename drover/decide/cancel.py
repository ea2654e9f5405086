"""Deciding a cancel command: scopes are resolved now, include what is queued, and never touch moves of others."""

from collections.abc import Iterable
from itertools import chain

from msgspec.structs import replace

from drover.decide.cancellation import Asking, cancel, withdraw_replacement
from drover.decide.decision import Decision, Facts, refuse, refuse_partition
from drover.decide.queue_entries import withdraw
from drover.events.commands import Cancel
from drover.events.healing import HealEnd, HealEnded
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanCancelled
from drover.events.queue_entries import QueueEntryRemoved
from drover.events.reassignments import CancelMode, RollbackRequested, StopRequested, WithdrawalReason
from drover.events.records import AnyEvent
from drover.events.refusals import Refusal, RefusalCode
from drover.fold.plans import is_ending
from drover.state.cluster import ClusterState
from drover.state.plans import PlanStatus
from drover.state.reassignment import Reassignment


def decide_cancel(command: Cancel, state: ClusterState, _facts: Facts) -> Decision:
    """Ask for the rollback or the stop of everything in the scope that has not ended (R236-1, R236-6, R455-9).

    Entries in the queue are withdrawn. An accepted partition that is untouched ends at once, without a call. One that
    is already being cancelled that way is unchanged. A rollback overrules a stop; a rollback cannot be stopped.
    """
    if command.queued is not None:
        return _withdraw_queued(command.queued, state)
    if command.plan is not None:
        return _cancel_plan(command, command.plan, state)
    keys, refusals = _resolve(command, state)
    return _ending_heal(command, state, _cancel_all(command, state, keys, refusals))


def looked_through(command: Cancel, state: ClusterState) -> int:
    """Return the number of entries of the state that the decision visits."""
    if command.partitions is not None:
        return len(command.partitions)
    if command.queued is not None:
        return len(state.queue)
    return len(state.reassignments) + len(state.queue)


def _ending_heal(command: Cancel, state: ClusterState, decision: Decision) -> Decision:
    """Drop the chunks of a heal that have not begun, as part of a cancel of everything (X12)."""
    if not command.all or state.heal is None:
        return decision
    why, dropped = HealEnd.CANCELLED, len(state.heal_chunks)
    end = HealEnded(cluster=state.name, heal=state.heal.name, why=why, dropped=dropped, leaves_rest=True)
    return replace(decision, events=(end, *decision.events))


def _withdraw_queued(command_id: str, state: ClusterState) -> Decision:
    keys = sorted(key for key, entry in state.queue.items() if entry.id == command_id)
    if not keys:
        detail = f"nothing of command {command_id} waits in the queue of {state.name}"
        return refuse(RefusalCode.NO_REASSIGNMENT_IN_PROGRESS, detail)
    return Decision(events=withdraw(keys, state.name), accepted=tuple(keys))


def _cancel_plan(command: Cancel, name: str, state: ClusterState) -> Decision:
    """Cancel all of the plan: its moves, its entries in the queue, and its targets that wait for another move."""
    plan = state.plans.get(name)
    if plan is None:
        return refuse(RefusalCode.UNKNOWN_PLAN, f"there is no plan {name} in {state.name}", plan=name)
    if plan.status is PlanStatus.FINISHED:
        return refuse(RefusalCode.PLAN_CLOSED, f"plan {name} has finished: nothing of it is moving", plan=name)
    moving = [key for key, reassignment in state.reassignments.items() if _belongs(reassignment, name)]
    waiting = [key for key, entry in state.queue.items() if entry.plan == name]
    decision = _cancel_all(command, state, [*moving, *waiting], [], plan=name)
    events = decision.events
    if plan.status is PlanStatus.OPEN:
        closed = PlanCancelled(cluster=state.name, plan=name, by=command.by, reason=command.reason)
        events = (closed, *events)
    return Decision(events, decision.accepted, decision.unchanged, decision.refusals, plan=name)


def _belongs(reassignment: Reassignment, plan: str) -> bool:
    waiting = reassignment.replacement
    return reassignment.plan == plan or (waiting is not None and waiting.plan == plan)


def _resolve(command: Cancel, state: ClusterState) -> tuple[list[TopicPartition], list[Refusal]]:
    nothing = RefusalCode.NO_REASSIGNMENT_IN_PROGRESS
    if command.all:
        return [*state.reassignments, *state.queue], []
    keys: list[TopicPartition] = []
    refusals: list[Refusal] = []
    for name in dict.fromkeys(partition.key for partition in command.partitions or ()):
        if name in state.reassignments or name in state.queue:
            keys.append(name)
        else:
            refusals.append(refuse_partition(name, nothing, f"Drover is not moving {name}"))
    by_topic: dict[str, list[TopicPartition]] = {topic: [] for topic in command.topics or ()}
    for key in chain(state.reassignments, state.queue) if by_topic else ():
        if key.topic in by_topic:
            by_topic[key.topic].append(key)
    for topic, of_topic in by_topic.items():
        keys += of_topic
        if not of_topic:
            refusals.append(Refusal(nothing, f"Drover is moving no partition of {topic}", topic=topic))
    return keys, refusals


def _cancel_all(
    command: Cancel,
    state: ClusterState,
    keys: Iterable[TopicPartition],
    refusals: list[Refusal],
    plan: str | None = None,
) -> Decision:
    """Cancel these partitions, under way and queued; with `plan` only its own moves and entries.

    They are accepted in their order. Events of one kind stand together, so that a record can hold them in a group.
    """
    events: list[AnyEvent] = []
    accepted: list[TopicPartition] = []
    unchanged: list[TopicPartition] = []
    for key in sorted(set(keys)):
        cancelled = _cancel_partition(command, state, key, plan)
        if isinstance(cancelled, Refusal):
            refusals.append(cancelled)
        else:
            (accepted if cancelled else unchanged).append(key)
            events += cancelled
    ended = {event.key for event in events if is_ending(event)}
    events.sort(key=lambda event: _place(event, ended))
    return Decision(tuple(events), tuple(accepted), tuple(unchanged), tuple(refusals))


_REQUESTED = frozenset({RollbackRequested, StopRequested})


def _place(event: AnyEvent, ended: set[TopicPartition]) -> int:
    """Order the kinds of events of a cancel; those of one partition keep their order."""
    # By type: `isinstance` takes ten times as long with structs, and there may be 200,000 of them.
    kind = type(event)
    if kind is QueueEntryRemoved:
        return 0
    if kind in _REQUESTED:
        assert isinstance(event, RollbackRequested | StopRequested)
        return 3 if event.key in ended else 2
    return 3 if is_ending(event) else 1


def _cancel_partition(
    command: Cancel, state: ClusterState, key: TopicPartition, plan: str | None
) -> tuple[AnyEvent, ...] | Refusal:
    entry, reassignment = state.queue.get(key), state.reassignments.get(key)
    withdrawn: tuple[AnyEvent, ...] = ()
    if entry is not None and plan in {None, entry.plan}:
        withdrawn = withdraw((key,), state.name)
    if reassignment is None or not (plan is None or _belongs(reassignment, plan)):
        return withdrawn
    cancelled = _cancel_move(command, state.name, reassignment, plan)
    if isinstance(cancelled, Refusal):
        # The queue entry is withdrawn although the cancel of the move is refused.
        return withdrawn or cancelled
    return (*withdrawn, *cancelled)


def _cancel_move(
    command: Cancel, cluster: str, reassignment: Reassignment, plan: str | None
) -> tuple[AnyEvent, ...] | Refusal:
    asked = Asking.of(command)
    waiting = reassignment.replacement
    if plan is None or waiting is None:
        return cancel(reassignment, CancelMode(command.mode), asked, cluster)
    # Its plan ends this move. The target that waits for the end may belong to another plan: it is left alone.
    withdrawn: tuple[AnyEvent, ...] = ()
    if waiting.plan == plan:
        withdrawn = withdraw_replacement(reassignment, WithdrawalReason.CANCELLED, asked, cluster)
    if reassignment.plan != plan:
        return withdrawn
    cancelled = cancel(replace(reassignment, replacement=None), CancelMode(command.mode), asked, cluster)
    if isinstance(cancelled, Refusal):
        return withdrawn or cancelled
    return (*withdrawn, *cancelled)
