"""A rollback that needs copies, as after KIP-435's alternating steps: throttled, within the limits, by steps."""

from typing import NoReturn

import pytest

from drover.client.views.waiting_reason import waiting_reason
from drover.cluster.throttle_lists import parse_rates, parse_throttled
from drover.errors import ClusterUnavailableError
from drover.events.commands import BrokerFailed
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.events.reassignments import Blocker, ReassignmentRolledBack
from drover.state.broker_directions import BrokerDirection
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from tests.shard.sound import sound
from tests.shard.world import CLUSTER, World, alter, rollback

KEY, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)


async def _refuse(_: object) -> NoReturn:
    raise ClusterUnavailableError("elections are not answered")


async def half_way(limits: Limits | None = None, throttle: int | None = None) -> World:
    """[1,2,3] on its way to [5,4,6]: 2, whose rack is that of 5, is dropped already, 4 is being copied."""
    made = World(brokers=6, limits=limits, joins_by_itself=False)
    # Without the election of 5 the leader, 1, is dropped last.
    made.driver.elect_leaders = _refuse  # type: ignore[method-assign,assignment]
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [6, 1, 3]}, partition_bytes=1000)
    await made.send(alter({KEY: [5, 4, 6]}, id="p", throttle_bytes_per_second=throttle, stepping=Stepping.SWAP))
    await made.run(1000)
    made.model.join_isr(KEY, 5)
    await made.run(3000)
    assert made.reassignment(KEY).current == (5, 1, 3)
    assert made.model.moves()[KEY].adding == (4,)
    return made


def rates(made: World, broker: int) -> int | None:
    return parse_rates(made.model.brokers[broker].configs).follower_bytes_per_second


async def test_the_dropped_replica_is_copied_back_behind_the_throttle() -> None:
    made = await half_way(throttle=500_000)
    await made.send(rollback(KEY))
    await made.run(3000)
    entry = made.reassignment(KEY)
    assert (entry.phase, entry.is_cancelled, entry.step_target) == (Phase.COPYING, True, (1, 2, 3))
    assert made.model.moves()[KEY].adding == (2,)
    assert rates(made, 2) == 500_000
    assert parse_throttled(made.model.topics["orders"].configs).follower == ("0:2",)
    assert made.state.moves.loads[BrokerDirection(2, "in")] == 1
    made.model.join_isr(KEY, 2)
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    (ended,) = [event for event in made.events() if isinstance(event, ReassignmentRolledBack)]
    assert (ended.replicas, ended.missing) == ((1, 2, 3), ())
    assert made.state.plans["p"].rolled_back == 1
    assert rates(made, 2) is None
    sound(made)


async def test_a_copy_back_waits_for_room_by_name() -> None:
    made = await half_way(Limits(max_moves_per_broker=1))
    await made.send(alter({OTHER: [6, 1, 2]}))
    await made.run(3000)
    assert made.model.moves()[OTHER].adding == (2,)
    await made.send(rollback(KEY))
    await made.run(3000)
    assert made.reassignment(KEY).phase is Phase.CONFIRMED
    reason = waiting_reason(made.state, KEY)
    assert reason is not None
    assert "slots of broker 2 (1 of 1 copies in)" in reason.why
    made.model.join_isr(OTHER, 2)
    await made.run(3000)
    assert made.model.moves()[KEY].adding == (2,)
    made.model.join_isr(KEY, 2)
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    sound(made)


async def test_a_successor_carries_it_on() -> None:
    made = await half_way()
    await made.send(rollback(KEY))
    await made.run(3000)
    made.crash()
    await made.run(9000)
    made.model.join_isr(KEY, 2)
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    sound(made)


@pytest.mark.parametrize("copies", [False, True])
async def test_an_original_that_is_gone_is_not_copied_back(*, copies: bool) -> None:
    made = await half_way()
    if copies:
        await made.send(rollback(KEY))
        await made.run(3000)
        assert made.model.moves()[KEY].adding == (2,)
    made.model.stop_broker(2)
    await made.run(500)
    await made.send(
        BrokerFailed(id="f", cluster=CLUSTER, by="ana", reason="it burnt", broker=2, at_ms=made.now.wall_ms)
    )
    if not copies:
        await made.send(rollback(KEY))
    await made.finish()
    assert made.replicas(KEY) == (1, 3, 5)
    (ended,) = [event for event in made.events() if isinstance(event, ReassignmentRolledBack)]
    assert ended.missing == (2,)
    sound(made)


async def test_a_wrong_report_of_an_original_that_lives_costs_no_replica() -> None:
    """Promise 2: the original list comes back, whatever is reported about a broker that is seen alive."""
    made = await half_way()
    report = BrokerFailed(id="f", cluster=CLUSTER, by="ana", reason="no ping", broker=2, at_ms=made.now.wall_ms)
    assert "broker 2 is alive" in (await made.send(report)).remarks[0]
    await made.send(rollback(KEY))
    await made.run(3000)
    made.model.join_isr(KEY, 2)
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
    (ended,) = [event for event in made.events() if isinstance(event, ReassignmentRolledBack)]
    assert ended.missing == ()
    sound(made)


async def test_another_target_follows_it() -> None:
    made = await half_way()
    await made.send(alter({KEY: [5, 6, 1]}, id="q"))
    await made.run(3000)
    made.model.joins_by_itself = True
    made.model.join_isr(KEY, 2)
    await made.finish()
    assert made.replicas(KEY) == (5, 6, 1)
    assert (made.state.plans["p"].rolled_back, made.state.plans["q"].completed) == (1, 1)
    sound(made)


async def test_an_original_that_is_unreachable_is_waited_for_although_somebody_reports_it() -> None:
    """It lives, without the listener by which Drover connects: nothing is copied to it, and nothing is given up."""
    made = await half_way()
    made.model.create_topic("proof-of-life", {0: [1, 2]})
    made.model.hide_listener(2)
    await made.run(15_000)
    await made.send(BrokerFailed(id="f", cluster=CLUSTER, by="w", reason="r", broker=2, at_ms=made.now.wall_ms))
    await made.send(rollback(KEY))
    await made.run(90_000)
    entry = made.reassignment(KEY)
    assert entry.block is not None
    assert entry.block.why is Blocker.UNREACHABLE_BROKER
    assert entry.returning_to == (1, 2, 3)
    made.model.show_listener(2)
    await made.run(5000)
    made.model.join_isr(KEY, 2)
    await made.finish()
    assert made.replicas(KEY) == (1, 2, 3)
