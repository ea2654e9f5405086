"""Kafka refuses every list that names an unregistered broker: no proposal names one."""

import pytest

from drover.planner.goals import Balance, Drain, Goal, SetReplicationFactor
from drover.planner.model import Broker, ClusterModel, Partition
from drover.planner.proposal import UnmetCode
from drover.planner.propose import propose


def cluster(*unregistered: int) -> ClusterModel:
    """Six brokers, of which some are not registered any more, and a partition on the first three."""
    gone = frozenset(unregistered)
    brokers = [Broker(number, alive=number not in gone, unregistered=number in gone) for number in range(1, 7)]
    isr = tuple(broker for broker in (3, 1, 2) if broker not in gone)
    return ClusterModel.of(brokers, [Partition("t", 0, (3, 1, 2), 3, isr, 1000)])


@pytest.mark.parametrize(("factor", "size"), [(2, 2), (3, 3), (4, 4)])
def test_a_replication_factor_counts_no_replica_on_an_unregistered_broker(factor: int, size: int) -> None:
    proposal = propose(cluster(1), SetReplicationFactor(("t",), factor))
    (move,) = proposal.moves
    assert (1 in move.after, len(move.after), set(move.after) >= {3, 2}) == (False, size, True)
    assert proposal.unmet == ()


def test_a_drain_of_all_unregistered_brokers_replaces_them() -> None:
    proposal = propose(cluster(1, 2), Drain((1, 2)))
    (move,) = proposal.moves
    assert (move.after[0], len(move.after)) == (3, 3)
    assert {1, 2}.isdisjoint(move.after)


@pytest.mark.parametrize("goal", [Drain((1,)), Drain((3,))], ids=str)
def test_a_drain_that_would_leave_an_unregistered_broker_in_a_list_names_it_and_the_remedy(goal: Goal) -> None:
    proposal = propose(cluster(1, 2), goal) if goal == Drain((1,)) else propose(cluster(2), goal)
    assert proposal.moves == ()
    (stays,) = [unmet for unmet in proposal.unmet if unmet.partition is not None]
    assert stays.code is UnmetCode.DEAD_BROKER
    assert "Kafka refuses lists that name broker 2, which is not registered any more: drain it as well" in stays.text


def test_a_balance_leaves_such_a_partition_alone() -> None:
    assert propose(cluster(1), Balance()).moves == ()
