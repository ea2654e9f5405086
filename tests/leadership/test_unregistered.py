"""Lists with an unregistered broker: Kafka takes no new order of them, so that only an election can move the leader."""

from dataclasses import replace

import pytest
from msgspec import structs

from drover.brokers import Brokers
from drover.events.leadership import LeaderOrdersIntended, LeaderWaitReason
from drover.facts import PartitionFacts
from drover.reconcile.leaders.judgement import Elect, Judgement, LeaderPolicy, Reorder, Wait, judge
from drover.state.leaders import KeptOrder
from drover.traits import LATEST
from tests.leadership.support import FIRST, blacklist, leader, own_calls, world

LIVE = frozenset({1, 2, 3})
GONE = LeaderPolicy(listed={1}, live=LIVE, brokers=Brokers(LIVE, registered=LIVE))


def seen(replicas: tuple[int, ...], leader: int) -> PartitionFacts:
    return PartitionFacts("id", leader, replicas, tuple(broker for broker in replicas if broker in LIVE))


def test_a_listed_leader_waits_with_the_reason_where_its_list_cannot_be_reordered() -> None:
    found = judge(seen((1, 2, 9), 1), None, GONE)
    assert isinstance(found, Wait)
    assert found.why is LeaderWaitReason.UNREGISTERED_REPLICA
    assert "broker 9 in it is not registered" in found.detail


def test_an_election_needs_no_new_order() -> None:
    assert judge(seen((2, 1, 9), 1), None, GONE) == Elect()


def test_a_balance_elects_no_listed_broker_that_stands_first_only_because_the_list_cannot_be_reordered() -> None:
    assert judge(seen((1, 2, 9), 2), None, replace(GONE, balances=True)) is None
    assert judge(seen((2, 3, 9), 3), None, replace(GONE, balances=True)) == Elect()


@pytest.mark.parametrize("kept", [None, KeptOrder("id", (2, 9, 3), (3, 2, 9), 0)])
def test_an_order_is_not_put_back_while_a_broker_of_the_list_is_unregistered(kept: KeptOrder | None) -> None:
    found: Judgement | None = judge(seen((3, 2, 9), 3), kept, replace(GONE, listed=()))
    assert found is None


def test_a_dead_broker_with_a_registration_hinders_no_reorder() -> None:
    policy = replace(GONE, brokers=Brokers(LIVE, registered=LIVE | {9}))
    assert isinstance(judge(seen((1, 2, 9), 1), None, policy), Reorder)


async def test_no_call_reorders_a_list_with_an_unregistered_broker() -> None:
    made = world()
    made.model.stop_broker(2)
    made.model.unregister(2)
    await made.send(blacklist(3))
    await made.run(10_000)
    assert leader(made) == 3
    assert made.state.waiting[FIRST].why is LeaderWaitReason.UNREGISTERED_REPLICA
    intended = [event for event in made.events() if isinstance(event, LeaderOrdersIntended)]
    lists = [change.replicas for event in intended for change in event.changes]
    assert lists == [(4, 1, 3)], "the only one of broker 3 without broker 2"
    assert own_calls(made) == len(lists)


async def test_a_reorder_that_kafka_refuses_for_that_reason_does_not_stay_in_the_way() -> None:
    """Before Kafka 4.0 only its answer tells; the reorder is tried again later, and nothing waits for it meanwhile."""
    made = world(traits=structs.replace(LATEST, kafka="3.9"))
    made.model.stop_broker(2)
    made.model.unregister(2)
    await made.send(blacklist(3))
    await made.run(2000)
    assert FIRST not in made.state.reassignments
    assert made.state.plans[next(iter(made.state.plans))].failed > 0
