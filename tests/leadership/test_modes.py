"""Eager and lazy lists beside Kafka's own rebalance, and balances of leaders."""

from drover.events.leadership import LeaderBalanceEnded, LeaderElectionIntended
from drover.events.partitions import TopicPartition
from drover.reconcile.leaders.balance import PATIENCE_MS
from drover.state.scheduling import Limits
from tests.leadership.support import (
    KEYS,
    LISTS,
    WITHOUT_3,
    balance,
    demote,
    lazy,
    leader,
    leaders,
    lists,
    own_calls,
    world,
)


async def test_kafkas_own_rebalance_takes_nothing_back_and_nothing_flaps() -> None:
    made = world(leader_rebalance_ms=5000)
    await made.send(demote(3))
    await made.run(3000)
    before = own_calls(made)
    await made.run(20_000)
    assert (lists(made), leaders(made)) == (WITHOUT_3, [1, 1, 1, 4])
    assert own_calls(made) == before


async def test_lazily_a_change_of_the_list_moves_no_leader_even_with_kafkas_rebalance() -> None:
    """R491-4 to the letter; the order is changed only where the leader stays."""
    made = lazy(leader_rebalance_ms=5000)
    await made.send(demote(3))
    await made.run(12_000)
    assert leaders(made) == [3, 1, 1, 3]
    assert lists(made) == {**LISTS, 1: (1, 2, 3)}
    assert not any(isinstance(event, LeaderElectionIntended) for event in made.events())


async def test_lazily_the_list_counts_when_a_broker_fails() -> None:
    """R491-3: the first in sync that is not listed leads then, and the failed one does not take it back."""
    made = lazy(leader_rebalance_ms=5000)
    await made.send(demote(3))
    await made.run(2000)
    made.model.stop_broker(1)
    await made.run(100)
    assert leader(made, KEYS[1]) == 2
    made.model.start_broker(1)
    made.model.stop_broker(3)
    await made.run(12_000)
    made.model.start_broker(3)
    await made.run(12_000)
    assert 3 not in leaders(made)


async def test_lazily_the_list_counts_when_an_election_is_asked_for() -> None:
    made = lazy()
    await made.send(demote(3))
    await made.run(2000)
    await made.send(balance())
    await made.run(6000)
    assert (lists(made), leaders(made)) == (WITHOUT_3, [1, 1, 1, 4])
    assert made.state.balance is None
    assert any(isinstance(event, LeaderBalanceEnded) and event.left == 0 for event in made.events())


async def test_a_balance_after_a_restart_elects_preferred_leaders() -> None:
    made = world()
    made.model.stop_broker(3, clean=True)
    await made.run(1000)
    made.model.start_broker(3)
    await made.run(1000)
    assert 3 not in leaders(made)
    await made.send(balance(topics=("t",)))
    await made.run(6000)
    assert leaders(made) == [3, 1, 1, 3]
    (ended,) = [event for event in made.events() if isinstance(event, LeaderBalanceEnded)]
    assert (ended.elected, ended.left) == (2, 0)


async def test_a_balance_begins_by_itself_after_a_return_where_that_is_set() -> None:
    made = world(limits=Limits(balances_after_return=True))
    await made.run(1000)
    made.model.stop_broker(3)
    await made.run(11_000)
    made.model.start_broker(3)
    await made.run(25_000)
    assert leaders(made) == [3, 1, 1, 3]


async def test_a_broker_that_is_back_during_a_balance_of_some_topics_leads_everything_again() -> None:
    made = world(limits=Limits(balances_after_return=True), joins_by_itself=False)
    other = TopicPartition("u", 0)
    made.model.create_topic(other.topic, {0: (3, 1, 2)})
    await made.run(1000)
    made.model.stop_broker(3)
    await made.run(3000)
    await made.send(balance(topics=("t",)))
    made.model.start_broker(3)
    await made.run(1000)
    for key in (*KEYS, other):
        made.model.join_isr(key, 3)
    await made.run(10_000)
    assert leaders(made) == [3, 1, 1, 3]
    assert leader(made, other) == 3


async def test_brokers_that_are_back_one_after_the_other_are_each_waited_for_long_enough() -> None:
    """A rolling restart whose replicas take their time: some are always on their way."""
    made = world(limits=Limits(balances_after_return=True), joins_by_itself=False)
    await made.run(1000)
    for broker in (1, 3):
        made.model.stop_broker(broker)
    await made.run(3000)
    made.model.start_broker(1)
    await made.run(PATIENCE_MS - 60_000)
    made.model.start_broker(3)
    await made.run(2 * 60_000)
    for key in KEYS:
        for broker in made.replicas(key):
            made.model.join_isr(key, broker)
    await made.run(10_000)
    assert leaders(made) == [3, 1, 1, 3]


async def test_a_listed_broker_that_dies_and_returns_leads_nothing() -> None:
    made = world(leader_rebalance_ms=5000)
    await made.send(demote(3))
    await made.run(2000)
    made.model.stop_broker(3)
    await made.run(3000)
    made.model.start_broker(3)
    await made.run(12_000)
    assert 3 not in leaders(made)
