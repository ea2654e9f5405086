"""The work of a plan grows with the cluster, not with its square."""

from drover.planning.bands import Bands
from drover.planning.budget import Budget
from drover.planning.goals import Goal, Leaders, Limits
from drover.planning.layout import Layout
from drover.planning.model import Broker, ClusterModel, Partition
from drover.planning.propose import never, propose
from drover.planning.rebalancing import Rebalancing
from drover.planning.trimming import take_back


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
