"""The work of a plan grows with the cluster, not with its square."""

import pytest

from drover.planner.bands import Bands
from drover.planner.budget import Budget
from drover.planner.goals import Goal, Leaders, Limits
from drover.planner.layout import Layout
from drover.planner.model import Broker, ClusterModel, Partition
from drover.planner.propose import never, propose
from drover.planner.rebalancing import Rebalancing
from drover.planner.trimming import take_back


def candidates_suffice(model: ClusterModel, goal: Goal, work: int) -> bool:
    """Whether the plan is found by trying so many candidates."""
    return not propose(model, goal, Limits(work=work)).interrupted


def test_leaders_that_all_are_on_one_broker_are_handed_on_without_looking_at_all_of_them_each_time() -> None:
    partitions = [Partition("t", number, (1, 2, 3), 1, (1, 2, 3), 1000) for number in range(20_000)]
    model = ClusterModel.of([Broker(1), Broker(2), Broker(3)], partitions)
    assert candidates_suffice(model, Leaders(), 20 * len(partitions))


def test_moves_that_nobody_needs_are_taken_back_without_looking_at_all_of_them_each_time() -> None:
    brokers = range(100)
    partitions = [
        Partition("t", number, (number % 100,), number % 100, (number % 100,), 1000) for number in range(2000)
    ]
    layout = Layout(ClusterModel.of(map(Broker, brokers), partitions), Limits(above=0.5, below=0.5))
    for partition in range(2000):
        layout.replace(partition, partition % 100, (partition + 1) % 100)
    budget = Budget(100 * len(partitions), never)
    bands = Bands(layout, brokers, brokers, only_fill=False)
    run = Rebalancing(bands, brokers, range(2000), budget)
    take_back(run)
    assert (run.items, budget.spent) == ([], False)
    assert list(layout.changed()) == []


def test_who_gives_and_who_takes_is_found_without_looking_at_all_brokers_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    partitions = [
        Partition("t", number, (number % 100,), number % 100, (number % 100,), 1000) for number in range(2000)
    ]
    layout = Layout(ClusterModel.of(map(Broker, range(200)), partitions), Limits())
    bands = Bands(layout, range(200), range(200), only_fill=False)
    looks = 0
    standing = Bands.standing

    def counting(self: Bands, broker: int) -> float:
        nonlocal looks
        looks += 1
        return standing(self, broker)

    monkeypatch.setattr(Bands, "standing", counting)
    run = Rebalancing(bands, range(200), range(2000), Budget(10**7, never))
    run.shed()
    run.fill()
    assert len(run.items) > 900
    assert looks < 3 * (200 + len(run.items))
