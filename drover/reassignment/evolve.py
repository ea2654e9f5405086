"""The fold: one event changes one entry of a cluster's state; total on every log that decide and plan can write."""

from typing import assert_never

from msgspec.structs import replace

from drover.reassignment import evolve_throttles
from drover.reassignment.state import Block, ClusterState, Freeze, Limits, Phase, Plan, PlanStatus, Reassignment, Step
from events import brokers, clusters, plans, reassignments, throttles
from events.base import PartitionEvent
from events.partitions import TopicPartition
from events.reassignments import Call
from events.records import AnyEvent, BrokerEvent, ClusterEvent, PlanEvent, ReassignmentEvent, ThrottleEvent

_INTENDED = {Call.STEP: Phase.INTENDED, Call.CANCEL: Phase.CANCEL_INTENDED, Call.RESTORE: Phase.RESTORE_INTENDED}
_RUNNING = {Call.STEP: Phase.COPYING, Call.CANCEL: Phase.CANCELLING, Call.RESTORE: Phase.RESTORING}
# Where a call that did not take effect leaves the reassignment: its slot is kept in every case.
_BEFORE = {Call.STEP: Phase.PREPARED, Call.CANCEL: Phase.ROLLING_BACK, Call.RESTORE: Phase.CANCELLING}


def apply(state: ClusterState, event: AnyEvent, at_ms: int) -> None:
    """Fold one event of this cluster into its state; `at_ms` is the batch's time.

    Raises `KeyError` or `AssertionError` only for an event that no decision could have written.
    """
    if isinstance(event, PartitionEvent):
        # The most frequent by far.
        _apply_reassignment(state, event, at_ms)
    else:
        _apply_other(state, event, at_ms)


def _apply_other(
    state: ClusterState, event: ClusterEvent | BrokerEvent | PlanEvent | ThrottleEvent, at_ms: int
) -> None:
    match event:
        case clusters.ClusterIdentified():
            state.kafka_cluster_id = event.kafka_cluster_id
        case clusters.ClusterMismatched():
            state.mismatched_kafka_cluster_id = event.found_kafka_cluster_id
        case clusters.ClusterMatched():
            state.mismatched_kafka_cluster_id = None
        case clusters.LimitsSet():
            state.limits = Limits(
                event.max_partitions_in_flight, event.max_moves_per_broker, event.max_replicas_per_step
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
        case (
            plans.PlanOpened()
            | plans.PlanExtended()
            | plans.PlanThrottleSet()
            | plans.PlanCancelled()
            | plans.PlanFinished()
        ):
            state.plans[event.plan] = evolve_plan(state.plans.get(event.plan), event, at_ms)
        case (
            throttles.BrokerThrottleIntended()
            | throttles.BrokerThrottleSet()
            | throttles.BrokerThrottleLeft()
            | throttles.TopicThrottleIntended()
            | throttles.TopicThrottleSet()
            | throttles.TopicThrottleLeft()
        ):
            evolve_throttles.apply(state, event)
        case _:
            assert_never(event)


def _apply_reassignment(state: ClusterState, event: ReassignmentEvent, at_ms: int) -> None:
    key = event.key
    if isinstance(event, reassignments.ReassignmentQueued):
        state.put(_queued(event, key, state.next_number, at_ms))
        state.next_number += 1
        plan = state.plans[event.plan]
        state.plans[event.plan] = replace(plan, active=plan.active + 1)
        return
    before = state.reassignments[key]
    after = evolve(before, event, at_ms)
    if after is None:
        state.drop(key)
        state.plans[before.plan] = _count_ended(state.plans[before.plan], event)
    else:
        state.put(after)


def _queued(event: reassignments.ReassignmentQueued, key: TopicPartition, number: int, at_ms: int) -> Reassignment:
    return Reassignment(
        key=key,
        topic_id=event.topic_id,
        plan=event.plan,
        number=number,
        original=event.original,
        target=event.target,
        queued_ms=at_ms,
        phase=Phase.QUEUED,
        since_ms=at_ms,
        current=event.original,
    )


def _count_ended(plan: Plan, event: ReassignmentEvent) -> Plan:
    match event:
        case reassignments.ReassignmentCompleted():
            return replace(plan, active=plan.active - 1, completed=plan.completed + 1)
        case reassignments.ReassignmentRolledBack():
            return replace(plan, active=plan.active - 1, rolled_back=plan.rolled_back + 1)
        case _:
            return replace(plan, active=plan.active - 1, failed=plan.failed + 1)


def evolve(before: Reassignment, event: ReassignmentEvent, at_ms: int) -> Reassignment | None:
    """Fold one event into one reassignment; None when it has ended."""
    match event:
        case reassignments.StepPrepared():
            step = Step(event.step, event.final, event.expected, event.replicas, _leader(event.leader))
            return replace(before, phase=Phase.PREPARED, step=step, since_ms=at_ms, block=None)
        case reassignments.CallIntended():
            return _intended(before, event, at_ms)
        case reassignments.CallAccepted():
            return replace(
                before, phase=_accepted_phase(before, event.call), since_ms=at_ms, unsure=False, attempts=0, block=None
            )
        case reassignments.CallRejected():
            return _not_taken(before, event.call, at_ms)
        case reassignments.CallLapsed():
            return _not_taken(before, event.call, at_ms)
        case reassignments.CallOutcomeLost():
            return replace(before, phase=_accepted_phase(before, event.call), since_ms=at_ms, unsure=True)
        case reassignments.StepConfirmed():
            return replace(
                before,
                phase=Phase.ROLLING_BACK if before.rollback_requested else Phase.CONFIRMED,
                since_ms=at_ms,
                current=event.replicas,
                bytes_copied=before.bytes_copied + event.bytes_copied,
                unsure=False,
                attempts=0,
                block=None,
            )
        case reassignments.RollbackRequested():
            return _rollback_requested(before, at_ms)
        case reassignments.RollbackSkipped():
            phase = Phase.CONFIRMED if before.step is None or before.current == before.step.replicas else Phase.COPYING
            return replace(before, phase=phase, rollback_requested=False, since_ms=at_ms, block=None)
        case reassignments.ReassignmentBlocked():
            return replace(before, block=Block(event.why, event.detail, at_ms))
        case reassignments.ReassignmentUnblocked():
            return replace(before, block=None)
        case (
            reassignments.ReassignmentCompleted()
            | reassignments.ReassignmentRolledBack()
            | reassignments.ReassignmentFailed()
        ):
            return None
        case reassignments.ReassignmentQueued():
            raise AssertionError(f"{before.key} was queued while it was under way")
        case _:
            assert_never(event)


def _leader(leader: int | None) -> int | None:
    return None if leader is None or leader < 0 else leader


def _intended(before: Reassignment, event: reassignments.CallIntended, at_ms: int) -> Reassignment:
    step = before.step
    if event.call is Call.STEP:
        assert event.replicas is not None, "a step sends a list"
        step = Step(event.step, event.final, event.expected, event.replicas, _leader(event.leader))
    return replace(before, phase=_INTENDED[event.call], step=step, since_ms=at_ms, unsure=False, block=None)


def _accepted_phase(before: Reassignment, call: Call) -> Phase:
    # A rollback that was asked for while the step's call was open begins as soon as that call has ended.
    if call is Call.STEP and before.rollback_requested:
        return Phase.ROLLING_BACK
    return _RUNNING[call]


def _fallen_back(before: Reassignment, call: Call) -> Phase:
    if call is Call.STEP and before.rollback_requested:
        return Phase.ROLLING_BACK
    return _BEFORE[call]


def _not_taken(before: Reassignment, call: Call, at_ms: int) -> Reassignment:
    phase = _fallen_back(before, call)
    return replace(before, phase=phase, since_ms=at_ms, unsure=False, attempts=before.attempts + 1)


def _rollback_requested(before: Reassignment, at_ms: int) -> Reassignment:
    phase = before.phase if before.call_open else Phase.ROLLING_BACK
    return replace(before, rollback_requested=True, phase=phase, since_ms=at_ms, block=None)


def evolve_plan(before: Plan | None, event: PlanEvent, at_ms: int) -> Plan:
    """Fold one event into one plan."""
    if isinstance(event, plans.PlanOpened):
        return Plan(name=event.plan, by=event.by, reason=event.reason, opened_ms=at_ms, extended_ms=at_ms)
    assert before is not None, f"plan {event.plan} was never opened"
    match event:
        case plans.PlanExtended():
            return replace(before, more=event.more, extended_ms=at_ms)
        case plans.PlanThrottleSet():
            return replace(before, throttle_bytes_per_second=event.bytes_per_second)
        case plans.PlanCancelled():
            return replace(before, status=PlanStatus.CANCELLED, more=False)
        case plans.PlanFinished():
            if before.status is PlanStatus.CANCELLED:
                return before
            return replace(before, status=PlanStatus.FINISHED)
        case _:
            assert_never(event)
