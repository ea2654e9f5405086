"""Brokers that were unregistered after their death are replaced like others: no list that is sent names one."""

from drover.events.reassignments import CallIntended, CallRejected
from tests.healing.support import heal_to_the_end, healing_world, holders, told


async def test_two_unregistered_brokers_are_replaced_at_once() -> None:
    """Kafka refuses a list in which only one of the two was replaced."""
    world = healing_world(brokers=8, partitions=4)
    await world.run(1000)
    for broker in (1, 2):
        world.model.stop_broker(broker)
        world.model.unregister(broker)
    await heal_to_the_end(world, 1)
    await heal_to_the_end(world, 2)
    assert not holders(world, 1)
    assert not told(world, CallRejected)
    sent = {broker for event in told(world, CallIntended) for broker in event.replicas or ()}
    assert sent.isdisjoint({1, 2})
