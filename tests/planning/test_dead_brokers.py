"""Replicas on dead brokers do not count towards the fair share of living brokers."""

import itertools
from collections.abc import Sequence

from drover.planner.goals import DEFAULT_LIMITS, Add, Balance, Leaders
from drover.planner.layout import Layout
from drover.planner.leading import Leading
from drover.planner.model import Broker, ClusterModel, Partition
from drover.planner.proposal import Proposal
from drover.planner.propose import propose


def cluster(living: Sequence[int], dead: Sequence[int], lists: Sequence[tuple[int, ...]]) -> ClusterModel:
    """Make a cluster of these lists; the first living broker of a list leads."""
    partitions = []
    for number, replicas in enumerate(lists):
        isr = tuple(broker for broker in replicas if broker not in dead)
        partitions.append(Partition("t", number, replicas, isr[0] if isr else None, isr, 1000))
    brokers = [*(Broker(number) for number in living), *(Broker(number, alive=False) for number in dead)]
    return ClusterModel.of(brokers, partitions)


def replicas_after(proposal: Proposal) -> dict[int, int]:
    return {each.broker: each.replicas_after for each in proposal.brokers}


def test_a_balance_moves_nothing_where_the_living_brokers_are_even() -> None:
    lists = [(1, 2), (2, 3), (3, 1), (1, 4), (2, 4), (3, 4)] * 10
    proposal = propose(cluster((1, 2, 3), (4,), lists), Balance())
    assert (proposal.moves, proposal.unmet) == ((), ())


def test_a_balance_evens_out_the_living_brokers_by_what_they_hold() -> None:
    lists = [(broker,) for broker, count in ((1, 40), (2, 30), (3, 20), (4, 30), (5, 30)) for _ in range(count)]
    proposal = propose(cluster((1, 2, 3), (4, 5), lists), Balance())
    after = replicas_after(proposal)
    assert all(27 <= after[broker] <= 33 for broker in (1, 2, 3)), after


def test_a_broker_that_has_joined_gets_no_more_because_another_is_dead() -> None:
    even = [(broker,) for broker in range(1, 10) for _ in range(100)]
    living = (*range(1, 10), 11)
    without, with_dead = (propose(cluster(living, (10,), [*even, *[(10,)] * lost]), Add((11,))) for lost in (0, 300))
    assert 0 < without.copies == with_dead.copies
    assert with_dead.complete


def test_leaders_are_balanced_by_what_the_living_brokers_head() -> None:
    lists = [*itertools.permutations((1, 2, 3), 2), *[(4, 1), (4, 2), (4, 3)] * 4] * 5
    model = cluster((1, 2, 3), (4,), lists)
    assert Leading(Layout(model, DEFAULT_LIMITS), ()).mean == 10
    proposal = propose(model, Leaders())
    assert (proposal.moves, proposal.unmet) == ((), ())
