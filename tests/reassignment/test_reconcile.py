"""What follows from a sight of the cluster, phase by phase: doubt before action, and nothing when all agrees."""

from typing import Any

import pytest

from drover.decide.verdict import NOTHING, UNCONFIRMED, Verdict
from drover.events.reassignments import (
    Blocker,
    Call,
    CallAccepted,
    CallIntended,
    CallLapsed,
    CancelMode,
    FailureReason,
    ReassignmentBlocked,
    ReassignmentCompleted,
    ReassignmentFailed,
    ReassignmentRolledBack,
    RollbackSkipped,
    SkipReason,
    StepConfirmed,
)
from drover.facts import Move, PartitionFacts
from drover.reconcile.moves.reconcile import reconcile
from drover.state.phase import Phase
from drover.state.reassignment import Block, Reassignment, Step
from tests.reassignment.support import context, moving, reassignment, sight, tags

GROW = Step(1, False, (1, 2, 3), (1, 2, 3, 4), 1)
UNMANAGED = Move((6, 2, 1, 3), (6,), (3,))


def judge(about: Reassignment, seen: PartitionFacts | None, **fields: Any) -> Verdict:
    return reconcile(about, seen, context(**fields))


def doubted_then(about: Reassignment, seen: PartitionFacts | None, **fields: Any) -> Any:
    """The one event that follows only once the mismatch has persisted."""
    assert judge(about, seen, **fields) == UNCONFIRMED
    verdict = judge(about, seen, persisted=True, **fields)
    assert len(verdict.events) == 1
    return verdict.events[0]


# -- copying


def test_a_move_on_its_way_says_nothing() -> None:
    assert judge(reassignment(Phase.COPYING), moving()) == NOTHING


def test_not_listed_and_equal_as_a_sequence_is_completion() -> None:
    """X13; members out of sync are named."""
    (event,) = judge(reassignment(Phase.COPYING, bytes_copied=5), sight((4, 2, 1), (4, 1)), bytes_copied=7).events
    assert isinstance(event, ReassignmentCompleted)
    assert (event.replicas, event.out_of_sync, event.bytes_copied) == ((4, 2, 1), (2,), 12)
    assert not event.before_cancel


def test_the_right_brokers_in_another_order_are_no_completion() -> None:
    event = doubted_then(reassignment(Phase.COPYING), sight((2, 4, 1)))
    assert isinstance(event, ReassignmentFailed)
    assert event.why is FailureReason.UNMANAGED_CHANGE


def test_a_grow_step_is_confirmed() -> None:
    (event,) = judge(reassignment(Phase.COPYING, step=GROW), sight((1, 2, 3, 4))).events
    assert isinstance(event, StepConfirmed)
    assert event.replicas == (1, 2, 3, 4)


def test_a_move_that_was_cancelled_by_others_ends_as_failed_only_when_that_persists() -> None:
    event = doubted_then(reassignment(Phase.COPYING), sight((2, 1, 3)))
    assert isinstance(event, ReassignmentFailed)
    assert event.why is FailureReason.CANCELLED_ELSEWHERE


def test_a_lost_call_that_is_seen_is_adopted() -> None:
    (event,) = judge(reassignment(Phase.COPYING, outcome_unknown=True), moving()).events
    assert isinstance(event, CallAccepted)
    assert event.adopted


def test_a_lost_call_that_is_done_is_completed_once_that_persists() -> None:
    event = doubted_then(reassignment(Phase.COPYING, outcome_unknown=True), sight((4, 2, 1)))
    assert isinstance(event, ReassignmentCompleted)


def test_a_lost_call_without_effect_lapses_only_when_that_persists() -> None:
    event = doubted_then(reassignment(Phase.COPYING, outcome_unknown=True), sight())
    assert isinstance(event, CallLapsed)


@pytest.mark.parametrize("phase", [Phase.COPYING, Phase.ROLLING_BACK, Phase.CANCELLING, Phase.RESTORING])
def test_an_unmanaged_move_is_shown_and_never_fought(phase: Phase) -> None:
    """S11, in every phase: a block, and it is looked at again."""
    seen = sight(UNMANAGED.replicas, (1, 2, 3), move=UNMANAGED)
    assert judge(reassignment(phase), seen) == UNCONFIRMED
    verdict = judge(reassignment(phase), seen, persisted=True)
    assert verdict.unconfirmed
    (event,) = verdict.events
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is Blocker.UNMANAGED_CHANGE


def test_a_block_is_recorded_once_and_lifted_when_its_reason_is_gone() -> None:
    about = reassignment(Phase.COPYING)
    (event,) = judge(about, moving(), live={1, 2, 3}).events
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is Blocker.DEAD_DESTINATION
    known = reassignment(Phase.COPYING, block=Block(event.why, event.detail, 1))
    assert judge(known, moving(), live={1, 2, 3}) == NOTHING
    assert tags(judge(known, moving()).events) == ["reassignment-unblocked"]


def test_a_partition_without_a_leader_is_named_as_such() -> None:
    (event,) = judge(reassignment(Phase.COPYING), moving(isr=(1,), leader=None), live={4}).events
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is Blocker.NO_LEADER


def test_a_shrink_that_kafka_lists_and_holds_back_names_whom_it_waits_for() -> None:
    """Live fact: [1,2,3] to [1,4] waits for 1 as well once 4 is in sync."""
    step = Step(1, True, (1, 2, 3), (1, 4), 2)
    about = reassignment(Phase.COPYING, target=(1, 4), step=step)
    move = Move((1, 4, 2, 3), (4,), (2, 3))
    assert judge(about, sight(move.replicas, (2, 3), move=move)) == NOTHING
    (event,) = judge(about, sight(move.replicas, (2, 3, 4), move=move)).events
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is Blocker.REPLICAS_OUT_OF_SYNC
    assert "replicas 1 " in event.detail


# -- rolling back


def test_a_running_move_is_cancelled_and_never_retargeted() -> None:
    """R236-7 over the Admin RPCs; re-targeting to the originals never ends (live fact)."""
    (event,) = judge(reassignment(Phase.ROLLING_BACK, cancel_mode=CancelMode.ROLLBACK), moving()).events
    assert isinstance(event, CallIntended)
    assert (event.call, event.replicas, event.expected) == (Call.CANCEL, None, (4, 2, 1, 3))


def test_a_rollback_that_would_harm_is_skipped() -> None:
    """TV-204."""
    seen = moving(isr=(4,), leader=4)
    (event,) = judge(reassignment(Phase.ROLLING_BACK, cancel_mode=CancelMode.ROLLBACK), seen).events
    assert isinstance(event, RollbackSkipped)
    assert (event.why, event.isr) == (SkipReason.NO_ORIGINAL_IN_SYNC, (4,))


def test_a_move_that_was_done_before_the_cancel_says_so() -> None:
    (event,) = judge(reassignment(Phase.ROLLING_BACK, cancel_mode=CancelMode.ROLLBACK), sight((4, 2, 1))).events
    assert isinstance(event, ReassignmentCompleted)
    assert event.before_cancel


def test_the_target_is_doubted_after_a_cancel_that_was_taken_since_old_metadata_shows_it_as_well() -> None:
    event = doubted_then(reassignment(Phase.CANCELLING, cancel_mode=CancelMode.ROLLBACK), sight((4, 2, 1)))
    assert isinstance(event, ReassignmentCompleted)
    assert event.before_cancel


def test_the_list_from_before_the_step_may_be_old_metadata_and_is_looked_at_again() -> None:
    event = doubted_then(reassignment(Phase.ROLLING_BACK, cancel_mode=CancelMode.ROLLBACK), sight())
    assert isinstance(event, ReassignmentRolledBack)


def test_a_lost_step_is_waited_for_before_the_way_back_begins() -> None:
    about = reassignment(Phase.ROLLING_BACK, cancel_mode=CancelMode.ROLLBACK, outcome_unknown=True)
    assert judge(about, sight((2, 1, 3))) == UNCONFIRMED


def test_a_cancel_loses_the_order_and_the_original_one_is_sent() -> None:
    """TV-200, TV-201, TV-266: [1,2,3] to [4,2,1] and back is [2,1,3] before the restore."""
    (event,) = judge(reassignment(Phase.CANCELLING, cancel_mode=CancelMode.ROLLBACK), sight((2, 1, 3), (2,))).events
    assert isinstance(event, CallIntended)
    assert (event.call, event.replicas) == (Call.RESTORE, (1, 2, 3))


def test_the_original_order_right_after_a_cancel_that_loses_it_is_doubted() -> None:
    event = doubted_then(reassignment(Phase.CANCELLING, cancel_mode=CancelMode.ROLLBACK), sight())
    assert isinstance(event, ReassignmentRolledBack)


def test_a_cancel_that_keeps_the_order_is_the_end_at_once() -> None:
    about = reassignment(Phase.CANCELLING, cancel_mode=CancelMode.ROLLBACK, step=GROW)
    (event,) = judge(about, sight()).events
    assert isinstance(event, ReassignmentRolledBack)
    assert event.started


def test_the_list_that_a_lost_cancel_would_leave_is_looked_at_again_since_it_may_be_an_old_one() -> None:
    about = reassignment(Phase.CANCELLING, cancel_mode=CancelMode.ROLLBACK, step=GROW, outcome_unknown=True)
    event = doubted_then(about, sight())
    assert isinstance(event, ReassignmentRolledBack)


def test_a_cancel_that_had_no_effect_is_sent_again_only_when_that_persists() -> None:
    event = doubted_then(reassignment(Phase.CANCELLING, cancel_mode=CancelMode.ROLLBACK), moving())
    assert isinstance(event, CallLapsed)
    assert event.call is Call.CANCEL


def test_grown_replicas_go_only_with_every_original_in_sync() -> None:
    about = reassignment(Phase.ROLLING_BACK, step=GROW, current=(1, 2, 3, 4), cancel_mode=CancelMode.ROLLBACK)
    (event,) = judge(about, sight((1, 2, 3, 4), (1, 4))).events
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is Blocker.ORIGINALS_OUT_OF_SYNC
    (event,) = judge(about, sight((1, 2, 3, 4), (3, 2, 1))).events
    assert isinstance(event, CallIntended)
    assert event.replicas == (1, 2, 3)


@pytest.mark.parametrize("phase", [Phase.ROLLING_BACK, Phase.CANCELLING, Phase.RESTORING])
@pytest.mark.parametrize("replicas", [(6, 2, 1), (1, 4, 2), (1, 2)])
def test_a_list_that_is_not_ours_ends_the_way_back(phase: Phase, replicas: tuple[int, ...]) -> None:
    """The way back starts from a set that Drover made; from any other it would be a move of its own."""
    event = doubted_then(reassignment(phase, cancel_mode=CancelMode.ROLLBACK), sight(replicas))
    assert isinstance(event, ReassignmentFailed)
    assert event.why is FailureReason.UNMANAGED_CHANGE


# -- restoring


def test_the_original_order_is_the_end() -> None:
    (event,) = judge(reassignment(Phase.RESTORING, cancel_mode=CancelMode.ROLLBACK), sight()).events
    assert isinstance(event, ReassignmentRolledBack)


def test_a_restore_that_kafka_holds_back_is_named() -> None:
    move = Move((1, 2, 3, 4), (), (4,))
    seen = sight(move.replicas, (1, 2, 4), move=move)
    (event,) = judge(reassignment(Phase.RESTORING, step=GROW, cancel_mode=CancelMode.ROLLBACK), seen).events
    assert isinstance(event, ReassignmentBlocked)
    assert event.why is Blocker.ORIGINALS_OUT_OF_SYNC


def test_a_restore_without_effect_is_sent_again_only_when_that_persists() -> None:
    event = doubted_then(reassignment(Phase.RESTORING, cancel_mode=CancelMode.ROLLBACK), sight((2, 1, 3)))
    assert isinstance(event, CallLapsed)
    assert event.call is Call.RESTORE


# -- gone


@pytest.mark.parametrize("phase", list(Phase))
def test_a_recreated_topic_is_never_touched(phase: Phase) -> None:
    """S9: another topic id ends the reassignment, once it is certain that no broker with old metadata has shown it."""
    event = doubted_then(reassignment(phase), sight(topic_id="another"))
    assert isinstance(event, ReassignmentFailed)
    assert event.why is FailureReason.PARTITION_GONE


@pytest.mark.parametrize("phase", list(Phase))
def test_a_partition_that_is_not_there_is_doubted_first(phase: Phase) -> None:
    event = doubted_then(reassignment(phase), None)
    assert isinstance(event, ReassignmentFailed)
    assert event.why is FailureReason.PARTITION_GONE


@pytest.mark.parametrize(
    "phase",
    [
        Phase.PENDING,
        Phase.PREPARED,
        Phase.CONFIRMED,
        Phase.INTENDED,
        Phase.CANCEL_INTENDED,
        Phase.RESTORE_INTENDED,
    ],
)
def test_nothing_is_judged_while_a_call_is_open_or_a_slot_is_awaited(phase: Phase) -> None:
    assert judge(reassignment(phase), sight((9, 8)), persisted=True) == NOTHING


def test_what_was_over_before_a_size_was_sampled_is_unknown_and_not_nothing() -> None:
    before = reassignment(Phase.COPYING, bytes_unknown=True)
    for state, unknown in ((before, False), (reassignment(Phase.COPYING), True)):
        (event,) = judge(state, sight((4, 2, 1), (4, 2, 1)), bytes_unknown=unknown).events
        assert isinstance(event, ReassignmentCompleted)
        assert event.bytes_unknown
    (event,) = judge(reassignment(Phase.COPYING), sight((4, 2, 1), (4, 2, 1))).events
    assert isinstance(event, ReassignmentCompleted)
    assert not event.bytes_unknown
