"""Two plans over various topics, one after the other."""

from drover.events.partitions import TopicPartition
from tests.shard.world import World, alter

ORDERS = [TopicPartition("orders", number) for number in range(2)]
PAYMENTS = [TopicPartition("payments", number) for number in range(2)]
DELIVERIES = TopicPartition("deliveries", 0)


async def test_tv_133_each_plan_makes_exactly_its_lists_and_leaves_the_others() -> None:
    world = World(brokers=4)
    world.model.create_topic("orders", {0: (1, 2, 3), 1: (1, 2, 3)})
    world.model.create_topic("payments", {0: (1, 2), 1: (1, 2)})
    world.model.create_topic("deliveries", {0: (1,)})
    await world.send(alter({ORDERS[0]: (1, 3, 4), PAYMENTS[1]: (2, 3), DELIVERIES: (2, 3)}))
    await world.finish()
    first = [world.replicas(key) for key in (*ORDERS, *PAYMENTS, DELIVERIES)]
    assert first == [(1, 3, 4), (1, 2, 3), (1, 2), (2, 3), (2, 3)]
    await world.send(alter({ORDERS[1]: (4, 2, 3), PAYMENTS[1]: (3, 2), DELIVERIES: (2, 3, 4)}))
    await world.finish()
    second = [world.replicas(key) for key in (*ORDERS, *PAYMENTS, DELIVERIES)]
    assert second == [(1, 3, 4), (4, 2, 3), (1, 2), (3, 2), (2, 3, 4)]
