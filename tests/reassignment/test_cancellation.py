"""Stop, and another target for a partition that is moving: what is recorded, and what follows from the end."""

from typing import Any

import pytest

from drover.decide.cancellation import succession
from drover.decide.commands import decide
from drover.decide.decision import Decision, Facts
from drover.events.commands import Alter, Cancel
from drover.events.reassignments import (
    CancelMode,
    FailureReason,
    ReassignmentCompleted,
    ReassignmentCreated,
    ReassignmentFailed,
    ReassignmentRolledBack,
    ReassignmentStopped,
    RollbackSkipped,
    SkipReason,
    StepPrepared,
)
from drover.fold.evolve import apply
from drover.fold.plans import Ending
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.plans import PlanStatus
from drover.state.reassignment import Replacement
from tests.reassignment.support import (
    CLUSTER,
    KEY,
    OTHER,
    accepted,
    alter,
    cancel,
    codes,
    copying,
    facts,
    intended,
    opened,
    queued,
    reassignment,
    requested,
    sight,
    state_after,
    stop_requested,
    tags,
)

NO_FACTS = Facts()
NAME: dict[str, Any] = {"cluster": CLUSTER, "topic": KEY.topic, "partition": KEY.partition}
ELSEWHERE = (5, 2, 1)


def tell(state: ClusterState, command: Alter | Cancel, known: Facts | None = None) -> Decision:
    """Decide a command and fold what follows."""
    decision = decide(command, state, facts() if known is None else known)
    for event in decision.events:
        apply(state, event, 2000)
    return decision


def replaced() -> ClusterState:
    """KEY was copying in plan p to (4,2,1); plan q has given it another target."""
    state = copying()
    tell(state, alter({KEY: ELSEWHERE}, plan="q"))
    return state


def waiting(state: ClusterState) -> tuple[int, int]:
    """How many targets of plan q wait, and how many were given up."""
    return state.plans["q"].waiting, state.plans["q"].withdrawn


# -- stop


def test_a_stop_of_what_copies_is_asked_for_and_carried_out_later() -> None:
    """R455-9, X1."""
    state = copying()
    assert tags(tell(state, cancel(KEY, mode="stop")).events) == ["stop-requested"]
    assert (state.reassignments[KEY].cancel_mode, state.reassignments[KEY].phase) == (
        CancelMode.STOP,
        Phase.ROLLING_BACK,
    )


def test_a_stop_of_what_is_queued_ends_it_at_once() -> None:
    state = state_after([opened(), queued()])
    decision = tell(state, cancel(KEY, mode="stop"))
    assert tags(decision.events) == ["stop-requested", "reassignment-stopped"]
    ended = decision.events[-1]
    assert isinstance(ended, ReassignmentStopped)
    assert (ended.replicas, ended.started) == ((1, 2, 3), False)
    assert (state.plans["p"].stopped, state.plans["p"].active) == (1, 0)


def test_a_stop_of_what_waits_for_its_throttle_ends_it_at_once() -> None:
    prepared = StepPrepared(**NAME, step=1, final=True, expected=(1, 2, 3), replicas=(4, 2, 1), leader=1)
    state = state_after([opened(), queued(), prepared])
    assert tags(tell(state, cancel(KEY, mode="stop")).events) == ["stop-requested", "reassignment-stopped"]


def test_a_rollback_overrules_a_stop() -> None:
    state = copying()
    tell(state, cancel(KEY, mode="stop"))
    decision = tell(state, cancel(KEY))
    assert (tags(decision.events), decision.accepted) == (["rollback-requested"], (KEY,))
    assert state.reassignments[KEY].cancel_mode is CancelMode.ROLLBACK


def test_a_stop_of_what_is_being_rolled_back_is_refused() -> None:
    state = copying()
    tell(state, cancel(KEY))
    decision = tell(state, cancel(KEY, mode="stop"))
    assert codes(decision) == ["reassignment-in-progress"]
    assert "rolled back" in decision.refusals[0].detail
    assert state.reassignments[KEY].cancel_mode is CancelMode.ROLLBACK


def test_a_second_stop_changes_nothing() -> None:
    state = copying()
    tell(state, cancel(KEY, mode="stop"))
    again = tell(state, cancel(all=True, mode="stop"))
    assert (again.unchanged, again.events) == ((KEY,), ())


def test_stopping_a_plan_closes_it() -> None:
    state = copying()
    decision = tell(state, cancel(plan="p", mode="stop"))
    assert tags(decision.events) == ["plan-cancelled", "stop-requested"]
    assert state.plans["p"].status is PlanStatus.CANCELLED


def test_stopping_a_plan_that_is_being_rolled_back_closes_it_and_refuses_the_rest() -> None:
    state = copying()
    tell(state, cancel(KEY))
    decision = tell(state, cancel(plan="p", mode="stop"))
    assert tags(decision.events) == ["plan-cancelled"]
    assert codes(decision) == ["reassignment-in-progress"]
    assert not decision.refused


# -- null in an alter command


def test_null_stops_the_move_and_opens_no_plan() -> None:
    """R455-1, TV-214: the page's cancel."""
    state = copying()
    decision = tell(state, alter({KEY: None}), NO_FACTS)
    assert tags(decision.events) == ["stop-requested"]
    assert (decision.accepted, decision.plan) == ((KEY,), None)
    assert list(state.plans) == ["p"]
    assert tell(state, alter({KEY: None}), NO_FACTS).unchanged == (KEY,)


def test_null_needs_no_cluster_and_a_move_beside_it_does() -> None:
    unseen = facts(unavailable="no route")
    assert tags(decide(alter({KEY: None}), copying(), unseen).events) == ["stop-requested"]
    assert codes(decide(alter({KEY: None, OTHER: [4, 3, 1]}), copying(), unseen)) == ["cluster-unavailable"]


def test_null_for_what_is_not_moving_is_refused() -> None:
    """R455-3."""
    decision = decide(alter({OTHER: None, KEY: None}), copying(), NO_FACTS)
    assert codes(decision) == ["no-reassignment-in-progress"]
    assert decision.accepted == (KEY,)


def test_null_under_a_wrong_assertion_is_refused() -> None:
    decision = decide(alter({KEY: None}, originals={KEY: (9,)}), copying(), NO_FACTS)
    assert codes(decision) == ["original-replicas-differ"]


def test_null_for_what_is_being_rolled_back_is_refused() -> None:
    state = copying()
    apply(state, requested(), 2000)
    assert codes(decide(alter({KEY: None}), state, NO_FACTS)) == ["reassignment-in-progress"]


def test_a_null_under_a_closed_plan_stops_and_leaves_the_plan_closed() -> None:
    state = copying()
    tell(state, cancel(OTHER))
    apply(state, opened("z"), 2000)
    tell(state, cancel(plan="z"))
    decision = tell(state, alter({KEY: None}, plan="z"))
    assert tags(decision.events) == ["stop-requested"]


# -- another target


def test_another_target_takes_the_partition_back_first() -> None:
    """R455-8, X18, TV-065: never a re-target."""
    state = copying()
    decision = tell(state, alter({KEY: ELSEWHERE}, plan="q"))
    assert tags(decision.events) == ["plan-opened", "rollback-requested", "target-replaced"]
    assert decision.accepted == (KEY,)
    assert waiting(state) == (1, 0)
    assert not state.plans["q"].is_idle


@pytest.mark.parametrize("prepare", [False, True])
def test_what_is_untouched_is_queued_anew_at_once(prepare: bool) -> None:
    """R455-8: the first original is kept."""
    prepared = StepPrepared(**NAME, step=1, final=True, expected=(1, 2, 3), replicas=(4, 2, 1), leader=1)
    state = state_after([opened(), queued(), *([prepared] if prepare else [])])
    decision = tell(state, alter({KEY: ELSEWHERE}, plan="q"))
    assert tags(decision.events) == ["plan-opened", "reassignment-rolled-back", "reassignment-created"]
    now = state.reassignments[KEY]
    assert (now.plan, now.original, now.target, now.phase) == ("q", (1, 2, 3), ELSEWHERE, Phase.PENDING)
    assert (state.plans["p"].active, state.plans["p"].rolled_back) == (0, 1)


def test_the_original_list_as_target_of_what_is_untouched_only_withdraws_it() -> None:
    state = state_after([opened(), queued()])
    decision = tell(state, alter({KEY: [1, 2, 3]}, plan="q"))
    assert tags(decision.events) == ["reassignment-rolled-back"]
    assert decision.accepted == (KEY,)
    assert state.reassignments == {}


def test_another_target_turns_a_stop_into_a_rollback() -> None:
    state = copying()
    apply(state, stop_requested(), 2000)
    assert "rollback-requested" in tags(tell(state, alter({KEY: ELSEWHERE}, plan="q")).events)
    assert state.reassignments[KEY].cancel_mode is CancelMode.ROLLBACK


def test_another_target_of_what_is_being_rolled_back_follows_the_rollback() -> None:
    state = copying()
    apply(state, requested(), 2000)
    assert tags(tell(state, alter({KEY: [4, 2, 1]}, plan="q")).events) == ["plan-opened", "target-replaced"]


def test_a_further_target_takes_the_place_of_the_one_that_waits() -> None:
    state = replaced()
    decision = tell(state, alter({KEY: [6, 2, 1]}, plan="r"))
    assert tags(decision.events) == ["plan-opened", "replacement-withdrawn", "target-replaced"]
    assert waiting(state) == (0, 1)
    assert state.plans["r"].waiting == 1


def test_the_target_that_waits_already_is_unchanged() -> None:
    decision = decide(alter({KEY: ELSEWHERE}, plan="r"), replaced(), facts())
    assert (decision.unchanged, decision.events) == ((KEY,), ())


def test_the_running_target_again_gives_up_the_one_that_waits_where_the_rollback_was_skipped() -> None:
    state = replaced()
    apply(state, RollbackSkipped(**NAME, why=SkipReason.NO_ORIGINAL_IN_SYNC, isr=(4,)), 2000)
    decision = tell(state, alter({KEY: [4, 2, 1]}, plan="r"))
    assert decision.unchanged == (KEY,)
    assert tags(decision.events) == ["replacement-withdrawn", "cancel-withdrawn"]
    assert waiting(state) == (0, 1)
    assert (state.reassignments[KEY].asked, state.reassignments[KEY].deferred_by) == (None, None)


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ([], "invalid-replica-assignment"),
        ([5, 5], "invalid-replica-assignment"),
        ([9, 2, 1], "invalid-replica-assignment"),
        ([5], "invalid-replication-factor"),
    ],
)
def test_another_target_is_checked_like_any_other_against_the_original(target: list[int], code: str) -> None:
    """R455-3: the merged list that is seen while a partition moves would hide what is wrong."""
    state = copying()
    decision = decide(alter({KEY: target}, plan="q"), state, facts({}, min_isr={KEY.topic: 2}))
    assert codes(decision) == [code]
    assert decision.events == ()


def test_another_target_under_a_wrong_assertion_is_refused() -> None:
    """R236-2."""
    seen = facts({KEY: sight((4, 2, 1, 3))})
    assert codes(decide(alter({KEY: ELSEWHERE}, originals={KEY: (4, 2, 1)}), copying(), seen)) == [
        "original-replicas-differ"
    ]
    assert decide(alter({KEY: ELSEWHERE}, originals={KEY: (1, 2, 3)}), copying(), seen).accepted == (KEY,)


# -- what follows from the end


def end(state: ClusterState, ending: Ending) -> list[str]:
    """Fold an end with all that comes with it, and return what does."""
    following = succession(state.reassignments[KEY], ending, CLUSTER)
    for event in (*following.before, ending, *following.after):
        apply(state, event, 3000)
    return tags((*following.before, *following.after))


def test_a_target_that_waits_for_a_reorder_is_queued_from_the_canonical_order() -> None:
    """X9: a reorder puts brokers that should not lead last; the order before it is the original."""
    moving = reassignment(Phase.COPYING, plan="drover-leaders-1", replacement=Replacement("q", ELSEWHERE))
    done = ReassignmentCompleted(**NAME, replicas=(2, 3, 1))
    (after,) = succession(moving, done, CLUSTER, canonical=(1, 2, 3)).after
    assert isinstance(after, ReassignmentCreated)
    assert (after.original, after.current, after.target) == ((1, 2, 3), (2, 3, 1), ELSEWHERE)


def test_after_the_rollback_the_new_target_is_queued_from_the_first_original() -> None:
    state = replaced()
    assert end(state, ReassignmentRolledBack(**NAME, replicas=(1, 2, 3))) == ["reassignment-created"]
    now = state.reassignments[KEY]
    assert (now.plan, now.original, now.target, now.topic_id) == ("q", (1, 2, 3), ELSEWHERE, "id-orders")
    assert waiting(state) == (0, 0)
    assert (state.plans["p"].rolled_back, state.plans["q"].active) == (1, 1)


def test_after_a_completion_before_the_cancel_it_is_queued_from_there() -> None:
    state = replaced()
    ending = ReassignmentCompleted(**NAME, replicas=(4, 2, 1), before_cancel=True)
    assert end(state, ending) == ["reassignment-created"]
    assert state.reassignments[KEY].original == (4, 2, 1)


def test_what_is_at_the_new_target_already_is_completed_without_a_call() -> None:
    state = copying()
    tell(state, alter({KEY: [1, 2, 3]}, plan="q"))
    assert end(state, ReassignmentRolledBack(**NAME, replicas=(1, 2, 3))) == [
        "reassignment-created",
        "reassignment-completed",
    ]
    assert state.reassignments == {}
    assert (state.plans["q"].completed, state.plans["q"].is_idle) == (1, True)


def test_after_a_failure_the_new_target_is_given_up_and_counted() -> None:
    state = replaced()
    failed = ReassignmentFailed(**NAME, why=FailureReason.PARTITION_GONE, detail="d", replicas=())
    assert end(state, failed) == ["replacement-withdrawn"]
    assert state.reassignments == {}
    assert waiting(state) == (0, 1)
    assert state.plans["q"].is_idle


def test_an_end_without_another_target_has_nothing_with_it() -> None:
    assert end(copying(), ReassignmentRolledBack(**NAME, replicas=(1, 2, 3))) == []


# -- cancels of what has another target waiting


@pytest.mark.parametrize("mode", ["rollback", "stop"])
def test_a_cancel_gives_up_the_target_that_waits_and_lets_the_rollback_go_on(mode: str) -> None:
    state = replaced()
    decision = tell(state, cancel(KEY, mode=mode))
    assert (tags(decision.events), decision.accepted) == (["replacement-withdrawn"], (KEY,))
    assert (waiting(state), state.reassignments[KEY].cancel_mode) == ((0, 1), CancelMode.ROLLBACK)
    assert end(state, ReassignmentRolledBack(**NAME, replicas=(1, 2, 3))) == []


def test_a_cancel_after_a_skipped_rollback_asks_again() -> None:
    state = replaced()
    apply(state, RollbackSkipped(**NAME, why=SkipReason.NO_ORIGINAL_IN_SYNC, isr=(4,)), 2000)
    assert tags(tell(state, cancel(KEY)).events) == ["replacement-withdrawn", "rollback-requested"]


def test_cancelling_the_new_plan_gives_up_its_target_alone() -> None:
    state = replaced()
    decision = tell(state, cancel(plan="q"))
    assert tags(decision.events) == ["plan-cancelled", "replacement-withdrawn"]
    assert state.plans["q"].is_idle


def test_cancelling_the_old_plan_leaves_the_new_plans_target_alone() -> None:
    state = replaced()
    decision = tell(state, cancel(plan="p"))
    assert tags(decision.events) == ["plan-cancelled"]
    assert decision.unchanged == (KEY,)
    assert waiting(state) == (1, 0)


def test_a_replaced_target_that_copies_again_is_cancelled_as_usual() -> None:
    state = replaced()
    end(state, ReassignmentRolledBack(**NAME, replicas=(1, 2, 3)))
    for event in (intended((1, 2, 3), ELSEWHERE), accepted()):
        apply(state, event, 4000)
    assert tags(tell(state, cancel(KEY)).events) == ["rollback-requested"]


def test_queued_under_its_new_plan_it_is_behind_what_was_accepted_before() -> None:
    state = replaced()
    apply(state, queued(OTHER, (2, 3, 1), (4, 3, 1)), 2000)
    end(state, ReassignmentRolledBack(**NAME, replicas=(1, 2, 3)))
    assert list(state.moves.pending) == [OTHER, KEY]
