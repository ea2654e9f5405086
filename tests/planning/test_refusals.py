"""A goal that makes no sense is refused in clear words; one that cannot be reached wholly says what is missing."""

from dataclasses import replace

import pytest

from drover.planner.goals import (
    Add,
    Balance,
    Drain,
    Evacuate,
    Goal,
    Heal,
    Leaders,
    Limits,
    Replace,
    SetReplicationFactor,
    Spread,
)
from drover.planner.model import Broker, ClusterModel, LogDir, Partition
from drover.planner.proposal import UnmetCode
from drover.planner.propose import propose

GIB = 1 << 30


def disk(total_gib: int, free_gib: int) -> tuple[LogDir, ...]:
    return (LogDir("/data", total_gib * GIB, free_gib * GIB),)


def partition(number: int, *replicas: int, size_gib: int = 1, topic: str = "orders") -> Partition:
    return Partition(topic, number, replicas, replicas[0], replicas, size_gib * GIB)


BROKERS = tuple(
    Broker(number, rack, log_dirs=disk(100, 90)) for number, rack in ((1, "a"), (2, "b"), (3, "c"), (4, "a"))
)
MODEL = ClusterModel.of(BROKERS, [partition(0, 1, 2, 3), partition(1, 2, 3, 4), partition(2, 3, 4, 2)])


def but(number: int, **changes: object) -> ClusterModel:
    """Return the cluster with one broker changed."""
    brokers = [replace(each, **changes) if each.id == number else each for each in BROKERS]  # type: ignore[arg-type]
    return ClusterModel.of(brokers, MODEL.partitions)


@pytest.mark.parametrize(
    ("goal", "code", "words"),
    [
        (Drain((9,)), UnmetCode.UNKNOWN_BROKER, "there is no broker 9"),
        (Drain(()), UnmetCode.BAD_GOAL, "no broker is named"),
        (Add((9,)), UnmetCode.UNKNOWN_BROKER, "there is no broker 9"),
        (Replace(1, 9), UnmetCode.UNKNOWN_BROKER, "there is no broker 9"),
        (Replace(9, 1), UnmetCode.UNKNOWN_BROKER, "there is no broker 9"),
        (Replace(1, 1), UnmetCode.BAD_GOAL, "broker 1 cannot replace itself"),
        (Evacuate("z"), UnmetCode.UNKNOWN_RACK, "no broker is in rack z: there are a, b, c"),
        (SetReplicationFactor(("nope",), 2), UnmetCode.UNKNOWN_TOPIC, "there is no topic nope"),
        (SetReplicationFactor(("orders",), 0), UnmetCode.BAD_GOAL, "the replication factor must be at least 1, not 0"),
        (
            SetReplicationFactor(("orders",), 5),
            UnmetCode.TOO_FEW_BROKERS,
            "a replication factor of 5 needs as many brokers, and 4 are alive",
        ),
        (Balance(max_moves=-1), UnmetCode.BAD_GOAL, "the most moves must not be negative, but is -1"),
        (Heal(()), UnmetCode.BAD_GOAL, "no broker is named"),
    ],
    ids=str,
)
def test_a_goal_that_makes_no_sense_is_refused_in_clear_words(goal: Goal, code: UnmetCode, words: str) -> None:
    proposal = propose(MODEL, goal)
    assert (proposal.refused, proposal.empty, proposal.complete) == (True, True, False)
    assert [(each.code, each.text) for each in proposal.unmet] == [(code, words)]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(disk_limit=0.0), "the disk limit must be above 0 and at most 1, not 0"),
        (Limits(disk_limit=1.1), "the disk limit must be above 0 and at most 1, not 1.1"),
        (Limits(above=-0.1), "the tolerance above must be at least 0 and below 1, not -0.1"),
        (Limits(below=1.0), "the tolerance below must be at least 0 and below 1, not 1"),
    ],
    ids=str,
)
def test_limits_that_make_no_sense_are_refused(limits: Limits, words: str) -> None:
    assert [each.text for each in propose(MODEL, Balance(), limits).unmet] == [words]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"alive": False}, "broker 4 is not alive"),
        ({"excluded": True}, "broker 4 is excluded"),
        ({"held": True}, "broker 4 is held"),
        ({"failing": True}, "broker 4 is failing"),
    ],
    ids=str,
)
def test_a_broker_that_may_not_receive_replicas_is_not_filled(changes: dict[str, bool], words: str) -> None:
    assert [each.text for each in propose(but(4, **changes), Add((4,))).unmet] == [words]


def test_a_full_disk_is_named() -> None:
    full = but(4, log_dirs=disk(100, 15))
    proposal = propose(full, Drain((1,)))
    assert not proposal.refused
    assert [each.text for each in proposal.unmet] == [
        "orders:0: no broker in rack a has room for 1,073,741,824 bytes below the disk limit from broker 1"
    ]
    assert propose(full, Drain((1,)), Limits(disk_limit=0.9)).complete


@pytest.mark.parametrize(
    ("racks", "where"), [((None, None), ""), (("a", "b"), " in rack b"), (("a", None), ""), (("a", "a"), " in rack a")]
)
def test_brokers_without_racks_are_not_called_racks_where_their_disks_are_full(
    racks: tuple[str | None, str | None], where: str
) -> None:
    brokers = [Broker(1, racks[0]), Broker(2, racks[1], log_dirs=disk(100, 16))]
    (problem,) = propose(ClusterModel.of(brokers, [partition(0, 1, size_gib=2)]), Drain((1,))).unmet
    words = f"orders:0: no broker{where} has room for {2 * GIB:,} bytes below the disk limit from broker 1"
    assert (problem.code, problem.text) == (UnmetCode.NO_ROOM, words)


def test_a_replica_stays_rather_than_share_a_rack_that_could_be_spread() -> None:
    model = ClusterModel.of([*but(4, log_dirs=disk(100, 15)).brokers, Broker(5, "b")], MODEL.partitions)
    proposal = propose(model, Drain((1,)))
    assert [each.code for each in proposal.unmet] == [UnmetCode.NO_ROOM]
    assert proposal.empty, "broker 5 has room, and is in rack b"


def test_racks_that_have_nobody_left_do_not_count() -> None:
    model = ClusterModel.of([*but(4, held=True).brokers, Broker(5, "b")], MODEL.partitions)
    proposal = propose(model, Drain((1,)))
    assert proposal.complete
    assert [move.after for move in proposal.moves] == [(5, 2, 3)]
    assert (proposal.rack_violations_before, proposal.rack_violations_after) == (0, 0)


def test_a_cluster_in_which_every_broker_has_a_replica_already_cannot_be_drained() -> None:
    model = ClusterModel.of(BROKERS[:3], [partition(0, 1, 2, 3)])
    assert [(each.code, each.text) for each in propose(model, Drain((1,))).unmet] == [
        (
            UnmetCode.TOO_FEW_BROKERS,
            "orders:0: every broker that may receive replicas has one already, none can be moved from broker 1",
        )
    ]


def test_the_only_broker_cannot_be_drained() -> None:
    model = ClusterModel.of(BROKERS[:1], [partition(0, 1)])
    proposal = propose(model, Drain((1,)))
    assert proposal.empty
    assert not proposal.complete


def test_partitions_that_cannot_be_moved_are_named() -> None:
    special = (
        replace(partition(0, 1, 2, 3), leader=None),
        replace(partition(1, 1, 2, 3), moving=True),
        replace(partition(2, 1, 2, 3), internal=True),
        partition(3, 1, 2, 3, topic="private"),
    )
    model = ClusterModel.of(BROKERS, special)
    proposal = propose(model, Drain((1,)), Limits(exclude_topics=("private",)))
    assert proposal.empty
    assert [each.text for each in proposal.unmet] == [
        "orders:0 stays on broker 1: it has no leader to copy from",
        "orders:1 stays on broker 1: it is being reassigned",
        "broker 1 keeps 1 partition: topic orders is internal, and internal topics are not included",
        "broker 1 keeps 1 partition: topic private is excluded",
    ]
    whole = propose(model, Drain((1,)), Limits(include_internal=True))
    assert {(move.topic, move.partition) for move in whole.moves} == {("orders", 2), ("private", 3)}


def test_a_broker_that_has_left_the_cluster_can_still_be_drained() -> None:
    model = ClusterModel.of(BROKERS[1:], MODEL.partitions)
    proposal = propose(model, Drain((1,)))
    assert proposal.complete
    assert [(move.before, move.after) for move in proposal.moves] == [((1, 2, 3), (4, 2, 3))]


def test_a_balance_that_may_not_copy_enough_says_so() -> None:
    model = ClusterModel.of(BROKERS, [partition(number, 1, 2) for number in range(12)])
    proposal = propose(model, Balance(max_bytes=2 * GIB))
    assert proposal.copied_bytes <= 2 * GIB
    assert any("the most bytes or moves are reached" in each.text for each in proposal.unmet)


def test_nothing_to_do_is_an_empty_complete_proposal() -> None:
    for goal in (Balance(), Spread(), Leaders(), SetReplicationFactor(("orders",), 3), Heal((1,), ())):
        proposal = propose(ClusterModel.of(BROKERS[:3], MODEL.partitions[:1]), goal)
        assert (proposal.empty, proposal.refused) == (True, False), goal
    nothing = propose(ClusterModel.of(BROKERS, []), Balance())
    assert (nothing.empty, nothing.complete) == (True, True)
