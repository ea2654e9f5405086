"""Brokers that should not lead are not put first, and do not share in the leaders."""

import pytest

from drover.planner.goals import Add, Balance, Drain, Goal, Leaders
from drover.planner.model import Broker, ClusterModel, Partition
from drover.planner.proposal import Proposal
from drover.planner.propose import propose

DEMOTED = (Broker(3, demoted=True), Broker(3, demoted_topics=("t",)))
IDS = ["everywhere", "in its topics"]


def planned(goal: Goal, brokers: list[Broker], *lists: tuple[int, ...], times: int = 6) -> Proposal:
    """Plan for a cluster of one topic with these lists, each so many times."""
    every = [each for each in lists for _ in range(times)]
    partitions = [Partition("t", number, each, each[0], each, 1000) for number, each in enumerate(every)]
    return propose(ClusterModel.of(brokers, partitions), goal)


@pytest.mark.parametrize("demoted", DEMOTED, ids=IDS)
def test_no_leader_goes_to_a_broker_that_should_not_lead(demoted: Broker) -> None:
    proposal = planned(Leaders(), [Broker(1), Broker(2), demoted], (1, 2, 3), (2, 1, 3))
    assert proposal.moves == ()


@pytest.mark.parametrize("demoted", DEMOTED, ids=IDS)
def test_the_leaders_of_a_drained_broker_go_to_those_that_should_lead(demoted: Broker) -> None:
    brokers = [Broker(1), Broker(2), demoted, Broker(4)]
    proposal = planned(Drain((4,)), brokers, (4, 2, 3), (4, 1, 3))
    assert len(proposal.moves) == 12
    assert all(move.after[0] != 3 for move in proposal.moves)
    leaders = {each.broker: each.leaders_after for each in proposal.brokers}
    assert leaders == {1: 6, 2: 6, 3: 0, 4: 0}


@pytest.mark.parametrize("goal", [Balance(), Add((3,))], ids=["balance", "add"])
@pytest.mark.parametrize("demoted", DEMOTED, ids=IDS)
def test_a_broker_that_should_not_lead_is_filled_and_leads_nothing(demoted: Broker, goal: Goal) -> None:
    proposal = planned(goal, [Broker(1), Broker(2), demoted], (1, 2), (2, 1), times=30)
    leaders = {each.broker: each.leaders_after for each in proposal.brokers}
    assert all(3 in move.adding and move.after[0] != 3 for move in proposal.moves if move.adding)
    assert proposal.copies > 0
    assert (leaders[3], min(leaders[1], leaders[2]) >= 29) == (0, True)


def test_a_broker_that_should_not_lead_anything_has_no_share_of_the_leaders() -> None:
    proposal = planned(Leaders(), [Broker(1), Broker(2), DEMOTED[0]], (1, 2, 3), times=60)
    assert proposal.complete
    assert {each.broker: each.leaders_after for each in proposal.brokers} == {1: 31, 2: 29, 3: 0}
