"""Where nothing may begin, no time comes at which something might: an owner does not wake for it again and again."""

from drover.events.partitions import TopicPartition
from drover.reconcile.messages import VersionsSeen
from drover.state.phase import Phase
from drover.traits import known_traits, version_of
from tests.shard.world import CLUSTER, World, alter

KEYS = tuple(TopicPartition("orders", number) for number in range(5))


async def waiting() -> World:
    """Moves that were put off, since nobody leads their partitions."""
    made = World(brokers=6, joins_by_itself=False)
    made.model.create_topic("orders", {key.partition: (1, 2) for key in KEYS}, partition_bytes=1000)
    for broker in (1, 2):
        made.model.stop_broker(broker)
    await made.look()
    await made.settle()
    await made.send(alter({key: [1, 3] for key in KEYS}))
    await made.run(2000)
    assert {entry.phase for entry in made.state.reassignments.values()} == {Phase.PENDING}
    return made


def is_due(made: World) -> bool:
    wake_ms = made.core.wake_at_ms(made.now)
    return wake_ms is not None and wake_ms <= made.now.monotonic_ms


async def test_a_cluster_under_whose_name_another_one_answers_wakes_nobody() -> None:
    made = await waiting()
    made.model.kafka_cluster_id = "another"
    await made.run(5000)
    assert not is_due(made)
    made.model.kafka_cluster_id = "simulated-cluster"
    for broker in (1, 2):
        made.model.start_broker(broker)
    await made.run(5000)
    assert {entry.phase for entry in made.state.reassignments.values()} == {Phase.COPYING}


async def test_a_cluster_that_is_being_migrated_to_kraft_wakes_nobody() -> None:
    made = await waiting()
    old = version_of(known_traits("3.9"))
    migrating = {3: old, 4: version_of(known_traits("3.9", zookeeper_mode=True))}
    made.core.deliver(VersionsSeen(CLUSTER, migrating))
    await made.settle()
    assert made.state.is_migrating
    await made.run(5000)
    assert not is_due(made)
    for broker in (1, 2):
        made.model.start_broker(broker)
    made.core.deliver(VersionsSeen(CLUSTER, dict.fromkeys((3, 4), old)))
    await made.run(5000)
    assert {entry.phase for entry in made.state.reassignments.values()} == {Phase.COPYING}
