"""Fewer or more replicas: whose replica goes first, and what is said where racks are lost."""

from dataclasses import replace

import pytest

from drover.planner.goals import SetReplicationFactor
from drover.planner.model import Broker, ClusterModel, Partition
from drover.planner.proposal import Proposal, UnmetCode
from drover.planner.propose import propose


def with_factor(
    factor: int, brokers: list[Broker], replicas: tuple[int, ...], isr: tuple[int, ...] | None = None, count: int = 1
) -> Proposal:
    """Give partitions that all have one list another replication factor."""
    partitions = [Partition("t", number, replicas, replicas[0], isr or replicas, 1000) for number in range(count)]
    return propose(ClusterModel.of(brokers, partitions), SetReplicationFactor(("t",), factor))


@pytest.mark.parametrize("broker", [Broker(3, excluded=True), Broker(3, held=True)], ids=["excluded", "held"])
def test_a_broker_that_is_excluded_or_held_keeps_what_it_has_while_others_can_drop(broker: Broker) -> None:
    proposal = with_factor(2, [Broker(1), Broker(2), broker], (1, 2, 3), count=6)
    assert len(proposal.moves) == 6
    assert all(3 in move.after for move in proposal.moves)
    both = with_factor(1, [Broker(1, excluded=True), Broker(2, excluded=True), Broker(3)], (1, 2))
    assert [move.after for move in both.moves] == [(1,)], "one of them must drop it"


def test_an_excluded_broker_that_is_out_of_sync_is_not_kept_instead_of_one_in_sync() -> None:
    brokers = [Broker(1), Broker(2), Broker(3, excluded=True), Broker(4)]
    assert [move.after for move in with_factor(2, brokers, (1, 2, 3), isr=(1, 2)).moves] == [(1, 2)]
    assert [move.after for move in with_factor(2, brokers, (1, 3, 4), isr=(1,)).moves] == [(1, 3)]


def test_racks_that_are_lost_with_replicas_out_of_sync_are_named() -> None:
    proposal = with_factor(2, [Broker(1, "a"), Broker(2, "a"), Broker(3, "b")], (1, 2, 3), isr=(1, 2))
    assert [move.after for move in proposal.moves] == [(1, 2)]
    assert [(one.code, one.text) for one in proposal.unmet] == [
        (UnmetCode.RACK_SPREAD, "t:0 ends on fewer racks than possible, on brokers 1, 2")
    ]


def test_a_partition_that_gets_replicas_and_stays_on_too_few_racks_is_named() -> None:
    proposal = with_factor(3, [Broker(1, "a"), Broker(2, "a"), Broker(3, "b"), Broker(4, "c")], (1, 2))
    assert len(proposal.moves) == 1
    assert [one.code for one in proposal.unmet] == [UnmetCode.RACK_SPREAD]
    assert proposal.rack_violations_after == 1


def test_racks_that_new_replicas_have_gained_are_not_given_up_for_balance() -> None:
    brokers = [Broker(1, "a"), Broker(2, "a"), Broker(3, "b"), Broker(4, "b"), Broker(5, "c")]
    others = [Partition("full", number, (5,), 5, (5,), 1000) for number in range(40)]
    raised = [Partition("t", number, (1, 2), 1, (1, 2), 1000) for number in range(6)]
    proposal = propose(ClusterModel.of(brokers, [*others, *raised]), SetReplicationFactor(("t",), 4))
    assert len(proposal.moves) == 6
    assert all(5 in move.after for move in proposal.moves), "4 is emptier, and would leave two replicas in b as in a"
    assert (proposal.unmet, proposal.rack_violations_after) == ((), 0)


@pytest.mark.parametrize(
    "unwilling",
    [Broker(1, excluded=True), Broker(1, held=True), Broker(1, failing=True)],
    ids=["excluded", "held", "failing"],
)
def test_replicas_are_dropped_although_no_broker_may_receive_any(unwilling: Broker) -> None:
    brokers = [replace(unwilling, id=number) for number in (1, 2, 3)]
    lowered = with_factor(2, brokers, (1, 2, 3), count=3)
    assert (lowered.complete, lowered.copies, [len(move.after) for move in lowered.moves]) == (True, 0, [2, 2, 2])
    raised = with_factor(3, brokers, (1, 2))
    assert (raised.refused, raised.moves) == (False, ())
    assert [one.code for one in raised.unmet] == [UnmetCode.TOO_FEW_BROKERS]
