"""Clocks of brokers that are wrong: log time follows them within bounds, and no broker is healed too soon or never."""

import pytest

from drover.events.healing import BrokerOutageAlarmed, HealPlanned
from drover.reconcile.messages import MAX_AHEAD_MS
from tests.healing.support import ALARM_MS, INTERVAL_MS, heal_to_the_end, healing_world, told

HOUR_MS, DAY_MS, CENTURY_MS = 3_600_000, 86_400_000, 100 * 365 * 86_400_000


@pytest.mark.parametrize("ahead_ms", [HOUR_MS, CENTURY_MS])
async def test_a_clock_that_jumps_ahead_makes_no_absence_of_seconds_look_long(ahead_ms: int) -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(5000)
    assert world.state.absent_brokers
    world.clock_ahead_ms = ahead_ms
    await world.run(1000)
    assert not told(world, BrokerOutageAlarmed)
    await world.run(INTERVAL_MS - 5000)
    assert len(told(world, BrokerOutageAlarmed)) == 1
    assert not told(world, HealPlanned)
    await heal_to_the_end(world, 3)


async def test_a_broker_that_returns_after_a_jump_of_the_clock_is_not_healed() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(5000)
    world.clock_ahead_ms = HOUR_MS
    await world.run(INTERVAL_MS - 4000)
    world.model.start_broker(3)
    await world.run(2 * INTERVAL_MS)
    assert not told(world, HealPlanned)
    assert not world.state.absent_brokers


@pytest.mark.parametrize("ahead_ms", [HOUR_MS, CENTURY_MS])
async def test_an_absence_that_was_noted_by_a_clock_ahead_is_healed_at_most_a_minute_late(ahead_ms: int) -> None:
    world = healing_world()
    world.clock_ahead_ms = ahead_ms
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(5000)
    assert world.state.absent_brokers
    world.clock_ahead_ms = 0
    await world.run(ALARM_MS)
    assert not told(world, HealPlanned)
    await heal_to_the_end(world, 3, within_ms=MAX_AHEAD_MS + 2 * INTERVAL_MS)
    assert len(told(world, BrokerOutageAlarmed)) == 1


async def test_a_successor_goes_on_with_an_absence_that_was_noted_by_a_clock_ahead() -> None:
    world = healing_world()
    world.clock_ahead_ms = DAY_MS
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(5000)
    world.clock_ahead_ms = 0
    world.crash()
    await world.run(INTERVAL_MS - 2000)
    assert not told(world, HealPlanned)
    await heal_to_the_end(world, 3, within_ms=MAX_AHEAD_MS + 2 * INTERVAL_MS)


async def test_a_clock_behind_delays_a_heal_and_loses_none() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(5000)
    world.clock_ahead_ms = -HOUR_MS
    await world.run(INTERVAL_MS)
    world.clock_ahead_ms = 0
    await heal_to_the_end(world, 3, within_ms=20_000)
