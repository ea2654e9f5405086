"""Cancel commands: scopes, what is withdrawn at once, and what a plan's name is afterwards."""

from typing import Any, NoReturn

import pytest

from drover.decide.commands import decide
from drover.decide.decision import Facts
from drover.events.bounds import MAX_TOPICS, fault_of
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanFinished
from drover.events.reassignments import CallLapsed, ReassignmentRolledBack, StepPrepared
from drover.fold.evolve import apply
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.plans import PlanStatus
from tests.growth import processor_seconds
from tests.reassignment.support import (
    CLUSTER,
    KEY,
    OTHER,
    accepted,
    cancel,
    codes,
    copying,
    intended,
    opened,
    queued,
    state_after,
    tags,
)

PAYMENTS = TopicPartition("payments", 0)
NO_FACTS = Facts()


def three() -> ClusterState:
    """KEY copies in plan p, OTHER is queued in plan p, PAYMENTS copies in plan q."""
    return state_after(
        [
            opened("p"),
            opened("q"),
            queued(),
            queued(OTHER, (2, 3, 1), (4, 3, 1)),
            queued(PAYMENTS, (1, 2, 3), (4, 2, 1), "q"),
            intended(),
            accepted(),
            intended(key=PAYMENTS),
            accepted(key=PAYMENTS),
        ]
    )


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({"all": True}, (KEY, OTHER, PAYMENTS)),
        ({"plan": "p"}, (KEY, OTHER)),
        ({"topics": ("orders",)}, (KEY, OTHER)),
        ({"topics": ("payments", "payments")}, (PAYMENTS,)),
    ],
)
def test_a_scope_names_all_that_has_not_ended(scope: dict[str, object], expected: tuple[TopicPartition, ...]) -> None:
    """R236-6: scopes are resolved when decided and include what is queued."""
    assert decide(cancel(**scope), three(), NO_FACTS).accepted == expected


def test_partitions_are_cancelled_one_by_one_and_a_repeated_one_once() -> None:
    decision = decide(cancel(KEY, KEY, TopicPartition("orders", 9)), three(), NO_FACTS)
    assert decision.accepted == (KEY,)
    assert codes(decision) == ["no-reassignment-in-progress"]
    assert tags(decision.events) == ["rollback-requested"]


def test_a_topic_that_is_not_moving_is_named_in_the_refusal() -> None:
    decision = decide(cancel(topics=("nothing", "orders")), three(), NO_FACTS)
    assert [(refusal.topic, refusal.partition) for refusal in decision.refusals] == [("nothing", None)]
    assert decision.accepted == (KEY, OTHER)
    assert decide(cancel(topics=("nothing",)), three(), NO_FACTS).refused


def test_what_is_queued_ends_at_once() -> None:
    decision = decide(cancel(OTHER), three(), NO_FACTS)
    assert tags(decision.events) == ["rollback-requested", "reassignment-rolled-back"]
    ended = decision.events[-1]
    assert isinstance(ended, ReassignmentRolledBack)
    assert (ended.replicas, ended.started) == ((2, 3, 1), False)


def prepared(number: int = 1) -> StepPrepared:
    return StepPrepared(
        cluster=CLUSTER, topic=OTHER.topic, partition=OTHER.partition, step=number, final=True,
        expected=(2, 3, 1), replicas=(4, 3, 1), leader=2,
    )  # fmt: skip


def test_what_waits_for_its_throttle_before_the_first_call_ends_at_once() -> None:
    state = three()
    apply(state, prepared(), 2000)
    decision = decide(cancel(OTHER), state, NO_FACTS)
    ended = decision.events[-1]
    assert isinstance(ended, ReassignmentRolledBack)
    assert not ended.started


def test_what_waits_for_a_later_step_is_taken_back_by_calls() -> None:
    state = three()
    apply(state, prepared(2), 2000)
    decision = decide(cancel(OTHER), state, NO_FACTS)
    assert tags(decision.events) == ["step-postponed", "rollback-requested"]
    for event in decision.events:
        apply(state, event, 3000)
    assert state.reassignments[OTHER].phase is Phase.ROLLING_BACK
    assert not state.reassignments[OTHER].own_lists(3000), "the step was not sent: whoever moves it there is not fought"


def test_a_call_that_is_open_is_waited_for() -> None:
    state = state_after([opened(), queued(), intended()])
    for event in decide(cancel(KEY), state, NO_FACTS).events:
        apply(state, event, 2000)
    assert state.reassignments[KEY].phase is Phase.INTENDED
    apply(state, accepted(), 2000)
    assert state.reassignments[KEY].phase is Phase.ROLLING_BACK


def test_a_call_that_lapses_after_the_cancel_leads_to_the_way_back() -> None:
    state = state_after([opened(), queued(), intended()])
    for event in decide(cancel(KEY), state, NO_FACTS).events:
        apply(state, event, 2000)
    apply(state, CallLapsed(cluster=CLUSTER, topic="orders", partition=0, call=intended().call, detail="d"), 2000)
    assert state.reassignments[KEY].phase is Phase.ROLLING_BACK


def test_a_second_cancel_changes_nothing() -> None:
    state = copying()
    for event in decide(cancel(KEY), state, NO_FACTS).events:
        apply(state, event, 2000)
    again = decide(cancel(all=True), state, NO_FACTS)
    assert (again.unchanged, again.accepted, again.events) == ((KEY,), (), ())
    assert not again.refused


def test_cancelling_all_of_nothing_is_no_refusal() -> None:
    """The KIP-455 gap: cancel-all on an idle cluster succeeds with no entries."""
    decision = decide(cancel(all=True), state_after(), NO_FACTS)
    assert not decision.refusals
    assert decision.events == ()


def test_cancelling_a_plan_closes_its_name_even_while_it_waits_for_more() -> None:
    state = three()
    for event in decide(cancel(plan="p"), state, NO_FACTS).events:
        apply(state, event, 2000)
    assert state.plans["p"].status is PlanStatus.CANCELLED
    again = decide(cancel(plan="p"), state, NO_FACTS)
    assert again.unchanged == (KEY,)
    assert "plan-cancelled" not in tags(again.events)


def test_a_plan_that_nobody_knows_or_that_has_finished_is_refused() -> None:
    assert codes(decide(cancel(plan="x"), three(), NO_FACTS)) == ["unknown-plan"]
    finished = PlanFinished(cluster=CLUSTER, plan="p", completed=0, rolled_back=0, failed=0)
    state = state_after([opened(), finished])
    assert codes(decide(cancel(plan="p"), state, NO_FACTS)) == ["plan-closed"]


def seconds_for(topics: int, state: ClusterState) -> float:
    """Return the processor time of a cancel that names so many topics, of which one is being moved."""
    command = cancel(topics=(KEY.topic, *(f"unknown-{number}" for number in range(topics - 1))))
    decision = decide(command, state, NO_FACTS)
    assert (decision.accepted, len(decision.refusals)) == ((KEY,), topics - 1)
    return processor_seconds(lambda: decide(command, state, NO_FACTS))


def test_a_cancel_of_topics_costs_what_it_names_and_what_moves_but_not_the_product() -> None:
    """With 100,000 topics and 10,000 moves that was a minute, in which the watchdog ended each owner."""
    others = (TopicPartition(f"topic-{number}", 0) for number in range(10_000))
    state = state_after([opened(), queued(), *(queued(key) for key in others)])
    assert seconds_for(MAX_TOPICS, state) < 50 * seconds_for(1, state)


def test_more_topics_than_a_record_can_refuse_are_malformed() -> None:
    """Each unknown topic is a refusal, and all of them stand in one record."""
    topics = tuple(f"topic-{number}" for number in range(MAX_TOPICS + 1))
    assert "1001" in (fault_of(cancel(topics=topics)) or "")
    assert fault_of(cancel(topics=topics[1:])) is None


class Unscanned(dict[Any, Any]):
    """Nobody goes through all of it."""

    def __iter__(self) -> NoReturn:
        raise AssertionError("everything that moves was looked through for one partition")


def test_a_cancel_of_a_partition_costs_the_same_however_many_move() -> None:
    """A MiB of them, where 60,000 moved, held the owner up for more than the watchdog's 20 s."""
    state = three()
    state.reassignments, state.queue = Unscanned(state.reassignments), Unscanned(state.queue)
    decision = decide(cancel(KEY), state, NO_FACTS)
    assert decision.accepted == (KEY,)
