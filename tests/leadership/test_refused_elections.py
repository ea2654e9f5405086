"""Elections that Kafka refuses again and again, for a missing ACL perhaps: they cost little, and a balance ends."""

from collections.abc import Collection, Mapping

import pytest

from drover.events.leadership import LeaderBalanceEnded, LeaderElectionIntended
from drover.events.partitions import TopicPartition
from drover.facts import CallResult
from drover.reconcile.leaders.balance import PATIENCE_MS
from drover.reconcile.leaders.worklist import REFUSED_MOST_MS
from tests.leadership.support import balance, demote, leaders, world
from tests.shard.world import World

REFUSED = CallResult(31, "not you")


async def with_broker_3_back() -> World:
    """Broker 3 was restarted and leads nothing."""
    made = world()
    made.model.stop_broker(3, clean=True)
    await made.run(1000)
    made.model.start_broker(3)
    await made.run(1000)
    return made


async def restarted(monkeypatch: pytest.MonkeyPatch) -> World:
    """Broker 3 is back and leads nothing; Kafka refuses every election."""
    made = await with_broker_3_back()

    async def refuse(partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, CallResult]:
        return dict.fromkeys(partitions, REFUSED)

    monkeypatch.setattr(made.driver, "elect_leaders", refuse)
    return made


def is_balancing(made: World) -> bool:
    return made.state.balance is not None


async def test_a_balance_of_which_nothing_comes_ends_after_ten_minutes_and_says_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = await restarted(monkeypatch)
    await made.send(balance())
    await made.run(PATIENCE_MS - 10_000)
    assert is_balancing(made)
    await made.run(30_000)
    assert not is_balancing(made)
    (ended,) = [event for event in made.events() if isinstance(event, LeaderBalanceEnded)]
    assert (ended.elected, ended.left) == (0, 2)
    await made.run(2 * REFUSED_MOST_MS)
    assert not made.state.waiting


async def test_a_frozen_cluster_takes_no_time_from_a_balance(monkeypatch: pytest.MonkeyPatch) -> None:
    made = await with_broker_3_back()
    await made.freeze()
    await made.send(balance())
    await made.run(PATIENCE_MS + 60_000)
    assert is_balancing(made)
    await made.unfreeze()
    await made.run(10_000)
    assert not is_balancing(made)
    assert leaders(made) == [3, 1, 1, 3]


async def test_an_election_that_is_refused_again_and_again_is_tried_ever_more_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = await restarted(monkeypatch)
    await made.send(demote(1))
    await made.run(5 * REFUSED_MOST_MS)
    intended = [event for event in made.events() if isinstance(event, LeaderElectionIntended)]
    by_partition = max(sum(event.key == key for event in intended) for key in {event.key for event in intended})
    assert 5 <= by_partition <= 10
    monkeypatch.undo()
    await made.run(REFUSED_MOST_MS + 5000)
    assert not made.state.waiting
    assert 1 not in leaders(made)


async def test_a_cluster_that_is_out_of_reach_takes_no_time_from_a_balance(monkeypatch: pytest.MonkeyPatch) -> None:
    made = await restarted(monkeypatch)
    await made.send(balance())
    await made.run(5000)
    made.driver.unreachable = True
    await made.run(PATIENCE_MS + 60_000)
    made.driver.unreachable = False
    monkeypatch.undo()
    await made.run(REFUSED_MOST_MS + 10_000)
    assert not is_balancing(made)
    assert leaders(made) == [3, 1, 1, 3]
