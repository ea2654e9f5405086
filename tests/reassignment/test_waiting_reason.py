"""L8: whatever a reassignment waits for is named with a remedy, and every state has a bounded way to an end."""

from typing import Any

import pytest
from msgspec.structs import replace

from drover.client.views.waiting_reason import deferral_reason, waiting_reason
from drover.events.plans import PlanThrottleSet
from drover.events.reassignments import Blocker, Call, CancelMode, RollbackRequested, SkipReason
from drover.events.throttles import Rates
from drover.facts import CallResult, PartitionFacts
from drover.fold.evolve import apply
from drover.reconcile.moves import calls
from drover.reconcile.moves.next_calls import SendStep
from drover.reconcile.moves.reconcile import reconcile
from drover.reconcile.moves.route import next_call
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.plans import PlanStatus
from drover.state.reassignment import Asked, Block, Reassignment, Step
from drover.state.scheduling import Freeze, Limits
from drover.state.throttles import BrokerThrottle
from tests.reassignment.support import CLUSTER, KEY, OTHER, context, opened, reassignment, requested, sight, state_after

# What Drover carries further with its next look, within 2 s where the look must be repeated.
WORKED_ON = {Phase.COPYING, Phase.ROLLING_BACK, Phase.CANCELLING, Phase.RESTORING}


def state_with(entry: Reassignment, **cluster: Any) -> ClusterState:
    state = state_after([opened()])
    state.plans["p"] = replace(state.plans["p"], active=1)
    state.put(entry)
    for name, value in cluster.items():
        setattr(state, name, value)
    return state


def said(phase: Phase, cluster: dict[str, Any] | None = None, **fields: Any) -> str:
    reason = waiting_reason(state_with(reassignment(phase, since_ms=77, **fields), **(cluster or {})), KEY)
    assert reason is not None, f"{phase} waits for no reason"
    assert reason.why
    assert reason.remedy
    assert reason.since_ms >= 77
    return str(reason)


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("blocker", list(Blocker))
def test_every_phase_names_every_blocker_what_lifts_it_and_since_when(phase: Phase, blocker: Blocker) -> None:
    entry = reassignment(phase, block=Block(blocker, "bring it back", 99))
    reason = waiting_reason(state_with(entry), KEY)
    assert reason is not None
    assert (reason.why, reason.remedy, reason.since_ms) == (blocker.value, "bring it back", 99)


@pytest.mark.parametrize("phase", list(Phase))
def test_without_a_block_a_phase_is_worked_on_or_says_what_it_waits_for(phase: Phase) -> None:
    if phase in WORKED_ON:
        assert waiting_reason(state_with(reassignment(phase)), KEY) is None
        assert "lost" in said(phase, outcome_unknown=True)
        if phase is not Phase.COPYING:
            assert "pause" in said(phase, attempts=2)
    else:
        said(phase)


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.CONFIRMED])
def test_what_waits_for_room_after_calls_without_effect_names_the_room(phase: Phase) -> None:
    assert "pause" not in said(phase, attempts=1)


@pytest.mark.parametrize("phase", list(Phase))
def test_another_cluster_holds_everything_back(phase: Phase) -> None:
    assert "another Kafka cluster (x)" in said(phase, {"mismatched_kafka_cluster_id": "x"})


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.PREPARED, Phase.CONFIRMED])
def test_a_freeze_withholds_what_has_not_begun(phase: Phase) -> None:
    """R236-9: and nothing else."""
    assert said(phase, {"freeze": Freeze("ann", "a quiet Friday", 99)}).startswith("withheld, frozen by ann")


@pytest.mark.parametrize("phase", [Phase.COPYING, Phase.ROLLING_BACK, Phase.CANCELLING, Phase.RESTORING])
def test_a_freeze_withholds_no_way_back(phase: Phase) -> None:
    assert waiting_reason(state_with(reassignment(phase), freeze=Freeze("ann", "r", 99)), KEY) is None


def test_the_limit_that_holds_a_queued_one_is_named() -> None:
    limits = {"limits": Limits(max_partitions_in_flight=0)}
    assert "max_partitions_in_flight" in said(Phase.PENDING, limits)
    state = state_with(reassignment(Phase.PENDING, step=None), limits=Limits(max_moves_per_broker=1))
    state.put(reassignment(Phase.COPYING, key=OTHER))
    reason = waiting_reason(state, KEY)
    assert reason is not None
    assert reason.why == "slots of broker 4 (1 of 1 copies in)"
    assert "max_moves_per_broker" in reason.remedy


def test_between_two_steps_a_full_broker_is_named() -> None:
    state = state_with(
        reassignment(Phase.CONFIRMED, current=(4, 2, 1), target=(4, 5, 1)), limits=Limits(max_moves_per_broker=1)
    )
    state.put(reassignment(Phase.COPYING, key=OTHER))
    reason = waiting_reason(state, KEY)
    assert reason is not None
    assert reason.why == "slots of broker 1 (1 of 1 copies out)"


def test_between_two_steps_a_full_leader_is_named() -> None:
    step = Step(1, False, (1, 2, 3), (1, 2, 3, 4), 1)
    confirmed = reassignment(Phase.CONFIRMED, current=(1, 2, 3, 4), target=(4, 5, 6), step=step)
    state = state_with(confirmed, limits=Limits(max_moves_per_broker=1))
    state.put(reassignment(Phase.COPYING, key=OTHER))
    reason = waiting_reason(state, KEY)
    assert reason is not None
    assert reason.why == "slots of broker 1 (1 of 1 copies out)"


def test_between_two_steps_no_room_is_held_and_the_reason_is_never_empty() -> None:
    step = Step(1, False, (1, 2, 3), (1, 2, 3, 4), 1)
    state = state_with(reassignment(Phase.CONFIRMED, current=(1, 2, 3, 4), target=(4, 5, 6), step=step))
    assert state.moves.loads == {}
    assert "before all that is queued" in str(waiting_reason(state, KEY))
    apply(state, PlanThrottleSet(cluster=CLUSTER, plan="p", bytes_per_second=5), 1)
    assert "throttled replicas" in str(waiting_reason(state, KEY))


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("mode", list(CancelMode))
def test_in_every_phase_what_defers_a_cancel_is_named_with_who_asked(phase: Phase, mode: CancelMode) -> None:
    entry = reassignment(phase, asked=Asked(mode, "bob", "an alarm", 99), deferred_by=SkipReason.BELOW_MIN_ISR)
    reason = deferral_reason(entry)
    assert reason is not None
    assert reason.why == f"the {mode.value} that bob asked for (an alarm) is deferred, below-min-isr"
    assert (reason.since_ms, "1, 2, 3" in reason.remedy) == (99, True)
    assert deferral_reason(reassignment(phase, asked=entry.asked)) is None


def test_a_queued_one_of_a_throttled_plan_may_wait_for_room_in_its_topics_list() -> None:
    state = state_with(reassignment(Phase.PENDING))
    apply(state, PlanThrottleSet(cluster=CLUSTER, plan="p", bytes_per_second=5), 1)
    assert "throttled replicas" in str(waiting_reason(state, KEY))


def test_a_prepared_one_names_the_brokers_whose_throttle_is_owed() -> None:
    owed = BrokerThrottle(Rates(None, None), Rates(5, 5), pending=True, release=False)
    assert "on broker 2" in said(Phase.PREPARED, {"broker_throttles": {2: owed, 9: owed}})


# -- the way to an end


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("blocker", [None, *Blocker])
@pytest.mark.parametrize("mode", [None, *CancelMode])
def test_from_every_state_a_rollback_ends_on_a_healthy_cluster(
    phase: Phase, blocker: Blocker | None, mode: CancelMode | None
) -> None:
    """L4, L8: a handful of looks and calls, each of which takes seconds at most."""
    block = None if blocker is None else Block(blocker, "words", 1)
    step = None if phase is Phase.PENDING else reassignment(phase).step
    state = state_with(reassignment(phase, block=block, cancel_mode=mode, step=step))
    apply(state, requested(), 2)
    assert state.reassignments[KEY].block is None
    for _ in range(20):
        if KEY not in state.reassignments:
            break
        _carry_on(state, sight((1, 2, 3)))
    assert KEY not in state.reassignments
    assert state.plans["p"].status is PlanStatus.OPEN
    assert state.plans["p"].rolled_back == 1


@pytest.mark.parametrize("phase", list(Phase))
def test_from_every_state_the_loss_of_the_partition_is_an_end(phase: Phase) -> None:
    state = state_with(reassignment(phase))
    for _ in range(3):
        if KEY in state.reassignments:
            _carry_on(state, None)
    assert KEY not in state.reassignments
    assert state.plans["p"].failed == 1


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.PREPARED, Phase.CONFIRMED])
@pytest.mark.parametrize("blocker", list(Blocker))
def test_before_a_step_a_block_is_lifted_by_what_is_seen(phase: Phase, blocker: Blocker) -> None:
    """No block outlives its reason: with the partition healthy again the step may start."""
    entry = reassignment(phase, block=Block(blocker, "words", 1))
    assert isinstance(next_call(entry, sight(), context()), SendStep)


def _carry_on(state: ClusterState, seen: PartitionFacts | None) -> None:
    """One look whose mismatch has persisted, or one answer."""
    entry = state.reassignments[KEY]
    if entry.call_open:
        events = calls.answered(entry, CallResult(0), CLUSTER)
    else:
        events = reconcile(entry, seen, context(persisted=True)).events
    for event in events:
        apply(state, event, 3)


def test_a_call_that_was_open_when_the_rollback_came_is_answered_first() -> None:
    state = state_with(reassignment(Phase.INTENDED))
    apply(state, RollbackRequested(cluster=CLUSTER, topic="orders", partition=0, by="b", reason="r"), 2)
    assert state.reassignments[KEY].phase is Phase.INTENDED
    _carry_on(state, None)
    assert state.reassignments[KEY].phase is Phase.ROLLING_BACK
    assert Call.STEP.value in said(Phase.INTENDED)
