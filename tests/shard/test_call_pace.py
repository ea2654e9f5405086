"""Calls in ZooKeeper mode: no more is open at once than the controller answers in time, and nothing is left behind."""

from drover.events.partitions import TopicPartition
from drover.reconcile.messages import AlterPartitions, VersionsSeen
from drover.reconcile.moves.call_pace import FIRST_IN_ZOOKEEPER_MODE
from drover.state.scheduling import Limits
from drover.traits import known_traits
from tests.shard.world import CLUSTER, World, alter, rollback

PARTITIONS = 250
KEYS = [TopicPartition("many", number) for number in range(PARTITIONS)]


async def world_in_zookeeper_mode() -> World:
    world = World(traits=known_traits("3.9", zookeeper_mode=True), limits=Limits(max_moves_per_broker=PARTITIONS))
    world.model.create_topic("many", {key.partition: [1, 2] for key in KEYS}, partition_bytes=1000)
    world.model.replication.copy_bytes_per_second = 1
    await world.look()
    await world.settle()
    world.core.deliver(VersionsSeen(CLUSTER, await world.driver.broker_versions()))
    await world.settle()
    return world


def asked_for(world: World) -> int:
    """Count the partitions of the alters that are held back, and so are open."""
    return sum(len(effect.requests) for effect in world.held if isinstance(effect, AlterPartitions))


async def test_steps_and_cancels_are_sent_in_portions_and_all_of_them_end() -> None:
    world = await world_in_zookeeper_mode()
    world.hold_effects = True
    await world.send(alter({key: [1, 3] for key in KEYS}))
    await world.run(1000)
    assert asked_for(world) == FIRST_IN_ZOOKEEPER_MODE
    world.hold_effects = False
    await world.release_effects()
    await world.run(3000)
    assert len(world.model.moves()) == PARTITIONS
    await world.send(rollback(*KEYS))
    await world.finish()
    assert {world.replicas(key) for key in KEYS} == {(1, 2)}


async def test_while_the_controller_has_enough_to_do_nobody_is_woken_for_what_was_put_off() -> None:
    world = await world_in_zookeeper_mode()
    leaderless = TopicPartition("leaderless", 0)
    world.model.create_topic("leaderless", {0: [4]}, partition_bytes=1000)
    world.model.stop_broker(4)
    await world.run(1000)
    await world.send(alter({leaderless: [3]}))
    await world.run(1000)
    world.hold_effects = True
    await world.send(alter({key: [1, 3] for key in KEYS}))
    await world.run(3000)
    wake_ms = world.core.wake_at_ms(world.now)
    assert wake_ms is None or wake_ms > world.now.monotonic_ms
