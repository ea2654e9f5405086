"""Alter commands: given a state and facts, which partitions are accepted, which refused and why."""

from collections.abc import Sequence

import pytest

from drover.decide.commands import decide
from drover.decide.decision import OwnTopics
from drover.events.base import PartitionEvent
from drover.events.brokers import BlacklistSet
from drover.events.clusters import ClusterIdentified, ClusterMismatched
from drover.events.leadership import LeaderOrderKept
from drover.events.plans import PlanCancelled, PlanFinished, PlanThrottleSet
from drover.events.queue_entries import QueueEntryAdded
from drover.events.reassignments import FailureReason, ReassignmentCreated, ReassignmentFailed
from drover.facts import Move
from drover.fold.evolve import apply
from drover.state.plans import PlanStatus
from tests.reassignment.support import (
    CLUSTER,
    KEY,
    LIVE,
    OTHER,
    TOPIC_ID,
    accepted,
    alter,
    codes,
    copying,
    facts,
    intended,
    moving,
    opened,
    queued,
    sight,
    state_after,
    tags,
)

MISMATCH = (
    ClusterIdentified(cluster=CLUSTER, kafka_cluster_id="a"),
    ClusterMismatched(cluster=CLUSTER, expected_kafka_cluster_id="a", found_kafka_cluster_id="b"),
)
FINISHED = PlanFinished(cluster=CLUSTER, plan="p", completed=1, rolled_back=0, failed=0)
WAITING = QueueEntryAdded(cluster=CLUSTER, topic="orders", partition=0, id="w", plan="later", target=(4, 2, 1))
CANCELLED = PlanCancelled(cluster=CLUSTER, plan="p", by="bob", reason="r")


def test_an_accepted_partition_opens_its_plan_and_records_the_original_order() -> None:
    """R236-2: the original is the ordered list at the moment of acceptance."""
    decision = decide(alter({KEY: [4, 2, 1]}, id="one"), state_after(), facts())
    assert tags(decision.events) == ["plan-opened", "reassignment-created"]
    event = decision.events[-1]
    assert isinstance(event, ReassignmentCreated)
    assert (event.plan, event.original, event.target) == ("one", (1, 2, 3), (4, 2, 1))
    assert decision.accepted == (KEY,)
    assert not decision.refused


def test_partitions_stand_for_themselves() -> None:
    """KIP-455, TV-148, TV-169: one bad partition does not spoil the others."""
    decision = decide(alter({KEY: [4, 2, 1], OTHER: [9, 2, 1]}), state_after(), facts())
    assert decision.accepted == (KEY,)
    assert codes(decision) == ["invalid-replica-assignment"]
    assert not decision.refused


def test_a_partition_that_is_there_already_is_unchanged_and_opens_no_plan() -> None:
    decision = decide(alter({KEY: [1, 2, 3]}, throttle_bytes_per_second=5), state_after(), facts())
    assert decision.unchanged == (KEY,)
    assert decision.events == ()
    assert not decision.refused


def test_another_order_of_the_same_brokers_is_a_move() -> None:
    """TV-202: a reorder is asked for like any other target."""
    decision = decide(alter({KEY: [2, 3, 1]}), state_after(), facts())
    assert decision.accepted == (KEY,)


def test_the_same_target_again_has_no_effect() -> None:
    decision = decide(alter({KEY: [4, 2, 1]}), copying(), facts())
    assert decision.unchanged == (KEY,)
    assert decision.events == ()


@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        ([], "invalid-replica-assignment"),
        ([1, 1, 2], "invalid-replica-assignment"),
        ([-1, 2, 3], "invalid-replica-assignment"),
        ([1, 2, 99], "invalid-replica-assignment"),
        (None, "no-reassignment-in-progress"),
    ],
)
def test_what_kafka_would_refuse_is_refused_before_anything_is_queued(
    replicas: Sequence[int] | None, code: str
) -> None:
    """R455-3, TV-144, TV-149, TV-168."""
    decision = decide(alter({KEY: replicas}), state_after(), facts())
    assert codes(decision) == [code]
    assert decision.refused
    assert decision.events == ()


def test_a_dead_broker_may_stay_but_not_come() -> None:
    dead = facts(live_brokers=LIVE - {3, 4})
    assert decide(alter({KEY: [3, 1, 5]}), state_after(), dead).accepted == (KEY,)
    assert codes(decide(alter({KEY: [4, 1, 2]}), state_after(), dead)) == ["invalid-replica-assignment"]


def test_a_partition_that_does_not_exist_is_unknown() -> None:
    """TV-148, TV-169."""
    assert codes(decide(alter({KEY: [1]}), state_after(), facts({KEY: None}))) == ["unknown-topic-or-partition"]


def test_the_replication_factor_changes_unless_the_command_forbids_it() -> None:
    """TV-179, TV-180."""
    assert decide(alter({KEY: [1, 2]}), state_after(), facts()).accepted == (KEY,)
    guarded = alter({KEY: [1, 2], OTHER: [2, 3, 4]}, allow_replication_factor_change=False)
    decision = decide(guarded, state_after(), facts())
    assert codes(decision) == ["invalid-replication-factor"]
    assert decision.accepted == (OTHER,)


@pytest.mark.parametrize(
    ("replicas", "min_isr", "allowed"),
    [([1], 2, False), ([1, 2], 2, True), ([1], 1, True), ([1, 2], 4, True)],
)
def test_a_target_smaller_than_min_isr_is_refused(replicas: list[int], min_isr: int, allowed: bool) -> None:
    """X17; where a partition has fewer replicas than its min ISR already, the target need not have as many."""
    decision = decide(alter({KEY: replicas}), state_after(), facts(min_isr={KEY.topic: min_isr}))
    assert decision.accepted == ((KEY,) if allowed else ())
    assert codes(decision) == ([] if allowed else ["invalid-replication-factor"])


@pytest.mark.parametrize("target", [[1, 2], [2]])
def test_tv_210_what_has_fewer_replicas_than_min_isr_may_be_moved_and_repaired(target: list[int]) -> None:
    """X17: the page ignores such a request; but it may be the very one that adds what is missing."""
    seen = facts({KEY: sight((1,))}, min_isr={KEY.topic: 2})
    assert decide(alter({KEY: target}), state_after(), seen).accepted == (KEY,)


def test_an_unmanaged_move_is_never_fought() -> None:
    """S11."""
    seen = facts({KEY: moving()})
    assert codes(decide(alter({KEY: [5, 2, 1]}), state_after(), seen)) == ["unmanaged-move"]
    listed = facts(moves={KEY: Move((4, 2, 1, 3), (4,), (3,))})
    assert codes(decide(alter({KEY: [5, 2, 1]}), state_after(), listed)) == ["unmanaged-move"]


def test_drovers_own_topics_are_targets_only_if_the_command_says_so() -> None:
    own = facts(own_topics=OwnTopics(frozenset({KEY.topic}), may_move=True))
    assert codes(decide(alter({KEY: [4, 2, 1]}), state_after(), own)) == ["drover-topic"]
    assert decide(alter({KEY: [4, 2, 1]}, allow_drover_topics=True), state_after(), own).accepted == (KEY,)


def test_drovers_own_topics_are_moved_only_where_the_workers_settings_allow_it() -> None:
    own = facts(own_topics=OwnTopics(frozenset({KEY.topic})))
    (refusal,) = decide(alter({KEY: [4, 2, 1]}, allow_drover_topics=True), state_after(), own).refusals
    assert (refusal.code.value, "worker.allow_drover_topics" in refusal.detail) == ("drover-topic", True)


def test_drovers_own_topics_never_have_fewer_than_three_replicas() -> None:
    own = facts(own_topics=OwnTopics(frozenset({KEY.topic}), may_move=True))
    for replicas in ([4, 2], [4], []):
        assert codes(decide(alter({KEY: replicas}, allow_drover_topics=True), state_after(), own)) == ["drover-topic"]


@pytest.mark.parametrize(("original", "allowed"), [((1, 2, 3), True), ((3, 2, 1), False), ((), False)])
def test_original_replicas_are_an_assertion_about_the_true_list(original: tuple[int, ...], allowed: bool) -> None:
    """R236-2; TV-203 is Drover's to answer, since it looks at the originals itself."""
    command = alter({KEY: [4, 2, 1]}, originals={KEY: original})
    decision = decide(command, state_after(), facts())
    assert decision.accepted == ((KEY,) if allowed else ())
    assert codes(decision) == ([] if allowed else ["original-replicas-differ"])


@pytest.mark.parametrize(("original", "allowed"), [((1, 2, 3), True), ((4, 2, 1, 3), False)])
def test_original_replicas_of_a_moving_partition_are_those_recorded(original: tuple[int, ...], allowed: bool) -> None:
    decision = decide(alter({KEY: [4, 2, 1]}, originals={KEY: original}), copying(), facts())
    assert decision.unchanged == ((KEY,) if allowed else ())
    assert all("(4" not in refusal.detail and str([1, 2, 3]) in refusal.detail for refusal in decision.refusals)
    assert codes(decision) == ([] if allowed else ["original-replicas-differ"])


@pytest.mark.parametrize("replicas", [(5, 2, 1), None], ids=["another target", "a stop"])
def test_original_replicas_may_be_those_of_todays_order_also_for_a_stop(replicas: tuple[int, ...] | None) -> None:
    """X9: with broker 1 listed, Kafka shows the original list as 2,3,1."""
    listed = BlacklistSet(cluster=CLUSTER, by="ana", reason="r", brokers=(1,), previous_brokers=())
    state = state_after([listed, opened(), queued(), intended(), accepted()])
    for original, allowed in (((2, 3, 1), True), ((1, 2, 3), True), ((3, 2, 1), False)):
        decision = decide(alter({KEY: replicas}, originals={KEY: original}), state, facts())
        assert decision.accepted == ((KEY,) if allowed else ())
        assert codes(decision) == ([] if allowed else ["original-replicas-differ"])


# -- the command as a whole


def test_a_target_in_the_place_of_one_that_waits_begins_anew_where_the_topic_was_made_anew() -> None:
    """S9: nothing was sent for the old one, which ends as gone; a look that is worth it shows the new topic."""
    state = state_after([opened(), queued()])
    new = sight((3, 2, 1), topic_id="another")
    decision = decide(alter({KEY: [3, 2, 5]}), state, facts({}, recent={KEY: new}.get))
    ended, began = (event for event in decision.events if isinstance(event, PartitionEvent))
    assert isinstance(ended, ReassignmentFailed)
    assert ended.why is FailureReason.PARTITION_GONE
    assert isinstance(began, ReassignmentCreated)
    assert (began.topic_id, began.original) == ("another", (3, 2, 1))
    assert decision.accepted == (KEY,)


def test_an_order_of_an_earlier_topic_is_not_ended_by_who_asks_for_the_list_of_the_new_one() -> None:
    """It goes with the old reassignment; to end it twice would stop the worker."""
    kept = LeaderOrderKept(
        cluster=CLUSTER, topic="orders", partition=0, topic_id=TOPIC_ID, canonical=(1, 2, 3), replicas=(2, 3, 1)
    )
    state = state_after([opened(), queued(), kept])
    assert state.orders[KEY].topic_id == state.reassignments[KEY].topic_id
    new = sight((3, 2, 1), topic_id="another")
    decision = decide(alter({KEY: [3, 2, 1]}), state, facts({}, recent={KEY: new}.get))
    assert tags(decision.events) == ["reassignment-failed"]
    assert decision.unchanged == (KEY,)


def test_what_was_sent_for_an_earlier_topic_is_judged_by_a_look_and_not_by_an_alter() -> None:
    seen = moving(topic_id="another")
    decision = decide(alter({KEY: [3, 2, 5]}), copying(), facts({}, recent={KEY: seen}.get))
    assert tags(decision.events) == ["plan-opened", "rollback-requested", "target-replaced"]


def test_what_is_for_an_idle_cluster_only_is_refused_as_a_whole_while_anything_moves_or_waits() -> None:
    """R455-12, TV-212: the old plan node is taken only when nothing is in progress."""
    command = alter({OTHER: [4, 2, 1]}, only_when_idle=True)
    assert decide(command, state_after(), facts()).accepted == (OTHER,)
    for state in (copying(), state_after((opened("later"), WAITING))):
        decision = decide(command, state, facts())
        assert (decision.accepted, codes(decision)) == ((), ["reassignment-in-progress"])
        assert decision.events == ()


def test_tv_212_of_a_request_and_the_old_node_for_one_partition_only_the_request_may_come_second() -> None:
    """R236-21: the page ignores the second one either way; here a request replaces the target (X18)."""
    legacy, request = alter({KEY: [3, 2, 5]}, only_when_idle=True), alter({KEY: [3, 2, 5]})
    assert codes(decide(legacy, copying(), facts())) == ["reassignment-in-progress"]
    assert tags(decide(request, copying(), facts()).events) == ["plan-opened", "rollback-requested", "target-replaced"]


def test_whole_refusals_come_in_their_order() -> None:
    """Each remedy leads to the next refusal: another cluster, unavailable, closed plan."""
    closed = state_after([*MISMATCH, opened(), FINISHED])
    assert closed.plans["p"].status is PlanStatus.FINISHED
    unseen = facts(unavailable="no route")
    assert codes(decide(alter({KEY: [9]}, plan="p"), closed, unseen)) == ["cluster-changed"]
    there = state_after([opened(), FINISHED])
    assert codes(decide(alter({KEY: [9]}, plan="p"), there, unseen)) == ["cluster-unavailable"]
    assert codes(decide(alter({KEY: [9]}, plan="p"), there, facts())) == ["plan-closed"]
    assert codes(decide(alter({KEY: [9]}), there, facts())) == ["invalid-replica-assignment"]


def test_refusals_of_a_partition_come_in_their_order() -> None:
    """Each fact mended leads to the next refusal."""
    everything = facts({KEY: None}, own_topics=OwnTopics(frozenset({KEY.topic}), may_move=True), min_isr={KEY.topic: 2})
    wrong = {"allow_replication_factor_change": False, "originals": {KEY: (9,)}}
    assert codes(decide(alter({KEY: [9]}, **wrong), state_after(), everything)) == ["drover-topic"]
    wrong["allow_drover_topics"] = True
    assert codes(decide(alter({KEY: [9]}, **wrong), state_after(), everything)) == ["drover-topic"]
    assert codes(decide(alter({KEY: [7, 8, 9]}, **wrong), state_after(), everything)) == ["unknown-topic-or-partition"]
    there = facts({KEY: moving()}, min_isr={KEY.topic: 2})
    assert codes(decide(alter({KEY: [9]}, **wrong), state_after(), there)) == ["invalid-replica-assignment"]
    assert codes(decide(alter({KEY: [1]}, **wrong), state_after(), there)) == ["invalid-replication-factor"]
    assert codes(decide(alter({KEY: [5, 1, 2, 3]}, **wrong), state_after(), there)) == ["unmanaged-move"]
    idle = facts({KEY: sight()})
    assert codes(decide(alter({KEY: [5, 1, 2]}, **wrong), state_after(), idle)) == ["original-replicas-differ"]


@pytest.mark.parametrize("ending", [FINISHED, CANCELLED])
def test_a_closed_plans_name_is_never_opened_again(ending: PlanFinished | PlanCancelled) -> None:
    state = state_after([opened(), ending])
    assert codes(decide(alter({KEY: [4, 2, 1]}, plan="p"), state, facts())) == ["plan-closed"]


# -- plans


def test_an_open_plan_takes_more() -> None:
    decision = decide(alter({OTHER: [4, 3, 1]}, plan="p"), copying(), facts())
    assert tags(decision.events) == ["plan-extended", "reassignment-created"]


def test_a_plan_hears_that_more_will_follow_and_then_that_it_will_not() -> None:
    first = decide(alter({KEY: [4, 2, 1]}, plan="q", more=True), state_after(), facts())
    state = state_after(first.events)
    assert state.plans["q"].more
    last = decide(alter({OTHER: [9]}, plan="q"), state, facts())
    for event in last.events:
        apply(state, event, 2000)
    assert not state.plans["q"].more


def test_the_last_accepted_throttle_of_a_plan_holds() -> None:
    """TV-164: a second command with the same target changes the rate of what runs."""
    again = decide(alter({KEY: [4, 2, 1]}, plan="p", throttle_bytes_per_second=9), copying(), facts())
    assert PlanThrottleSet(cluster=CLUSTER, plan="p", bytes_per_second=9) in again.events
    state = copying()
    for event in again.events:
        apply(state, event, 2000)
    assert state.plans["p"].throttle_bytes_per_second == 9
    without = decide(alter({OTHER: [4, 3, 1]}, plan="p"), state, facts())
    assert "plan-throttle-set" not in tags(without.events)


def test_a_command_of_which_nothing_is_accepted_changes_no_throttle() -> None:
    decision = decide(alter({OTHER: [99]}, plan="p", throttle_bytes_per_second=1), copying(), facts())
    assert decision.refused
    assert "plan-throttle-set" not in tags(decision.events)
