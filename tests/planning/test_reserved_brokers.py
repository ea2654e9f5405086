"""Brokers that an open plan empties or fills get nothing from another proposal, which says by whose plan."""

import pytest

from drover.planner.assess import assess
from drover.planner.goals import (
    Add,
    Balance,
    Drain,
    Evacuate,
    Goal,
    Heal,
    Leaders,
    Replace,
    SetReplicationFactor,
    Spread,
)
from drover.planner.judgement import broken
from drover.planner.model import Broker, ClusterModel, Partition
from drover.planner.proposal import UnmetCode
from drover.planner.propose import propose

DRAIN_3, ADD_6 = "plan drain-3 (ana)", "plan add-6 (bob)"
BROKERS = (
    Broker(1, "a"),
    Broker(2, "b"),
    Broker(3, "c", emptied_by=DRAIN_3),
    Broker(4, "a"),
    Broker(5, "b"),
    Broker(6, "c", filled_by=ADD_6),
)
PARTITIONS = tuple(
    Partition("t", number, replicas, replicas[0], replicas, 10)
    for number, replicas in enumerate([(1, 2), (2, 1), (1, 2), (2, 1), (1, 2), (2, 4), (1, 3)])
)
MODEL = ClusterModel.of(BROKERS, PARTITIONS)


@pytest.mark.parametrize(
    "goal",
    [
        Drain((2,)),
        Add((4, 5)),
        Replace(1, 4),
        Balance(),
        SetReplicationFactor(("t",), 3),
        Evacuate("b"),
        Spread(),
        Leaders(),
        Heal((2,)),
    ],
)
def test_no_goal_sends_anything_to_a_broker_that_another_plan_empties_or_fills(goal: Goal) -> None:
    proposal = propose(MODEL, goal)
    assert not proposal.refused
    assert {3, 6}.isdisjoint(broker for move in proposal.moves for broker in move.adding)
    told = [one.text for one in proposal.unmet if one.code is UnmetCode.LEFT_OUT]
    assert told == [f"broker 3 gets nothing: {DRAIN_3} empties it", f"broker 6 gets nothing: {ADD_6} fills it"]
    assert not any(one.code is UnmetCode.LEFT_OUT for one in broken(proposal.unmet))


def test_who_names_such_a_broker_hears_whose_plan_it_is() -> None:
    for goal in (Add((6,)), Replace(1, 6)):
        proposal = propose(MODEL, goal)
        assert proposal.refused
        assert [(one.code, one.text) for one in proposal.unmet] == [
            (UnmetCode.RESERVED, f"broker 6 gets nothing from others while {ADD_6} fills it")
        ]


def test_a_plan_of_others_with_a_copy_to_such_a_broker_breaks_a_rule() -> None:
    (problem,) = broken(assess(MODEL, {("t", 0): (1, 3)}).unmet)
    assert (problem.code, problem.broker) == (UnmetCode.RESERVED, 3)
    assert problem.text == f"t:0: broker 3 gets nothing from others while {DRAIN_3} empties it"


def test_a_broker_that_is_being_emptied_counts_in_no_balance() -> None:
    assert propose(MODEL, Leaders()).before.count.lowest == 0.0, "broker 5 has nothing and counts"
    alone = ClusterModel.of([Broker(1), Broker(2), Broker(3, emptied_by=DRAIN_3)], [*PARTITIONS[:4]])
    assert propose(alone, Balance()).before.count.lowest == 1.0


def test_the_broker_itself_may_be_drained_once_more_without_a_word_about_it() -> None:
    proposal = propose(MODEL, Drain((3,)))
    assert [set(move.after) for move in proposal.moves] == [{1, 5}]
    assert [one.broker for one in proposal.unmet if one.code is UnmetCode.LEFT_OUT] == [6]
