"""The fold: one event changes one entry of a cluster's state; total on every log that decide and plan can write."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, assert_never, get_args

from msgspec.structs import replace

from drover.reassignment import evolve_plans, evolve_throttles, evolve_waiting
from drover.reassignment.state import (
    Block,
    ClusterState,
    Freeze,
    Limits,
    Phase,
    Reassignment,
    Replacement,
    Step,
)
from events import brokers, clusters, reassignments
from events.base import Event
from events.reassignments import Blocker, Call, CancelMode
from events.records import (
    AnyEvent,
    BrokerEvent,
    ClusterEvent,
    ForeignEvent,
    PlanEvent,
    ReassignmentEvent,
    ThrottleEvent,
    WaitingEvent,
)

RareEvent = ClusterEvent | BrokerEvent | PlanEvent | ThrottleEvent | WaitingEvent | ForeignEvent

# Looking an enum's member up takes longer than the rest of some of these functions.
_STEP, _RESTORE, _ROLLING_BACK, _PREPARED = Call.STEP, Call.RESTORE, Phase.ROLLING_BACK, Phase.PREPARED
_IN_BOTH_LISTS = Blocker.BROKER_IN_BOTH_LISTS

_INTENDED = {Call.STEP: Phase.INTENDED, Call.CANCEL: Phase.CANCEL_INTENDED, Call.RESTORE: Phase.RESTORE_INTENDED}
_RUNNING = {Call.STEP: Phase.COPYING, Call.CANCEL: Phase.CANCELLING, Call.RESTORE: Phase.RESTORING}
# Where a call that did not take effect leaves the reassignment: its slot is kept in every case.
_BEFORE = {Call.STEP: Phase.PREPARED, Call.CANCEL: Phase.ROLLING_BACK, Call.RESTORE: Phase.CANCELLING}


def apply(state: ClusterState, event: AnyEvent, at_ms: int) -> None:
    """Fold one event of this cluster into its state; `at_ms` is the batch's time.

    Raises `KeyError` or `AssertionError` only for an event that no decision could have written.
    """
    apply_all(lambda _: state, (event,), at_ms)


def apply_all(state_of: Callable[[str], ClusterState], events: Iterable[AnyEvent], at_ms: int) -> None:
    """Fold a batch's events in their order, each into its cluster's state; see `apply`."""
    name: str | None = None
    for event in events:
        if event.cluster != name:
            name = event.cluster
            state = state_of(name)
        evolving = EVOLVING.get(type(event))
        if evolving is not None:
            # The most frequent by far. The plain pair finds what a TopicPartition does, and is made in half the time.
            before = state.reassignments[event.topic, event.partition]  # type: ignore[index,union-attr]  # see EVOLVING
            state.change(before, evolving(before, event, at_ms))
        else:
            _apply_other(state, event, at_ms)


def _apply_other(state: ClusterState, event: AnyEvent, at_ms: int) -> None:
    if isinstance(event, evolve_plans.Ending):
        evolve_plans.end(state, event, at_ms)
    elif (applying := APPLYING.get(type(event))) is not None:
        applying(state, event, at_ms)
    else:
        assert isinstance(event, RareEvent), f"{type(event).__name__} has no rule in EVOLVING or APPLYING"
        _apply_rare(state, event, at_ms)


def _apply_rare(state: ClusterState, event: RareEvent, at_ms: int) -> None:
    if isinstance(event, PlanEvent):
        state.plans[event.plan] = evolve_plans.evolve(state.plans.get(event.plan), event, at_ms)
    elif isinstance(event, ThrottleEvent):
        evolve_throttles.apply(state, event)
    elif isinstance(event, WaitingEvent | ForeignEvent):
        evolve_waiting.apply(state, event, at_ms)
    else:
        _apply_to_cluster(state, event, at_ms)


def _apply_to_cluster(state: ClusterState, event: ClusterEvent | BrokerEvent, at_ms: int) -> None:
    match event:
        case clusters.ClusterIdentified():
            state.kafka_cluster_id = event.kafka_cluster_id
        case clusters.ClusterMismatched():
            state.mismatched_kafka_cluster_id = event.found_kafka_cluster_id
        case clusters.ClusterMatched():
            state.mismatched_kafka_cluster_id = None
        case clusters.LimitsSet():
            state.limits = Limits(
                event.max_partitions_in_flight,
                event.max_moves_per_broker,
                event.max_replicas_per_step,
                event.mends_by_itself,
            )
        case clusters.ClusterFrozen():
            state.freeze = Freeze(event.by, event.reason, at_ms)
        case clusters.ClusterUnfrozen():
            state.freeze = None
        case brokers.BlacklistSet():
            state.blacklist = event.brokers
        case brokers.BrokerFailureRecorded():
            state.failed_brokers[event.broker] = event.failed_at_ms
        case brokers.BrokerReturnRecorded():
            state.failed_brokers.pop(event.broker, None)
        case _:
            assert_never(event)


def _apply_queued(state: ClusterState, event: reassignments.ReassignmentQueued, at_ms: int) -> None:
    state.put(
        Reassignment(
            key=event.key,
            topic_id=event.topic_id,
            plan=event.plan,
            number=state.next_number,
            original=event.original,
            target=event.target,
            queued_ms=at_ms,
            phase=Phase.QUEUED,
            since_ms=at_ms,
            current=event.original,
        )
    )
    state.next_number += 1
    plan = state.plans[event.plan]
    state.plans[event.plan] = replace(plan, active=plan.active + 1)


def _apply_adopted(state: ClusterState, event: reassignments.ReassignmentAdopted, at_ms: int) -> None:
    state.put(
        Reassignment(
            key=event.key,
            topic_id=event.topic_id,
            plan=event.plan,
            number=state.next_number,
            original=event.original,
            target=event.original,
            queued_ms=at_ms,
            phase=_ROLLING_BACK,
            since_ms=at_ms,
            current=event.expected,
            step=Step(1, False, event.expected, event.replicas, None),
            cancel_mode=CancelMode.ROLLBACK,
        )
    )
    state.next_number += 1
    plan = state.plans[event.plan]
    state.plans[event.plan] = replace(plan, active=plan.active + 1)


def _apply_replaced(state: ClusterState, event: reassignments.TargetReplaced, _at_ms: int) -> None:
    before = state.reassignments[event.key]
    if before.replacement is not None:
        evolve_plans.stop_waiting(state, before.replacement.plan)
    evolve_plans.wait(state, event.plan)
    state.change(before, replace(before, replacement=Replacement(event.plan, event.target)))


def _apply_withdrawn(state: ClusterState, event: reassignments.ReplacementWithdrawn, _at_ms: int) -> None:
    before = state.reassignments[event.key]
    assert before.replacement is not None, f"{event.key} has no other target waiting"
    evolve_plans.stop_waiting(state, before.replacement.plan, withdrawn=True)
    state.change(before, replace(before, replacement=None))


def _apply_late(state: ClusterState, event: reassignments.LateChangeFound, at_ms: int) -> None:
    """What is corrected once is forgotten: a second time it is somebody else's doing."""
    state.given_up.pop(event.key, None)
    before = state.reassignments.get(event.key)
    if before is not None:
        state.change(before, replace(before, lost_lists=(), since_ms=at_ms))


def evolve(before: Reassignment, event: ReassignmentEvent, at_ms: int) -> Reassignment | None:
    """Fold one event into one reassignment; None when it has ended.

    A table and not a match, because this is what a replay spends its time on; a test holds it to the union of events.
    """
    evolving = EVOLVING.get(type(event))
    if evolving is not None:
        return evolving(before, event, at_ms)
    assert type(event) in ENDINGS, f"{before.key}: {type(event).__name__} cannot follow {before.phase}"
    return None


def _prepared(before: Reassignment, event: reassignments.StepPrepared, at_ms: int) -> Reassignment:
    step = Step(event.step, event.final, event.expected, event.replicas, _leader(event.leader))
    return replace(before, phase=_PREPARED, step=step, since_ms=at_ms, block=None)


def _intended(before: Reassignment, event: reassignments.CallIntended, at_ms: int) -> Reassignment:
    step = before.step
    if event.call is _STEP:
        assert event.replicas is not None, "a step sends a list"
        step = Step(event.step, event.final, event.expected, event.replicas, _leader(event.leader))
    restoring = event.replicas if event.call is _RESTORE else None
    phase = _INTENDED[event.call]
    return replace(before, phase=phase, step=step, since_ms=at_ms, unsure=False, block=None, restoring=restoring)


def _accepted(before: Reassignment, event: reassignments.CallAccepted, at_ms: int) -> Reassignment:
    phase = _accepted_phase(before, event.call)
    return replace(before, phase=phase, since_ms=at_ms, unsure=False, attempts=0, block=None)


def _outcome_lost(before: Reassignment, event: reassignments.CallOutcomeLost, at_ms: int) -> Reassignment:
    sent = before.restoring if before.step is None or event.call is not _STEP else before.step.replicas
    lists = before.lost_lists
    if sent is not None and sent not in lists:
        lists = (*lists, sent)
    phase = _accepted_phase(before, event.call)
    return replace(before, phase=phase, since_ms=at_ms, unsure=True, lost_lists=lists)


def _not_taken(
    before: Reassignment, event: reassignments.CallLapsed | reassignments.CallRejected, at_ms: int
) -> Reassignment:
    # A rollback that was asked for while the step's call was open begins as soon as that call has ended.
    waits = event.call is _STEP and before.is_cancelled
    phase = _ROLLING_BACK if waits else _BEFORE[event.call]
    return replace(before, phase=phase, since_ms=at_ms, unsure=False, attempts=before.attempts + 1)


def _confirmed(before: Reassignment, event: reassignments.StepConfirmed, at_ms: int) -> Reassignment:
    return replace(
        before,
        phase=_ROLLING_BACK if before.is_cancelled else Phase.CONFIRMED,
        since_ms=at_ms,
        current=event.replicas,
        bytes_copied=before.bytes_copied + event.bytes_copied,
        unsure=False,
        attempts=0,
        block=None,
    )


def _rollback_requested(before: Reassignment, _event: reassignments.RollbackRequested, at_ms: int) -> Reassignment:
    return _cancelled(before, CancelMode.ROLLBACK, at_ms)


def _stop_requested(before: Reassignment, _event: reassignments.StopRequested, at_ms: int) -> Reassignment:
    return _cancelled(before, CancelMode.STOP, at_ms)


def _cancelled(before: Reassignment, mode: CancelMode, at_ms: int) -> Reassignment:
    phase = before.phase if before.call_open else _ROLLING_BACK
    return replace(before, cancel_mode=mode, phase=phase, since_ms=at_ms, block=None, mended=False)


def _rollback_skipped(before: Reassignment, _event: reassignments.RollbackSkipped, at_ms: int) -> Reassignment:
    is_between = before.step is None or before.current == before.step.replicas
    phase = Phase.CONFIRMED if is_between else Phase.COPYING
    return replace(before, phase=phase, cancel_mode=None, since_ms=at_ms, block=None)


def _blocked(before: Reassignment, event: reassignments.ReassignmentBlocked, at_ms: int) -> Reassignment:
    mended = before.mended or event.why is _IN_BOTH_LISTS
    return replace(before, block=Block(event.why, event.detail, at_ms), mended=mended)


def _unblocked(before: Reassignment, _event: reassignments.ReassignmentUnblocked, _at_ms: int) -> Reassignment:
    return replace(before, block=None)


def _leader(leader: int | None) -> int | None:
    return None if leader is None or leader < 0 else leader


def _accepted_phase(before: Reassignment, call: Call) -> Phase:
    # See _not_taken: the rollback waits for the end of the call, whatever it is.
    return _ROLLING_BACK if call is _STEP and before.is_cancelled else _RUNNING[call]


EVOLVING: Mapping[type[Event], Callable[[Reassignment, Any, int], Reassignment]] = {
    reassignments.StepPrepared: _prepared,
    reassignments.CallIntended: _intended,
    reassignments.CallAccepted: _accepted,
    reassignments.CallRejected: _not_taken,
    reassignments.CallLapsed: _not_taken,
    reassignments.CallOutcomeLost: _outcome_lost,
    reassignments.StepConfirmed: _confirmed,
    reassignments.RollbackRequested: _rollback_requested,
    reassignments.StopRequested: _stop_requested,
    reassignments.RollbackSkipped: _rollback_skipped,
    reassignments.ReassignmentBlocked: _blocked,
    reassignments.ReassignmentUnblocked: _unblocked,
}
# What concerns more than the one reassignment, which may not even be there.
APPLYING: Mapping[type[Event], Callable[[ClusterState, Any, int], None]] = {
    reassignments.ReassignmentQueued: _apply_queued,
    reassignments.ReassignmentAdopted: _apply_adopted,
    reassignments.TargetReplaced: _apply_replaced,
    reassignments.ReplacementWithdrawn: _apply_withdrawn,
    reassignments.LateChangeFound: _apply_late,
}
ENDINGS: frozenset[type[Event]] = frozenset(get_args(evolve_plans.Ending))
