"""The queue of KIP-236: who gets in, who is taken when, and how an entry leaves."""

from typing import Any

import msgspec
import pytest

from drover.decide.commands import decide
from drover.decide.decision import Decision, Facts, OwnTopics
from drover.decide.queue_entries import take
from drover.events.clusters import ClusterFrozen, LimitsSet
from drover.events.commands import Alter, Cancel, PartitionTarget
from drover.events.partitions import TopicPartition
from drover.events.queue_entries import QueueEntryRemoved
from drover.events.reassignments import Blocker, ReassignmentBlocked
from drover.events.unmanaged import UnmanagedMoveSeen
from drover.facts import Move
from drover.fold.evolve import apply
from drover.reconcile.gates import entry_passed_over, queue_closed
from drover.state.cluster import ClusterState
from drover.state.scheduling import Limits
from tests.reassignment.support import (
    CLUSTER,
    KEY,
    OTHER,
    TOPIC_ID,
    alter,
    cancel,
    codes,
    copying,
    facts,
    moving,
    queued,
    requested,
    sight,
    state_after,
    tags,
)

THIRD = TopicPartition("payments", 0)
ALL_SEEN = facts({KEY: sight(), OTHER: sight((2, 3, 1)), THIRD: sight()})


def tell(state: ClusterState, command: Alter | Cancel) -> Decision:
    decision = decide(command, state, ALL_SEEN)
    for event in decision.events:
        apply(state, event, 2000)
    return decision


def put(
    targets: dict[TopicPartition, list[int] | None], state: ClusterState | None = None, **fields: Any
) -> ClusterState:
    """Put partitions into the queue, under plan and id q."""
    state = state_after() if state is None else state
    tell(state, alter(targets, **{"id": "q", "queue": True, **fields}))
    return state


def taken(state: ClusterState, known: Facts, key: TopicPartition = KEY) -> list[str]:
    events = take(key, state, known)
    for event in events:
        apply(state, event, 3000)
    return tags(events)


def counts(state: ClusterState, plan: str = "q") -> tuple[int, int, int]:
    found = state.plans[plan]
    return found.active, found.waiting, found.withdrawn


# -- in


def test_every_partition_waits_by_itself_and_is_checked_at_its_turn() -> None:
    """R236-12."""
    state = state_after()
    decision = tell(state, alter({KEY: [4, 2, 1], OTHER: [9, 2, 1]}, id="q", queue=True, throttle_bytes_per_second=7))
    assert tags(decision.events) == ["plan-opened", "plan-throttle-set", "queue-entry-added", "queue-entry-added"]
    assert decision.accepted == (KEY, OTHER)
    assert counts(state) == (0, 2, 0)
    assert state.plans["q"].throttle_bytes_per_second == 7
    assert [entry.id for entry in state.queue.values()] == ["q", "q"]


def test_what_is_wrong_whatever_the_cluster_looks_like_is_refused_at_once() -> None:
    own = msgspec.structs.replace(ALL_SEEN, own_topics=OwnTopics(frozenset({THIRD.topic})))
    decision = decide(alter({KEY: [], OTHER: [1, 1], THIRD: [1, 2]}, queue=True), state_after(), own)
    assert codes(decision) == ["invalid-replica-assignment", "invalid-replica-assignment", "drover-topic"]


def test_a_later_entry_of_the_same_partition_takes_the_place_of_the_first_at_the_end() -> None:
    state = put({KEY: [4, 2, 1], OTHER: [4, 3, 1]})
    decision = tell(state, alter({KEY: [5, 2, 1]}, id="later", queue=True))
    assert tags(decision.events) == ["plan-opened", "queue-entry-removed", "queue-entry-added"]
    assert list(state.queue) == [OTHER, KEY]
    assert (counts(state), counts(state, "later")) == ((0, 1, 1), (0, 1, 0))


def test_a_null_beside_queued_partitions_stops_at_once() -> None:
    state = put({KEY: None, OTHER: [4, 3, 1]}, copying())
    assert list(state.queue) == [OTHER]
    assert state.reassignments[KEY].is_cancelled


# -- the turn


def test_an_entry_waits_for_what_was_accepted_before_it_unless_that_is_blocked() -> None:
    state = put({KEY: [4, 2, 1]})
    state.kafka_cluster_id = None
    assert str(queue_closed(state)) == "the cluster has not answered yet: its first answer"
    state.kafka_cluster_id = "kafka"
    assert queue_closed(state) is None
    apply(state, queued(OTHER, (2, 3, 1), (4, 3, 1), "q"), 2000)
    assert str(queue_closed(state)) == "its turn: 1 accepted before have not started"
    blocked = ReassignmentBlocked(
        cluster=CLUSTER, topic=OTHER.topic, partition=OTHER.partition, why=Blocker.NO_LEADER, detail="d"
    )
    apply(state, blocked, 2000)
    assert queue_closed(state) is None


def test_an_entry_waits_for_a_slot_and_for_the_unfreeze() -> None:
    state = put({OTHER: [4, 3, 1]}, copying())
    state.kafka_cluster_id = "kafka"
    limits = Limits(max_partitions_in_flight=1)
    apply(
        state,
        LimitsSet(
            cluster=CLUSTER,
            max_partitions_in_flight=1,
            max_moves_per_broker=limits.max_moves_per_broker,
            max_replicas_per_step=1,
        ),
        2000,
    )
    assert str(queue_closed(state)) == (
        "a slot of the cluster (1 of 1 partitions in flight): the end of one of them (max_partitions_in_flight is 1)"
    )
    apply(state, ClusterFrozen(cluster=CLUSTER, by="ann", reason="incident"), 2000)
    assert str(queue_closed(state)) == "withheld, frozen by ann (incident): `drover unfreeze`"


def test_a_partition_that_does_not_move_is_queued_from_what_is_seen_then() -> None:
    state = put({KEY: [4, 2, 1]})
    assert taken(state, facts({KEY: sight((3, 2, 1))})) == ["queue-entry-removed", "reassignment-created"]
    assert state.reassignments[KEY].original == (3, 2, 1)
    assert counts(state) == (1, 0, 0)


def test_a_partition_that_moves_is_taken_back_first() -> None:
    """R236-12, X18."""
    state = put({KEY: [5, 2, 1]}, copying())
    assert entry_passed_over(KEY, state) is None
    assert taken(state, facts({})) == ["queue-entry-removed", "rollback-requested", "target-replaced"]
    assert counts(state) == (0, 1, 0)
    replacement = state.reassignments[KEY].replacement
    assert replacement is not None
    assert (replacement.plan, replacement.target) == ("q", (5, 2, 1))


def test_a_move_to_the_very_list_is_waited_for_and_then_the_entry_is_done() -> None:
    state = put({KEY: [4, 2, 1]}, copying())
    assert str(entry_passed_over(KEY, state)) == "its move to that very list in plan p: its end"
    idle = put({KEY: [1, 2, 3]})
    assert taken(idle, facts()) == ["queue-entry-removed", "reassignment-created", "reassignment-completed"]
    assert (counts(idle), idle.plans["q"].completed) == ((0, 0, 0), 1)


def test_a_target_that_waits_already_is_waited_for() -> None:
    state = copying()
    apply(state, requested(), 2000)
    decision = decide(alter({KEY: [5, 2, 1]}, plan="r"), state, facts())
    for event in decision.events:
        apply(state, event, 2000)
    put({KEY: [5, 2, 1]}, state)
    assert str(entry_passed_over(KEY, state)) == "its move to that very list in plan r: its end"


def test_an_unmanaged_move_is_waited_for() -> None:
    """S11."""
    state = put({KEY: [5, 2, 1]})
    assert taken(state, facts({KEY: moving()})) == []
    assert taken(state, facts(moves={KEY: Move((4, 2, 1, 3), (4,), (3,))})) == []
    assert list(state.queue) == [KEY]
    seen = UnmanagedMoveSeen(
        cluster=CLUSTER, topic=KEY.topic, partition=KEY.partition, replicas=(4, 2, 1, 3), adding=(4,), removing=(3,)
    )
    apply(state, seen, 2000)
    assert str(entry_passed_over(KEY, state)) == "somebody else's move of the partition: its end"


@pytest.mark.parametrize(
    ("target", "fields", "seen", "code"),
    [
        ([9, 2, 1], {}, sight(), "invalid-replica-assignment"),
        ([4, 2], {"allow_replication_factor_change": False}, sight(), "invalid-replication-factor"),
        ([4, 2, 1], {"originals": {KEY: (3, 2, 1)}}, sight(), "original-replicas-differ"),
    ],
)
def test_what_an_alter_would_be_refused_for_is_refused_when_its_turn_comes(
    target: list[int], fields: dict[str, Any], seen: Any, code: str
) -> None:
    state = put({KEY: target}, **fields)
    (event,) = take(KEY, state, facts({KEY: seen}))
    assert isinstance(event, QueueEntryRemoved)
    assert event.why == "refused"
    assert event.detail.startswith(code)
    apply(state, event, 3000)
    assert (counts(state), state.plans["q"].is_idle) == ((0, 0, 1), True)


def test_an_entry_remembers_the_incarnation_of_its_topic_and_moves_no_other() -> None:
    """Promise 10. It stays until it is certain that no broker with old metadata has shown another incarnation."""
    state = put({KEY: [4, 2, 1]})
    assert state.queue[KEY].topic_id == TOPIC_ID
    assert take(KEY, state, facts({KEY: sight(topic_id="made anew")})) == ()
    assert take(KEY, state, facts({KEY: None})) == ()
    assert take(KEY, state, facts({KEY: sight()})) != ()


def test_an_entry_of_a_moving_partition_is_of_the_incarnation_that_moves() -> None:
    state = put({KEY: [5, 2, 1]}, copying())
    assert state.queue[KEY].topic_id == state.reassignments[KEY].topic_id == TOPIC_ID


def test_what_does_not_exist_does_not_enter_the_queue() -> None:
    decision = decide(alter({KEY: [4, 2, 1]}, queue=True), state_after(), facts({KEY: None}))
    assert codes(decision) == ["unknown-topic-or-partition"]


def test_an_alter_may_assert_which_incarnation_it_means() -> None:
    """Promise 10, for `alter --undo`."""
    meant = Alter(
        id="undo",
        cluster=CLUSTER,
        by="ana",
        reason="r",
        partitions=(PartitionTarget(topic=KEY.topic, partition=KEY.partition, replicas=(4, 2, 1), topic_id=TOPIC_ID),),
    )
    assert decide(meant, state_after(), facts()).accepted == (KEY,)
    anew = facts({KEY: sight(topic_id="made anew")})
    assert codes(decide(meant, state_after(), anew)) == ["inconsistent-topic-id"]
    queued_up = msgspec.structs.replace(meant, queue=True)
    assert codes(decide(queued_up, state_after(), anew)) == ["inconsistent-topic-id"]


# -- out


def test_a_later_alter_of_the_same_partition_wins_over_an_earlier_entry() -> None:
    state = put({KEY: [4, 2, 1], OTHER: [4, 3, 1]})
    decision = tell(state, alter({KEY: [5, 2, 1]}, id="now"))
    assert tags(decision.events) == ["plan-opened", "queue-entry-removed", "reassignment-created"]
    assert list(state.queue) == [OTHER]
    assert counts(state) == (0, 1, 1)


def test_a_later_alter_to_where_the_partition_is_wins_too() -> None:
    state = put({KEY: [4, 2, 1]})
    decision = tell(state, alter({KEY: [1, 2, 3]}, id="stay"))
    assert (decision.unchanged, list(state.queue)) == ((KEY,), [])


def test_a_later_alter_that_is_refused_leaves_the_entry() -> None:
    state = put({KEY: [4, 2, 1]})
    assert codes(tell(state, alter({KEY: [99, 2, 1]}, id="wrong"))) == ["invalid-replica-assignment"]
    assert list(state.queue) == [KEY]


@pytest.mark.parametrize("moves", [False, True])
def test_a_null_withdraws_the_entry_of_its_partition(moves: bool) -> None:
    """R455-1 says nothing of queues: null asks for no move, whether it has begun or waits."""
    state = put({KEY: [5, 2, 1]}, copying() if moves else None)
    decision = tell(state, alter({KEY: None}, id="null"))
    assert (decision.accepted, list(state.queue)) == ((KEY,), [])
    assert counts(state) == (0, 0, 1)
    assert [reassignment.is_cancelled for reassignment in state.reassignments.values()] == [True] * moves


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        ({"queued": "q"}, [THIRD]),
        ({"plan": "q"}, [THIRD]),
        ({"topics": ("orders",)}, [THIRD]),
        ({"all": True}, []),
    ],
)
def test_scopes_withdraw_what_is_in_the_queue(scope: dict[str, Any], left: list[TopicPartition]) -> None:
    """R236-12: shown and withdrawn by id, and by every other scope."""
    state = put({KEY: [4, 2, 1], OTHER: [4, 3, 1]})
    put({THIRD: [4, 3, 1]}, state, id="else")
    decision = tell(state, cancel(**scope))
    assert list(state.queue) == left
    assert set(decision.accepted) == {KEY, OTHER, THIRD} - set(left)
    assert counts(state) == (0, 0, 2)


def test_partitions_are_withdrawn_by_name_together_with_their_moves() -> None:
    state = put({KEY: [5, 2, 1], OTHER: [4, 3, 1]}, copying())
    decision = tell(state, cancel(KEY))
    assert tags(decision.events) == ["queue-entry-removed", "rollback-requested"]
    assert decision.accepted == (KEY,)
    assert list(state.queue) == [OTHER]


def test_a_plan_scope_leaves_another_plans_entry_of_its_partition_alone() -> None:
    state = put({KEY: [5, 2, 1]}, copying())
    assert tags(tell(state, cancel(plan="p")).events) == ["plan-cancelled", "rollback-requested"]
    assert list(state.queue) == [KEY]


def test_a_stop_that_only_withdraws_is_accepted() -> None:
    state = copying()
    tell(state, cancel(KEY))
    put({KEY: [5, 2, 1]}, state)
    decision = tell(state, cancel(KEY, mode="stop"))
    assert (tags(decision.events), decision.accepted, decision.refusals) == (["queue-entry-removed"], (KEY,), ())


def test_an_id_of_which_nothing_waits_is_refused() -> None:
    assert codes(tell(put({KEY: [4, 2, 1]}), cancel(queued="other"))) == ["no-reassignment-in-progress"]
