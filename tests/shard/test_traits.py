"""The traits of a cluster's version in the log, and what Drover does differently where they differ."""

import pytest

from drover.client.views.waiting_reason import waiting_reason
from drover.events.clusters import ClusterTraitsSeen
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.events.refusals import RefusalCode
from drover.events.traits import Traits
from drover.reconcile.messages import VersionsSeen
from drover.state.scheduling import Limits
from drover.traits import LATEST, BrokerVersion, known_traits, version_of
from tests.shard.world import CLUSTER, World, alter

ORDERS = TopicPartition("orders", 0)
OLD = known_traits("3.9")
VERSIONS = [OLD, known_traits("3.9", zookeeper_mode=True), LATEST]
NAMES = ["3.9", "ZooKeeper mode", "4.3"]


async def world_of(traits: Traits, *, brokers: int = 5, stepping: Stepping = Stepping.GROW) -> World:
    """Return a world whose owner has seen the cluster and its version; orders-0 is on 1, 2 and 3."""
    limits = Limits(max_replicas_per_step=1, stepping=stepping)
    world = World(brokers=brokers, limits=limits, traits=traits, joins_by_itself=True)
    world.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000)
    await world.look()
    await world.settle()
    world.core.deliver(VersionsSeen(CLUSTER, await world.driver.broker_versions()))
    await world.settle()
    return world


def told(world: World) -> list[Traits]:
    return [event.traits for event in world.events() if isinstance(event, ClusterTraitsSeen)]


async def say(world: World, *versions: BrokerVersion) -> None:
    world.core.deliver(VersionsSeen(CLUSTER, dict(enumerate(versions, 1))))
    await world.settle()


async def test_the_traits_are_recorded_once_as_long_as_they_stay_the_same() -> None:
    world = await world_of(LATEST)
    await say(world, version_of(LATEST), version_of(LATEST))
    assert told(world) == [LATEST]
    assert world.state.traits == LATEST


async def test_before_the_cluster_is_identified_nothing_is_recorded_and_an_empty_answer_changes_nothing() -> None:
    world = World(traits=LATEST)
    await say(world, version_of(LATEST))
    assert told(world) == []
    world = await world_of(LATEST)
    await say(world)
    assert told(world) == [LATEST]


async def test_an_upgrade_in_the_middle_of_a_plan_is_noticed_when_it_begins_and_when_it_ends() -> None:
    world = await world_of(OLD)
    world.model.replication.copy_bytes_per_second = 100
    await world.send(alter({ORDERS: [4, 2, 3]}))
    await world.run(500)
    assert world.state.moves.in_flight
    await say(world, version_of(LATEST), version_of(OLD), version_of(OLD))
    await say(world, *[version_of(LATEST)] * 3)
    assert told(world) == [OLD, Traits(kafka="3.9 and 4.3"), LATEST]
    world.model.replication.copy_bytes_per_second = None
    await world.finish()
    assert world.replicas(ORDERS) == (4, 2, 3)


async def test_while_a_cluster_is_migrated_to_kraft_alters_are_refused_and_no_step_begins() -> None:
    world = await world_of(OLD)
    await world.freeze()
    assert (await world.send(alter({ORDERS: [4, 2, 3]}, id="before"))).verdict == "accepted"
    await say(world, version_of(OLD), version_of(known_traits("3.9", zookeeper_mode=True)))
    await world.unfreeze()
    await world.run(2000)
    assert world.model.moves() == {}
    reason = waiting_reason(world.state, ORDERS)
    assert reason is not None
    assert "migrated from ZooKeeper to KRaft" in str(reason)
    refused = await world.send(alter({ORDERS: [5, 2, 3]}, id="during"))
    assert [(one.code, "migrated" in one.detail) for one in refused.refusals] == [
        (RefusalCode.CLUSTER_UNAVAILABLE, True)
    ]
    await say(world, version_of(OLD), version_of(OLD))
    await world.finish()
    assert world.replicas(ORDERS) == (4, 2, 3)


@pytest.mark.parametrize("stepping", list(Stepping))
@pytest.mark.parametrize("traits", VERSIONS, ids=NAMES)
async def test_a_move_off_a_dead_broker_that_takes_several_steps_ends_on_every_version(
    traits: Traits, stepping: Stepping
) -> None:
    """Where Kafka waits for the whole target of a step, none may keep the dead replica."""
    world = await world_of(traits, stepping=stepping)
    world.model.stop_broker(3)
    await world.run(500)
    await world.send(alter({ORDERS: [1, 4, 5]}))
    await world.finish()
    assert world.replicas(ORDERS) == (1, 4, 5)


@pytest.mark.parametrize("stepping", list(Stepping))
@pytest.mark.parametrize("traits", VERSIONS, ids=NAMES)
async def test_a_move_off_two_dead_brokers_below_min_isr_ends_on_every_version(
    traits: Traits, stepping: Stepping
) -> None:
    world = await world_of(traits, stepping=stepping)
    world.model.topics["orders"].configs["min.insync.replicas"] = "2"
    world.model.stop_broker(2)
    world.model.stop_broker(3)
    await world.run(500)
    await world.send(alter({ORDERS: [1, 4, 5]}))
    await world.finish()
    assert world.replicas(ORDERS) == (1, 4, 5)


@pytest.mark.parametrize("traits", VERSIONS, ids=NAMES)
async def test_a_kept_replica_that_is_dead_is_named_where_kafka_waits_for_it(traits: Traits) -> None:
    world = await world_of(traits)
    world.model.stop_broker(3)
    await world.run(500)
    await world.send(alter({ORDERS: [1, 4, 3]}))
    await world.run(5000)
    if traits is LATEST:
        assert world.is_idle
        assert world.replicas(ORDERS) == (1, 4, 3)
        return
    reason = waiting_reason(world.state, ORDERS)
    assert reason is not None
    assert "replicas 3 to be in the ISR" in str(reason)
    world.model.start_broker(3)
    await world.finish()
    assert world.replicas(ORDERS) == (1, 4, 3)


@pytest.mark.parametrize("traits", VERSIONS, ids=NAMES)
async def test_a_dead_destination_waits_at_the_gate_on_every_version(traits: Traits) -> None:
    world = await world_of(traits)
    await world.freeze()
    await world.send(alter({ORDERS: [1, 2, 4]}))
    world.model.stop_broker(4)
    await world.run(500)
    await world.unfreeze()
    await world.run(3000)
    reason = waiting_reason(world.state, ORDERS)
    assert reason is not None
    assert "broker 4 is not alive" in str(reason)
    world.model.start_broker(4)
    await world.finish()
    assert world.replicas(ORDERS) == (1, 2, 4)
