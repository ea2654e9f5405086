"""The work of a plan grows with the cluster, not with its square."""

from drover.planning.goals import Goal, Leaders, Limits
from drover.planning.model import Broker, ClusterModel, Partition
from drover.planning.propose import propose


def candidates_suffice(model: ClusterModel, goal: Goal, work: int) -> bool:
    """Whether the plan is found by trying so many candidates."""
    return not propose(model, goal, Limits(work=work)).interrupted


def test_leaders_that_all_are_on_one_broker_are_handed_on_without_looking_at_all_of_them_each_time() -> None:
    partitions = [Partition("t", number, (1, 2, 3), 1, (1, 2, 3), 1000) for number in range(20_000)]
    model = ClusterModel.of([Broker(1), Broker(2), Broker(3)], partitions)
    assert candidates_suffice(model, Leaders(), 20 * len(partitions))
