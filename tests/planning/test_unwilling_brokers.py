"""Brokers that may not receive replicas, or cannot lead, do not spoil the racks or the leaders of the others."""

from collections.abc import Sequence

import pytest

from drover.planner.assess import assess
from drover.planner.goals import Balance, Drain, Goal, Leaders, Spread
from drover.planner.model import Broker, ClusterModel, LogDir, Partition
from drover.planner.proposal import UnmetCode
from drover.planner.propose import propose

UNWILLING = (
    Broker(6, "c", excluded=True),
    Broker(6, "c", held=True),
    Broker(6, "c", failing=True),
    Broker(6, "c", unreachable=True),
    Broker(6, "c", log_dirs=(LogDir("/data", cordoned=True),)),
)


def cluster(lists: Sequence[tuple[int, ...]], last: Broker) -> ClusterModel:
    """Make a cluster of two racks with two brokers, and one whose only broker may not receive; broker 4 is loaded."""
    brokers = [Broker(1, "a"), Broker(2, "b"), Broker(3, "b"), Broker(4, "a"), last]
    partitions = [Partition("t", number, each, each[0], each, 1000) for number, each in enumerate(lists)]
    partitions += [Partition("u", number, (4,), 4, (4,), 1000) for number in range(40)]
    return ClusterModel.of(brokers, partitions)


@pytest.mark.parametrize("last", UNWILLING, ids=["excluded", "held", "failing", "unreachable", "cordoned"])
@pytest.mark.parametrize("goal", [Balance(), Drain((1,))], ids=["balance", "drain"])
def test_no_rack_is_lost_because_its_only_broker_may_not_receive(goal: Goal, last: Broker) -> None:
    model = cluster([(1, 2, 6)] * 20 + [(4, 2, 6)] * 20, last)
    racks = {broker.id: broker.rack for broker in model.brokers}
    moves = [move for move in propose(model, goal).moves if move.topic == "t"]
    assert moves
    assert all(len({racks[broker] for broker in move.after}) == 3 for move in moves)


def test_a_partition_is_spread_over_the_rack_of_an_excluded_broker_too() -> None:
    proposal = propose(cluster([(1, 4, 6)], UNWILLING[0]), Spread())
    (move,) = proposal.moves
    assert set(move.after) & {2, 3}
    assert (6 in move.after, len(move.adding)) == (True, 1)
    assert (proposal.rack_violations_before, proposal.rack_violations_after) == (1, 0)


def test_a_plan_that_gives_up_the_rack_of_another_replica_is_judged_as_one_that_loses_a_rack() -> None:
    judged = assess(cluster([(1, 2, 6)], UNWILLING[0]), {("t", 0): (3, 2, 6)})
    assert [one.code for one in judged.unmet] == [UnmetCode.RACK_SPREAD]


@pytest.mark.parametrize(
    ("idle", "named"), [(Broker(4, excluded=True), []), (Broker(4), [4])], ids=["excluded", "without replicas"]
)
def test_leaders_are_evened_out_although_a_broker_cannot_lead(idle: Broker, named: list[int]) -> None:
    lists = [(1, 2, 3)] * 150 + [(2, 3, 1)] * 100 + [(3, 1, 2)] * 50
    partitions = [Partition("t", number, each, each[0], each, 1000) for number, each in enumerate(lists)]
    proposal = propose(ClusterModel.of([Broker(1), Broker(2), Broker(3), idle], partitions), Leaders())
    leaders = {each.broker: each.leaders_after for each in proposal.brokers}
    assert all(96 <= leaders[broker] <= 104 for broker in (1, 2, 3)), leaders
    assert [one.broker for one in proposal.unmet] == named
    assert all("near 100.0" in one.text for one in proposal.unmet)
