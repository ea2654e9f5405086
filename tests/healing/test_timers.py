"""An absence is noted, alarmed about, and healed when its time has come; a return stops the timer."""

import pytest

from drover.events.commands import ChangeLimits
from drover.events.healing import (
    BrokerOutageAlarmed,
    BrokerOutageEnded,
    BrokerOutageNoted,
    HealEnd,
    HealEnded,
    HealPlanned,
    OutageEnd,
)
from drover.state.healing import Absence
from drover.state.scheduling import Limits
from tests.healing.support import (
    ALARM_MS,
    INTERVAL_MS,
    failed,
    heal_command,
    heal_to_the_end,
    healing_world,
    holders,
    returned,
    told,
)
from tests.shard.world import CLUSTER, World


def age_at(world: World, kind: type) -> list[int]:
    """Tell how long after the first note each such event was recorded."""
    begun: int | None = None
    ages = []
    for batch in world.batches():
        for event in batch.events:
            if begun is None and isinstance(event, BrokerOutageNoted):
                begun = batch.at_ms
            if isinstance(event, kind):
                assert begun is not None
                ages.append(batch.at_ms - begun)
    return ages


async def test_a_dead_broker_is_alarmed_about_and_then_replaced_in_place() -> None:
    """TV-218: after the interval."""
    world = healing_world()
    await world.run(1000)
    before = {key: partition.replicas for key, partition in world.model.each_partition()}
    world.model.stop_broker(3)
    await heal_to_the_end(world, 3)
    (alarm,), (planned,) = age_at(world, BrokerOutageAlarmed), age_at(world, HealPlanned)
    assert ALARM_MS <= alarm <= ALARM_MS + 2000
    assert INTERVAL_MS <= planned <= INTERVAL_MS + 2000
    for key, partition in world.model.each_partition():
        places = [place for place, broker in enumerate(before[key]) if broker != 3]
        assert [partition.replicas[place] for place in places] == [before[key][place] for place in places]
        assert set(partition.isr) == set(partition.replicas)


async def test_what_was_healed_is_not_moved_back_and_the_return_is_noted() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await heal_to_the_end(world, 3)
    await world.run(10_000)
    assert 3 in world.state.emptied_brokers
    assert not world.state.absent_brokers
    world.model.start_broker(3)
    await world.run(130_000)
    assert not world.state.emptied_brokers
    assert told(world, BrokerOutageEnded)[-1] == BrokerOutageEnded(cluster=CLUSTER, broker=3, why=OutageEnd.RETURNED)
    assert not holders(world, 3)


@pytest.mark.parametrize("early_ms", [1000, 12_000])
async def test_a_broker_that_returns_before_its_time_is_not_healed_and_starts_anew(early_ms: int) -> None:
    """TV-218: before the interval is over."""
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(INTERVAL_MS + 2000 - early_ms)
    world.model.start_broker(3)
    await world.run(3000)
    assert not told(world, HealPlanned)
    assert not world.state.absent_brokers
    world.model.stop_broker(3)
    await world.run(INTERVAL_MS)
    assert not told(world, HealPlanned), "the timer of the second absence begins with it"
    await heal_to_the_end(world, 3)


async def test_one_look_that_misses_a_broker_is_not_believed() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(1000)
    world.model.start_broker(3)
    await world.run(20_000)
    assert not told(world, BrokerOutageNoted)


async def test_with_minus_one_there_is_an_alarm_and_nothing_moves() -> None:
    """TV-218: an interval of -1."""
    world = healing_world(failure_interval_ms=-1)
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(3 * INTERVAL_MS)
    assert len(told(world, BrokerOutageAlarmed)) == 1
    assert not told(world, HealPlanned)


async def test_with_zero_a_broker_is_healed_at_once() -> None:
    world = healing_world(failure_interval_ms=0, alarm_ms=-1)
    await world.run(1000)
    world.model.stop_broker(3)
    await heal_to_the_end(world, 3, within_ms=20_000)
    assert not told(world, BrokerOutageAlarmed)


async def test_without_the_section_absent_brokers_are_not_even_noted() -> None:
    world = World(brokers=4)
    world.model.create_topic("orders", {0: [1, 2, 3]})
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(20_000)
    await world.send(failed(3, 0))
    assert not world.state.absent_brokers
    outcome = await world.send(heal_command("start", 3))
    assert outcome.refusals[0].code == "healing-off"


async def test_a_broker_that_was_drained_before_it_went_is_not_missed() -> None:
    world = healing_world(partitions=1)
    await world.run(1000)
    world.model.stop_broker(5)
    await world.run(120_000)
    assert not told(world, BrokerOutageNoted)


async def test_a_broker_that_was_away_before_anybody_looked_is_found() -> None:
    world = healing_world()
    world.model.stop_broker(3)
    await heal_to_the_end(world, 3)
    assert 3 in {event.broker for event in told(world, BrokerOutageNoted)}


async def test_the_first_report_counts_in_log_time_and_not_by_the_clock_of_its_client() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(1000)
    reported_ms = world.now.wall_ms
    await world.send(failed(3, reported_ms - 10 * INTERVAL_MS))
    assert world.state.absent_brokers == {3: Absence(reported_ms)}, "one look has missed it"
    await world.run(10_000)
    await world.send(failed(3, reported_ms, id="again"))
    assert (world.state.absent_brokers[3].since_ms, world.state.absent_brokers[3].seen) == (reported_ms, True)
    await world.run(INTERVAL_MS - 12_000)
    assert not told(world, HealPlanned)
    await world.run(4000)
    assert told(world, HealPlanned)


async def test_a_report_about_a_broker_that_lives_starts_no_timer() -> None:
    world = healing_world()
    await world.run(1000)
    outcome = await world.send(failed(3, 0))
    assert "broker 3 is alive" in outcome.remarks[0]
    assert not world.state.absent_brokers
    await world.run(2 * INTERVAL_MS)
    assert not told(world, BrokerOutageNoted, HealPlanned)
    world.model.stop_broker(3)
    await world.run(INTERVAL_MS)
    assert not told(world, HealPlanned), "the timer begins when the broker is missed"
    await heal_to_the_end(world, 3)


async def test_a_reported_broker_that_is_seen_alive_is_not_away() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(1000)
    await world.send(failed(3, 0))
    assert 3 in world.state.absent_brokers
    world.model.start_broker(3)
    await world.run(2000)
    (ended,) = told(world, BrokerOutageEnded)
    assert ended == BrokerOutageEnded(cluster=CLUSTER, broker=3, why=OutageEnd.STILL_ALIVE)


async def test_a_report_about_a_healed_broker_starts_no_second_absence() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await heal_to_the_end(world, 3)
    await world.run(10_000)
    noted = len(told(world, BrokerOutageNoted))
    await world.send(failed(3, 0))
    assert 3 in world.state.emptied_brokers
    assert len(told(world, BrokerOutageNoted)) == noted


async def test_a_report_of_a_return_starts_the_timer_anew() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(INTERVAL_MS - 10_000)
    await world.send(failed(3, 0))
    await world.send(returned(3, 1))
    await world.run(INTERVAL_MS - 5000)
    assert not told(world, HealPlanned), "it is missed again, and for the first time"
    await heal_to_the_end(world, 3)


async def test_a_successor_knows_since_when_a_broker_is_away() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(INTERVAL_MS // 2)
    world.crash()
    await world.run(INTERVAL_MS // 2 + 5000)
    assert len(told(world, HealPlanned)) == 1
    assert len(told(world, BrokerOutageNoted)) == 1


async def test_a_cluster_out_of_reach_is_no_dead_broker() -> None:
    world = healing_world()
    await world.run(1000)
    world.driver.unreachable = True
    await world.run(2 * INTERVAL_MS)
    world.driver.unreachable = False
    await world.run(5000)
    assert not told(world, BrokerOutageNoted, HealPlanned)


async def test_a_broker_that_came_back_while_the_cluster_was_out_of_reach_is_not_healed() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(5000)
    world.driver.unreachable = True
    await world.run(INTERVAL_MS)
    world.model.start_broker(3)
    await world.run(INTERVAL_MS)
    world.driver.unreachable = False
    await world.run(5000)
    assert not told(world, HealPlanned)
    assert not world.state.absent_brokers


async def test_settings_that_are_removed_end_it() -> None:
    world = healing_world(model={"copy_bytes_per_second": 100_000})
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(INTERVAL_MS + 6000)
    assert world.state.heal is not None
    world.limits = Limits()
    world.crash()
    await world.finish()
    assert not world.state.heal_chunks
    assert not world.state.absent_brokers
    (ended,) = told(world, HealEnded)
    assert ended.why is HealEnd.STOPPED


async def test_a_command_changes_the_time_and_wins_over_the_settings() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(5000)
    never = ChangeLimits(
        id="never", cluster=CLUSTER, by="ana", reason="maintenance", values={"heal.failure_interval_ms": -1}
    )
    await world.send(never)
    world.crash()
    await world.run(2 * INTERVAL_MS)
    assert not told(world, HealPlanned)
    soon = ChangeLimits(
        id="soon", cluster=CLUSTER, by="ana", reason="over", values={"kafka.heal.failure.interval": 3 * INTERVAL_MS}
    )
    await world.send(soon)
    await heal_to_the_end(world, 3)
    assert age_at(world, HealPlanned)[0] >= 3 * INTERVAL_MS
