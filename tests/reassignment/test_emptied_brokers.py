"""Brokers that an open plan empties: no other command sends new replicas to them, unless it says that this is meant."""

import pytest

from drover.decide.commands import decide
from drover.decide.queue_entries import take
from drover.events.commands import Alter
from drover.events.plans import PlanCancelled, PlanExtended, PlanFinished, PlanOpened
from drover.events.queue_entries import QueueEntryRemoved, QueueExit
from drover.events.records import AnyEvent
from drover.fold.evolve import apply
from drover.reconcile.healing.brokers_to_heal import gather_brokers_to_heal
from drover.state.cluster import ClusterState
from drover.state.plans import PlanGoal
from tests.reassignment.support import CLUSTER, KEY, OTHER, alter, codes, facts, state_after

DRAIN_5 = PlanOpened(cluster=CLUSTER, plan="drain-5", by="ana", reason="r", empties=(5,), fills=(6,))
FINISHED = PlanFinished(cluster=CLUSTER, plan="drain-5", completed=1, rolled_back=0, failed=0)
CANCELLED = PlanCancelled(cluster=CLUSTER, plan="drain-5", by="bob", reason="r")


def after(command: Alter, state: ClusterState) -> ClusterState:
    """Return the state that a decision leads to."""
    for event in decide(command, state, facts()).events:
        apply(state, event, 1000)
    return state


def test_a_new_replica_on_a_broker_that_an_open_plan_empties_is_refused_by_name_and_with_a_remedy() -> None:
    decision = decide(alter({KEY: [1, 2, 5], OTHER: [2, 3, 4]}), state_after([DRAIN_5]), facts())
    assert (decision.accepted, codes(decision)) == ((OTHER,), ["broker-emptied"])
    (refusal,) = decision.refusals
    assert refusal.detail == (
        "orders:0: broker 5 gets no further replicas while plan drain-5 (ana) empties it: plan again without it, "
        "cancel that plan, or set allow_emptied_brokers (--allow-emptied-brokers)"
    )
    assert decide(alter({KEY: [1, 2, 5]}, allow_emptied_brokers=True), state_after([DRAIN_5]), facts()).accepted


def test_a_replica_that_is_there_may_stay_and_a_broker_that_is_filled_is_refused_to_nobody() -> None:
    state = state_after([PlanOpened(cluster=CLUSTER, plan="p", by="ana", reason="r", empties=(3,), fills=(6,))])
    assert decide(alter({KEY: [4, 2, 3], OTHER: [6, 3, 1]}), state, facts()).accepted == (KEY, OTHER)


@pytest.mark.parametrize("end", [FINISHED, CANCELLED])
def test_a_plan_that_is_over_empties_nothing(end: AnyEvent) -> None:
    state = state_after([DRAIN_5, end])
    assert (state.plans_emptying, state.plans_filling, state.goals) == ({}, {}, {})
    assert decide(alter({KEY: [1, 2, 5]}), state, facts()).accepted == (KEY,)


def test_the_goals_of_all_commands_of_a_plan_count() -> None:
    state = after(alter({KEY: [4, 2, 3]}, id="a", plan="p", empties=(1,)), state_after())
    state = after(alter({OTHER: [4, 3, 1]}, id="b", plan="p", empties=(2, 1), fills=(6,)), state)
    assert state.goals == {"p": PlanGoal((1, 2), (6,))}
    assert (state.plans_emptying, state.plans_filling) == ({1: "p", 2: "p"}, {6: "p"})


def test_a_command_of_which_nothing_is_accepted_empties_nothing() -> None:
    state = after(alter({KEY: [4, 2, 3]}, id="a", plan="p"), state_after())
    assert after(alter({OTHER: [9]}, plan="p", empties=(1,)), state).goals == {}
    assert after(alter({OTHER: [9]}, plan="q", empties=(1,)), state).goals == {}


@pytest.mark.parametrize(("allowed", "why"), [(False, QueueExit.REFUSED), (True, QueueExit.STARTED)])
def test_an_entry_of_the_queue_is_judged_at_its_turn(*, allowed: bool, why: QueueExit) -> None:
    state = after(alter({KEY: [1, 2, 5]}, queue=True, allow_emptied_brokers=allowed), state_after())
    assert KEY in state.queue
    apply(state, DRAIN_5, 1000)
    removed = next(event for event in take(KEY, state, facts()) if isinstance(event, QueueEntryRemoved))
    assert removed.why is why
    assert allowed or removed.detail.startswith("broker-emptied: orders:0: broker 5 gets no further replicas")


def test_a_heal_spares_a_broker_that_an_open_plan_empties_also_before_anything_of_it_moves() -> None:
    state = state_after([DRAIN_5, PlanExtended(cluster=CLUSTER, plan="drain-5", empties=(6,))])
    assert gather_brokers_to_heal(state, (1,), {1}).spared == {5, 6}
