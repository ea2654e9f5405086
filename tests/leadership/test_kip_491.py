"""The examples of KIP-491's page: which broker leads while brokers are listed."""

import pytest

from drover.events.partitions import TopicPartition
from tests.leadership.support import blacklist
from tests.shard.world import World

T0 = TopicPartition("t", 0)


def led(world: World) -> tuple[int | None, tuple[int, ...]]:
    partition = world.model.partition(T0)
    assert partition is not None
    return partition.leader, partition.replicas


async def listed(*brokers: int, dead: tuple[int, ...] = ()) -> World:
    """One partition with the replicas 1, 2 and 3, some of them dead, while these brokers are listed."""
    world = World(brokers=4)
    world.model.create_topic("t", {0: (1, 2, 3)})
    for broker in dead:
        world.model.stop_broker(broker)
    await world.run(1000)
    await world.send(blacklist(*brokers))
    await world.run(15_000)
    return world


@pytest.mark.parametrize(("dead", "leader"), [((), 2), ((2,), 3), ((2, 3), 1)])
async def test_tv_222_a_listed_broker_leads_only_where_nobody_else_is_in_sync(
    dead: tuple[int, ...], leader: int
) -> None:
    """R491-2: it comes last and is not excluded."""
    assert led(await listed(1, dead=dead))[0] == leader


async def test_tv_223_when_the_leader_fails_the_next_unlisted_replica_leads() -> None:
    """R491-3."""
    world = await listed(1)
    assert led(world)[0] == 2
    world.model.stop_broker(2)
    assert led(world)[0] == 3


async def test_tv_224_a_broker_that_leaves_the_list_regains_its_place_and_the_others_stay_listed() -> None:
    """R491-1, R491-4: with lazy leadership no leader moves by that itself; see test_modes.py."""
    world = World(brokers=4)
    world.model.create_topic("t", {0: (2, 1, 3, 4)})
    await world.run(1000)
    await world.send(blacklist(1, 2, 4))
    await world.run(5000)
    assert led(world) == (3, (3, 2, 1, 4))
    await world.send(blacklist(1, 4))
    await world.run(5000)
    assert led(world) == (2, (2, 3, 1, 4))
