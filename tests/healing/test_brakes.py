"""Brakes: mass failure, bytes per day, flapping; and several brokers at once."""

from collections import Counter

from msgspec import structs

from drover.events.commands import ChangeLimits
from drover.events.healing import (
    BrakeReason,
    HealEnd,
    HealEnded,
    HealingBraked,
    HealingReleased,
    HealPlanned,
    LeftReason,
)
from drover.events.reassignments import RollbackRequested, RollbackSkipped
from drover.fold.healing import brake_key
from tests.healing.support import INTERVAL_MS, heal_command, heal_to_the_end, healing_world, holders, told
from tests.shard.world import CLUSTER, World

FLAPPING_3 = brake_key(BrakeReason.FLAPPING, 3)


async def come_and_go(world: World, times: int, *, away_ms: int, back_ms: int) -> None:
    """Stop broker 3 and start it again, so many times."""
    for _ in range(times):
        world.model.stop_broker(3)
        await world.run(away_ms)
        world.model.start_broker(3)
        await world.run(back_ms)


async def flapping() -> World:
    """Make a world in which broker 3 is away and has come back three times, which is flapping by default."""
    world = healing_world()
    await world.run(1000)
    await come_and_go(world, 3, away_ms=6000, back_ms=3000)
    world.model.stop_broker(3)
    await world.run(6000)
    assert FLAPPING_3 in world.state.healing_brakes
    return world


async def test_more_dead_brokers_than_allowed_stop_all_healing_until_some_are_back() -> None:
    world = healing_world(brokers=9, partitions=9, mass_failure_brokers=2, mass_failure_percent=20)
    await world.run(1000)
    for broker in (3, 5, 7):
        world.model.stop_broker(broker)
    await world.run(3 * INTERVAL_MS)
    assert not told(world, HealPlanned)
    (braked,) = told(world, HealingBraked)
    assert braked.why is BrakeReason.MASS_FAILURE
    assert "3 of 9" in braked.detail
    world.model.start_broker(5)
    await world.run(2000)
    assert told(world, HealingReleased)
    await heal_to_the_end(world, 3)
    assert not holders(world, 7)


async def test_the_larger_of_number_and_share_counts() -> None:
    world = healing_world(brokers=9, partitions=9, mass_failure_brokers=1, mass_failure_percent=34)
    await world.run(1000)
    for broker in (3, 5, 7):
        world.model.stop_broker(broker)
    await heal_to_the_end(world, 3)
    assert not told(world, HealingBraked)


async def test_two_brokers_that_die_together_are_healed_by_one_plan() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    world.model.stop_broker(4)
    await heal_to_the_end(world, 3)
    await heal_to_the_end(world, 4)
    planned = told(world, HealPlanned)
    assert [event.brokers for event in planned] == [(3, 4)]


async def test_a_rack_that_dies_is_healed_onto_the_racks_that_are_left() -> None:
    """Of three racks with three brokers each one is gone: two replicas in one rack are better than one replica less."""
    world = healing_world(brokers=9, partitions=9)
    await world.run(1000)
    racks = {broker: state.rack for broker, state in world.model.brokers.items()}
    lost = [broker for broker, rack in racks.items() if rack == racks[3]]
    before = {key: partition.replicas for key, partition in world.model.each_partition()}
    assert all(len({racks[broker] for broker in replicas}) == 3 for replicas in before.values())
    for broker in lost:
        world.model.stop_broker(broker)
    for broker in lost:
        await heal_to_the_end(world, broker)
    assert [event.brokers for event in told(world, HealPlanned)] == [(3, 6, 9)]
    for key, partition in world.model.each_partition():
        assert set(partition.isr) == set(partition.replicas)
        assert len({racks[broker] for broker in partition.replicas}) == 2
        kept = [broker for broker in before[key] if broker not in lost]
        assert [broker for broker in partition.replicas if broker in before[key]] == kept
    new = Counter(
        broker for key, partition in world.model.each_partition() for broker in set(partition.replicas) - {*before[key]}
    )
    assert max(new.values()) - min(new.values()) <= 1, f"evenly: {new}"


async def test_a_rack_of_more_brokers_than_may_be_missing_is_a_mass_failure() -> None:
    world = healing_world(brokers=12, partitions=12)
    await world.run(1000)
    for broker in (3, 6, 9, 12):
        world.model.stop_broker(broker)
    await world.run(2 * INTERVAL_MS)
    (braked,) = told(world, HealingBraked)
    assert braked.why is BrakeReason.MASS_FAILURE
    assert not told(world, HealPlanned)


async def test_a_partition_waits_for_the_time_of_its_other_dead_broker() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(INTERVAL_MS // 2)
    world.model.stop_broker(4)
    await world.run(INTERVAL_MS // 2 + 6000)
    left = world.state.heal_left
    assert left is not None
    assert {one.why for one in left.partitions} == {LeftReason.WAITS}
    assert left.count == len(holders(world, 3))
    await world.run(INTERVAL_MS)
    await heal_to_the_end(world, 3)
    await heal_to_the_end(world, 4)


async def test_a_second_broker_that_is_due_makes_one_new_plan_for_both() -> None:
    world = healing_world(model={"copy_bytes_per_second": 20_000}, chunk_partitions=1)
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(INTERVAL_MS // 2)
    world.model.stop_broker(6)
    await world.run(INTERVAL_MS // 2 + 8000)
    assert world.state.heal is not None
    assert world.state.heal.brokers == (3,)
    await world.run(INTERVAL_MS)
    ended = told(world, HealEnded)
    assert ended[0].why is HealEnd.REPLANNED
    await heal_to_the_end(world, 3, within_ms=900_000)
    await heal_to_the_end(world, 6, within_ms=900_000)


async def test_a_newcomer_that_dies_for_good_is_replaced_as_well() -> None:
    world = healing_world(model={"copy_bytes_per_second": 20_000}, chunk_partitions=1)
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(INTERVAL_MS + 8000)
    running = world.state.heal_running
    assert running is not None
    (newcomer,) = set(world.reassignment(running.partitions[0]).target) - set(
        world.reassignment(running.partitions[0]).original
    )
    world.model.stop_broker(newcomer)
    await heal_to_the_end(world, 3, within_ms=900_000)
    await heal_to_the_end(world, newcomer, within_ms=900_000)
    assert all(set(partition.isr) == set(partition.replicas) for _, partition in world.model.each_partition())


async def test_no_more_bytes_begin_within_a_day_than_allowed() -> None:
    world = healing_world(chunk_partitions=1, max_bytes_per_day=2_500_000)
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(5 * INTERVAL_MS)
    (braked,) = told(world, HealingBraked)
    assert braked.why is BrakeReason.BYTES_PER_DAY
    assert len(holders(world, 3)) == 1
    world.model.advance(25 * 3_600_000)
    await heal_to_the_end(world, 3)


async def test_a_broker_that_flaps_is_left_alone_until_it_has_calmed_down() -> None:
    world = healing_world(flapping_returns=2, flapping_window_ms=600_000)
    await world.run(1000)
    await come_and_go(world, 2, away_ms=5000, back_ms=2000)
    world.model.stop_broker(3)
    await world.run(3 * INTERVAL_MS)
    (braked,) = told(world, HealingBraked)
    assert (braked.why, braked.broker) == (BrakeReason.FLAPPING, 3)
    assert not told(world, HealPlanned)
    await heal_to_the_end(world, 3, within_ms=600_000)


async def test_somebody_may_start_what_flaps() -> None:
    world = healing_world(flapping_returns=1, flapping_window_ms=600_000)
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(5000)
    world.model.start_broker(3)
    await world.run(2000)
    world.model.stop_broker(3)
    await world.run(5000)
    await world.send(heal_command("start", 3))
    await heal_to_the_end(world, 3, within_ms=20_000)


async def test_settings_that_allow_more_returns_release_a_broker_that_flaps_after_a_restart() -> None:
    world = await flapping()
    assert world.limits.healing is not None
    world.limits = structs.replace(world.limits, healing=structs.replace(world.limits.healing, flapping_returns=5))
    for _ in range(3):
        world.crash()
        await world.turn()  # the first pass of an owner comes before its first look at the cluster
    await world.run(2000)
    assert FLAPPING_3 not in world.state.healing_brakes
    await heal_to_the_end(world, 3)


async def test_a_command_that_allows_more_returns_releases_a_broker_that_flaps_also_after_a_takeover() -> None:
    world = await flapping()
    world.crash()
    values = {"heal.flapping_returns": 5}
    await world.send(ChangeLimits(id="more", cluster=CLUSTER, by="ana", reason="patience", values={**values}))
    await world.run(2000)
    assert FLAPPING_3 not in world.state.healing_brakes
    await heal_to_the_end(world, 3)


async def test_a_chunk_that_cannot_be_taken_back_yet_is_asked_once() -> None:
    world = healing_world(
        model={"copy_bytes_per_second": 1000}, partitions=0, mass_failure_brokers=6, failure_interval_ms=5000
    )
    world.model.create_topic("one", {0: [1, 2, 3]}, partition_bytes=1_000_000)
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(20_000)
    running = world.state.heal_running
    assert running is not None
    (newcomer,) = set(world.reassignment(running.partitions[0]).target) - {1, 2, 3}
    for broker in (1, 2, newcomer):
        world.model.stop_broker(broker)
    await world.run(120_000)
    assert told(world, RollbackSkipped), "nobody is left in sync"
    assert len(told(world, RollbackRequested)) == 1
