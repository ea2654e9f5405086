"""An unreachable broker lives: a proposal gives it nothing, takes nothing from it, and names it with the remedy."""

import pytest

from drover.client.views.proposal_rows import Request, blocking
from drover.planner.assess import assess
from drover.planner.goals import Add, Balance, Drain, Goal, Replace, SetReplicationFactor, Spread
from drover.planner.model import Broker, ClusterModel, Partition
from drover.planner.proposal import UnmetCode
from drover.planner.propose import propose

REMEDY = "add that listener, or give Drover a bootstrap that all brokers offer"


def cluster(*, led_unseen: int = 0) -> ClusterModel:
    """Five brokers of which the third is unreachable and holds most; it leads the first `led_unseen` partitions."""
    brokers = [Broker(number, unreachable=number == 3) for number in range(1, 6)]
    partitions = [Partition("t", number, (1, 2, 3), 1, (1, 2, 3), 1000) for number in range(20)]
    partitions += [
        Partition("u", number, (3, 1, 2), None, (3, 1, 2), 1000, leader_unreachable=True)
        for number in range(led_unseen)
    ]
    return ClusterModel.of(brokers, partitions)


@pytest.mark.parametrize("goal", [Balance(), Drain((1,)), Spread(), Add((4,))], ids=lambda goal: type(goal).__name__)
def test_nothing_is_planned_to_an_unreachable_broker_or_from_it(goal: Goal) -> None:
    proposal = propose(cluster(), goal)
    assert all((3 in move.before) == (3 in move.after) for move in proposal.moves)
    (named,) = [one for one in proposal.unmet if one.code is UnmetCode.LEFT_OUT]
    assert (named.broker, REMEDY in named.text) == (3, True)
    assert named not in blocking(proposal, Request("", None), cluster())


@pytest.mark.parametrize("goal", [Drain((3,)), Replace(3, 4), Add((3,)), Replace(1, 3)], ids=str)
def test_a_goal_that_names_an_unreachable_broker_is_refused_with_the_remedy(goal: Goal) -> None:
    proposal = propose(cluster(), goal)
    assert (proposal.refused, proposal.moves) == (True, ())
    (refusal,) = [one for one in proposal.unmet if one.code is UnmetCode.UNREACHABLE_BROKER]
    assert REMEDY in refusal.text


def test_a_partition_that_an_unreachable_broker_leads_stays_and_is_not_said_to_have_no_leader() -> None:
    proposal = propose(cluster(led_unseen=1), Drain((1,)))
    assert {move.topic for move in proposal.moves} == {"t"}
    (stays,) = [one for one in proposal.unmet if one.code is UnmetCode.OFFLINE]
    assert "its leader is unreachable" in stays.text


def test_a_lower_replication_factor_leaves_the_replica_that_cannot_be_reached() -> None:
    proposal = propose(cluster(), SetReplicationFactor(("t",), 2))
    assert len(proposal.moves) == 20
    assert all(3 in move.after for move in proposal.moves)


def test_a_plan_of_others_that_copies_to_an_unreachable_broker_is_judged_so() -> None:
    model = ClusterModel.of(cluster().brokers, [Partition("t", 0, (1, 2), 1, (1, 2), 1000)])
    judged = assess(model, {("t", 0): (1, 3)})
    assert [one.code for one in judged.unmet] == [UnmetCode.UNREACHABLE_BROKER, UnmetCode.LEFT_OUT]
    assert [one.code for one in blocking(judged, Request("", None), model)] == [UnmetCode.UNREACHABLE_BROKER]
