"""Two drains that are submitted in the same second: neither sends anything to the broker that the other empties."""

from drover.events.partitions import TopicPartition
from drover.testing.model import ClusterModel
from tests.shard.world import World, alter

FIRST, SECOND, THIRD = (TopicPartition("orders", number) for number in range(3))


def create(model: ClusterModel) -> None:
    model.create_topic("orders", {0: [1, 3], 1: [2, 1], 2: [2, 5]}, partition_bytes=1000)


async def test_of_two_drains_in_one_batch_the_later_one_sends_nothing_to_the_broker_of_the_earlier_one() -> None:
    world = World(brokers=5)
    create(world.model)
    world.put(alter({FIRST: (1, 2)}, id="drain-3", empties=(3,)))
    world.put(alter({SECOND: (3, 1), THIRD: (4, 5)}, id="drain-2", empties=(2,)))
    await world.turn()
    first, second = world.outcomes()
    assert (len(first.accepted), first.refusals) == (1, ())
    assert [(one.topic, one.partition) for one in second.accepted] == [THIRD]
    assert [(one.key, one.code.value) for one in second.refusals] == [(SECOND, "broker-emptied")]
    await world.finish()
    assert [world.replicas(key) for key in (FIRST, SECOND, THIRD)] == [(1, 2), (2, 1), (4, 5)]


async def test_a_successor_knows_what_open_plans_empty() -> None:
    world = World(brokers=5)
    create(world.model)
    world.hold_effects = True
    await world.send(alter({FIRST: (1, 4)}, id="drain-3", empties=(3,)))
    world.crash()
    assert world.state.plans_emptying == {3: "drain-3"}
    outcome = await world.send(alter({SECOND: (3, 1)}, id="drain-2", empties=(2,)))
    assert [one.code.value for one in outcome.refusals] == ["broker-emptied"]
    world.hold_effects = False
    await world.finish()
    assert world.state.plans_emptying == {}
