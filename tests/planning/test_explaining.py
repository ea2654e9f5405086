"""Explanations: the loads of a broker after a plan, and why they are no closer to its fair share."""

from dataclasses import replace

import pytest

from drover.planner.explaining import NOTHING_GAINED, Attempt, Explanation, Standing, explain
from drover.planner.goals import DEFAULT_LIMITS, Balance, Band, Drain, Limits
from drover.planner.loads import Load
from drover.planner.model import Broker, ClusterModel, LogDir, Partition
from drover.planner.propose import propose
from tests.planning.clusters import targets_of
from tests.planning.test_loads import loaded_cluster

GB = 10**9


def standing(explanation: Explanation, load: Load) -> Standing:
    return next(each for each in explanation.standings if each.load == load.value)


def attempt(explanation: Explanation, kind: str) -> Attempt:
    return next(each for each in explanation.attempts if kind in each.kind)


def small(*partitions: Partition, brokers: int = 3, free: int = 500 * GB) -> ClusterModel:
    disk = (LogDir("/d", 1000 * GB, free),)
    return ClusterModel.of(
        [Broker(number, f"r{number % 2}", log_dirs=disk) for number in range(1, brokers + 1)], partitions
    )


def partition(number: int, *replicas: int, **more: object) -> Partition:
    made = Partition("t", number, replicas, replicas[0], replicas, GB)
    return replace(made, **more)  # type: ignore[arg-type]


def test_every_load_has_its_share_its_band_and_what_is_used_of_its_capacity() -> None:
    model = loaded_cluster(2)
    proposal = propose(model, Balance())
    for number in range(1, 10):
        explanation = explain(model, targets_of(proposal), DEFAULT_LIMITS, number)
        named = {each.broker for each in proposal.unmet}
        assert (number in named) == any(each.verdict != "in its band" for each in explanation.standings)
        disk = standing(explanation, Load.DISK)
        assert disk.limit == 0.85
        assert disk.used is not None
        assert 0 < disk.used < 0.85
        assert standing(explanation, Load.LEADERS).limit is None


def test_obstacles_are_counted_by_the_first_one_and_add_up() -> None:
    model = loaded_cluster(2)
    targets = targets_of(propose(model, Balance()))
    tried = 0
    for number in range(1, 10):
        for each in explain(model, targets, DEFAULT_LIMITS, number).attempts:
            assert sum(each.obstacles.values()) == each.count > 0
            tried += 1
    assert tried > 5


def test_what_no_plan_may_change_is_named_with_its_reason() -> None:
    model = small(*(partition(number, 1, moving=True) for number in range(6)))
    explanation = explain(model, {}, DEFAULT_LIMITS, 1)
    assert attempt(explanation, "no plan may change").obstacles == {"it is being reassigned": 6}
    assert standing(explanation, Load.REPLICAS).verdict == "overloaded"


def test_racks_and_full_disks_stand_in_the_way() -> None:
    # Brokers 1 and 3 share a rack, and partitions have a replica in each of the two racks.
    model = small(*(partition(number, 1, 2) for number in range(6)), free=0)
    explanation = explain(model, {}, DEFAULT_LIMITS, 1)
    assert attempt(explanation, "moves of its replicas").obstacles == {
        "have a replica of the partition there already": 6,
        "have no room there below a limit": 6,
    }
    only = small(*(partition(number, 1, 2) for number in range(6)), brokers=4)
    crowded = explain(only, {}, DEFAULT_LIMITS, 2)
    assert attempt(crowded, "moves of its replicas").obstacles["would lose racks"] == 6


def test_a_band_that_no_move_can_reach_gains_nothing() -> None:
    model = small(*(partition(number, 1 + number % 2) for number in range(5)), brokers=2)
    explanation = explain(model, {}, Limits(load_band=Band(0.01, 0.01)), 1)
    assert attempt(explanation, "moves of its replicas").obstacles == {NOTHING_GAINED: 3}


@pytest.mark.parametrize("leaving", [(), (1,)])
def test_a_broker_without_a_fair_share_says_why(leaving: tuple[int, ...]) -> None:
    model = loaded_cluster(3)
    held = replace(model, brokers=(replace(model.brokers[0], held=not leaving), *model.brokers[1:]))
    targets = targets_of(propose(held, Drain((1,)))) if leaving else {}
    explanation = explain(held, targets, DEFAULT_LIMITS, 1, leaving)
    assert explanation.outside == ("broker 1 is being emptied" if leaving else "broker 1 is held")
    assert explanation.standings == ()
