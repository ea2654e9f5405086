"""A report of a failed broker counts only while the broker is not seen alive, and ends once it has been."""

from collections.abc import Callable

import pytest

from drover.brokers import Brokers
from drover.events.brokers import BrokerFailureRecorded, BrokerReturnRecorded
from drover.state.healing import ALIVE_ENDS_REPORT_MS
from tests.healing.support import failed, healing_world, told
from tests.shard.world import CLUSTER, World


def plain_world() -> World:
    """A world without healing."""
    world = World(brokers=6)
    world.model.create_topic("orders", {0: [1, 2, 3]})
    return world


@pytest.mark.parametrize("make", [plain_world, healing_world])
async def test_a_report_ends_once_its_broker_has_been_seen_alive_for_30_s(make: Callable[[], World]) -> None:
    world = make()
    await world.run(1000)
    outcome = await world.send(failed(3, world.now.wall_ms))
    assert "broker 3 is alive by the last look at the cluster" in outcome.remarks[0]
    await world.run(ALIVE_ENDS_REPORT_MS - 2000)
    assert 3 in world.state.failed_brokers
    await world.run(6000)
    assert not world.state.failed_brokers
    (reported,), (ended,) = told(world, BrokerFailureRecorded), told(world, BrokerReturnRecorded)
    assert (ended.cluster, ended.broker, ended.by) == (CLUSTER, 3, "drover")
    assert ended.reason == "it has been seen alive for 30 s"
    assert ended.failed_at_ms == reported.failed_at_ms
    assert ended.returned_at_ms - ended.failed_at_ms >= ALIVE_ENDS_REPORT_MS


@pytest.mark.parametrize("make", [plain_world, healing_world])
async def test_the_30_s_begin_anew_whenever_the_broker_is_missed(make: Callable[[], World]) -> None:
    world = make()
    await world.run(1000)
    await world.send(failed(3, world.now.wall_ms))
    for _ in range(3):
        await world.run(ALIVE_ENDS_REPORT_MS - 10_000)
        world.model.stop_broker(3)
        await world.run(12_000)
        assert world.state.counted_failures(Brokers(frozenset(world.model.live_brokers()))) == {3}
        world.model.start_broker(3)
    assert not told(world, BrokerReturnRecorded)
    await world.run(ALIVE_ENDS_REPORT_MS + 12_000)
    assert len(told(world, BrokerReturnRecorded)) == 1


async def test_a_report_of_a_dead_broker_stands() -> None:
    world = plain_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(1000)
    outcome = await world.send(failed(3, world.now.wall_ms))
    assert outcome.remarks == ()
    await world.run(4 * ALIVE_ENDS_REPORT_MS)
    assert 3 in world.state.failed_brokers


async def test_a_second_report_has_30_s_of_its_own() -> None:
    world = plain_world()
    await world.run(1000)
    await world.send(failed(3, world.now.wall_ms))
    await world.run(ALIVE_ENDS_REPORT_MS + 12_000)
    await world.send(failed(3, world.now.wall_ms))
    await world.run(ALIVE_ENDS_REPORT_MS - 2000)
    assert 3 in world.state.failed_brokers
    again = await world.send(failed(3, world.now.wall_ms, id="again"))
    assert ["reported as failed before" in remark or "is alive" in remark for remark in again.remarks] == [True, True]
