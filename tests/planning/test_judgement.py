"""What is said of a plan that somebody else made before anybody says yes: what can never end, what is given up."""

from dataclasses import replace
from typing import Any

import pytest

from drover.planner.assess import assess
from drover.planner.goals import Drain, Limits
from drover.planner.judgement import broken, emptied
from drover.planner.model import Broker, ClusterModel, Partition
from drover.planner.proposal import UnmetCode
from drover.planner.propose import propose

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
GIVEN_UP = "gives up every replica in sync (broker 1)"
CATCH_UP = "(broker 2, 3): wait until that has caught up, or keep broker 1"


def cluster(*partitions: Partition, dead: tuple[int, ...] = ()) -> ClusterModel:
    return ClusterModel.of([Broker(number, rack, number not in dead) for number, rack in RACKS.items()], partitions)


def partition(**fields: Any) -> Partition:
    known: dict[str, Any] = {"replicas": (1, 2, 3), "leader": 1, "isr": (1, 2, 3), "size_bytes": 10}
    return Partition("t", 0, **(known | fields))


@pytest.mark.parametrize(
    ("there", "dead", "target", "code", "text"),
    [
        (
            {"leader": None, "isr": (3,)},
            (3,),
            (1, 2, 6),
            UnmetCode.OFFLINE,
            "t:0 has no leader, so nothing can be copied: bring broker 3 back first",
        ),
        (
            {"leader": None, "isr": ()},
            (1, 2, 3),
            (4, 5, 6),
            UnmetCode.OFFLINE,
            "t:0 has no leader, so nothing can be copied: bring broker 1 or 2 or 3 back first",
        ),
        (
            {"moving": True, "target": (1, 5, 3)},
            (),
            (1, 2, 6),
            UnmetCode.MOVING,
            "t:0 is being moved to [1, 5, 3] already: wait for the end of that move, or cancel it",
        ),
        (
            {"moving": True},
            (),
            (1, 2, 6),
            UnmetCode.MOVING,
            "t:0 is being moved already: wait for the end of that move, or cancel it",
        ),
        (
            {"isr": (1, 3)},
            (2,),
            (1, 2, 6),
            UnmetCode.DEAD_BROKER,
            "t:0 keeps a replica on broker 2, which is not alive: give it another broker",
        ),
        (
            {"isr": (1,)},
            (),
            (2, 3),
            UnmetCode.OUT_OF_SYNC,
            f"t:0 {GIVEN_UP}, and what [2, 3] keeps is out of sync {CATCH_UP}",
        ),
        (
            {"isr": (1,)},
            (),
            (4, 2, 3),
            UnmetCode.OUT_OF_SYNC,
            f"t:0 {GIVEN_UP}, and what [4, 2, 3] keeps is out of sync {CATCH_UP}",
        ),
    ],
)
def test_what_cannot_end_as_the_cluster_is_has_a_sentence_with_a_remedy(
    there: dict[str, Any], dead: tuple[int, ...], target: tuple[int, ...], code: UnmetCode, text: str
) -> None:
    proposal = assess(cluster(partition(**there), dead=dead), {("t", 0): target})
    assert [(one.code, one.text) for one in broken(proposal.unmet)] == [(code, text)]


@pytest.mark.parametrize(
    ("there", "target"),
    [
        ({"isr": (1, 2)}, (2, 4, 3)),
        ({"isr": (1,)}, (4, 5, 6)),
        ({"isr": (1,)}, (2, 1, 3)),
        ({"moving": True, "target": (1, 2, 6)}, (1, 2, 6)),
        ({"moving": True, "replicas": (1, 2, 6, 3), "target": (1, 2, 6)}, (1, 2, 6)),
    ],
)
def test_a_list_that_keeps_a_replica_in_sync_or_is_all_new_or_where_the_partition_goes_is_no_problem(
    there: dict[str, Any], target: tuple[int, ...]
) -> None:
    assert assess(cluster(partition(**there)), {("t", 0): target}).unmet == ()


def test_partitions_whose_replication_factor_changes_are_counted_and_that_is_no_obstacle() -> None:
    partitions = [Partition("t", number, (1, 2, 3), 1, (1, 2, 3)) for number in range(4)]
    lists = {("t", 0): (1, 2), ("t", 1): (1, 2), ("t", 2): (1, 2, 3, 4), ("t", 3): (1, 2, 6)}
    unmet = assess(cluster(*partitions), lists).unmet
    assert [(one.code, one.text) for one in unmet if one.code is not UnmetCode.RACK_SPREAD] == [
        (
            UnmetCode.REPLICATION_FACTOR,
            "the replication factor changes: 2 partitions from 3 to 2, 1 partition from 3 to 4",
        )
    ]
    assert not any(one.code is UnmetCode.REPLICATION_FACTOR for one in broken(unmet))


def test_a_drain_that_leaves_its_partitions_in_one_rack_says_so_whoever_made_it() -> None:
    brokers = [Broker(1, "a"), Broker(2, "a"), Broker(3, "b")]
    model = ClusterModel.of(brokers, [Partition("t", number, (1, 3), 1, (1, 3), 10) for number in range(2)])
    said = "2 partitions of the 2 to change will have every replica in rack a: they go offline with that rack"
    proposal = propose(model, Drain((3,)))
    assert [(one.code, one.text) for one in proposal.unmet] == [(UnmetCode.ONE_RACK, said)]
    assert broken(proposal.unmet) == []
    others = assess(model, {(topic, number): after for topic, number, after in proposal.targets})
    assert (UnmetCode.ONE_RACK, said) in [(one.code, one.text) for one in others.unmet]
    assert emptied(others.brokers) == {3}


def test_a_drain_of_a_broker_to_which_moves_still_lead_names_them() -> None:
    brokers = [Broker(1, "a"), Broker(2, "b", arriving_replicas=2), Broker(3, "c"), Broker(4, "b")]
    model = ClusterModel.of(brokers, [Partition("t", 0, (1, 2), 1, (1, 2), 10)])
    proposal = propose(model, Drain((2,)), Limits())
    assert [move.after for move in proposal.moves] == [(1, 3)]
    (problem,) = broken(proposal.unmet)
    assert (problem.code, problem.broker, problem.text) == (
        UnmetCode.MOVING,
        2,
        "2 replicas will still come to broker 2 by moves under way or waiting: plan again after them",
    )


def test_a_partition_that_an_unreachable_broker_leads_is_not_called_leaderless() -> None:
    brokers = [replace(broker, unreachable=broker.id == 1) for broker in cluster().brokers]
    model = ClusterModel.of(brokers, [partition(leader=None, leader_unreachable=True)])
    problem = next(one for one in broken(assess(model, {("t", 0): (1, 5, 3)}).unmet) if one.code is UnmetCode.OFFLINE)
    assert problem.text.startswith(
        "t:0 is led by a broker that cannot be asked: broker 1 is unreachable: it lives, but"
    )
