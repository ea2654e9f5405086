"""The contract of `ClusterDriver.inventory`, on the simulated twin and on a real Kafka 4.3.1."""

import pytest

from drover.cluster.port import AlterRequest
from drover.events.partitions import TopicPartition
from drover.facts import INVALID_REPLICA_ASSIGNMENT, NONE, PartitionFacts
from drover.inventory import Inventory, RegisteredBroker, named_brokers
from tests.cluster.support import RECORD_BYTES, ClusterUnderTest, RealCluster, eventually, settled

RECORDS = 2


async def test_an_inventory_shows_every_partition_as_an_observation_does(cluster: ClusterUnderTest) -> None:
    first = await cluster.create_topic({0: (1, 2, 3), 1: (2, 3, 1)})
    second = await cluster.create_topic({0: (4,)})
    asked = [TopicPartition(first, 0), TopicPartition(first, 1), TopicPartition(second, 0)]
    inventory = await cluster.driver.inventory()
    observed = await cluster.driver.observe(asked)
    assert {key: inventory.partitions[key] for key in asked} == dict(observed.partitions)
    assert inventory.kafka_cluster_id == observed.kafka_cluster_id
    assert list(inventory.partitions) == sorted(inventory.partitions)


async def test_an_inventory_knows_the_size_of_every_copy_and_of_every_disk(cluster: ClusterUnderTest) -> None:
    topic = await cluster.create_topic({0: (1, 3)}, records=RECORDS)
    partition = TopicPartition(topic, 0)
    inventory = await eventually(
        cluster,
        cluster.driver.inventory,
        lambda found: min(found.replica_bytes[partition].values()) >= RECORDS * RECORD_BYTES,
    )
    held = inventory.replica_bytes[partition]
    assert set(held) == {1, 3}
    assert held[1] == held[3]
    assert [broker.rack for broker in inventory.brokers.values()] == list(
        (await cluster.driver.identify()).racks.values()
    )
    for broker in inventory.brokers.values():
        assert broker.is_alive
        assert broker.directories is not None
        (directory,) = broker.directories
        assert directory.total_bytes is not None
        assert directory.usable_bytes is not None
        assert 0 < directory.usable_bytes <= directory.total_bytes
        assert directory.code == NONE


@pytest.mark.kills(3)
async def test_a_dead_broker_keeps_its_rack_and_has_no_disks_and_what_it_leads_moves_on(
    cluster: ClusterUnderTest,
) -> None:
    led = TopicPartition(await cluster.create_topic({0: (3, 1)}, records=1), 0)
    alone = TopicPartition(await cluster.create_topic({0: (3,)}), 0)
    rack = (await cluster.driver.identify()).racks[3]
    await cluster.stop_broker(3)

    def has_noticed(found: Inventory) -> bool:
        return found.partitions[led].leader == 1 and found.partitions[alone].leader is None

    inventory = await eventually(cluster, cluster.driver.inventory, has_noticed)
    assert rack is not None
    # DescribeCluster shows fenced brokers since 4.0.
    known_rack = None if cluster.traits.kafka.startswith("3") and isinstance(cluster, RealCluster) else rack
    assert inventory.brokers[3] == RegisteredBroker(3, known_rack, is_alive=False)
    assert inventory.partitions[led].isr == (1,)
    assert set(inventory.replica_bytes[led]) == {1}

    assert (await cluster.driver.alter([AlterRequest(led, (1, 3, 4))]))[led].code == NONE
    moving = await eventually(cluster, cluster.driver.inventory, lambda found: 4 in found.partitions[led].replicas)
    move = moving.partitions[led].move
    assert move is None or move.adding == (4,)
    await cluster.start_broker(3)
    await settled(cluster, led, (1, 3, 4))
    back = await cluster.driver.inventory()
    assert back.brokers[3].is_alive
    assert back.brokers[3].rack == rack


async def test_the_log_directories_of_every_broker_are_told_without_topics_too(cluster: ClusterUnderTest) -> None:
    topic = await cluster.create_topic({0: (1, 3)}, records=RECORDS)
    alone = await cluster.driver.log_directories(())
    inventory = await cluster.driver.inventory()
    assert alone.sizes == {}
    assert set(alone.directories) == set(inventory.brokers)
    seen = await cluster.driver.log_directories([topic])
    assert set(seen.sizes[TopicPartition(topic, 0)]) == {1, 3}
    for found in (alone, seen):
        paths = {broker: [one.path for one in there] for broker, there in found.directories.items()}
        assert paths == {
            broker: [one.path for one in known.directories or ()] for broker, known in inventory.brokers.items()
        }
        assert all(not one.is_cordoned and one.code == NONE for there in found.directories.values() for one in there)


async def test_cordoned_directories_are_told_and_kafka_moves_replicas_there_all_the_same_before_4_4(
    cluster: ClusterUnderTest,
) -> None:
    """KIP-1066: since 4.3 brokers say it. The controller of 4.4 refuses every list that names such a broker."""
    if cluster.traits.kafka not in {"4.3", "4.4"}:
        assert not await cordoned_brokers(cluster)
        return
    topic = await cluster.create_topic({0: (1, 2), 1: (1, 4), 2: (4, 1)})
    new, present, leaving = (TopicPartition(topic, number) for number in range(3))
    is_taken = NONE if cluster.traits.kafka == "4.3" else INVALID_REPLICA_ASSIGNMENT
    await cluster.cordon(4, cordoned=True)
    try:
        await eventually(cluster, lambda: cordoned_brokers(cluster), lambda found: found == {4})
        inventory = await cluster.driver.inventory()
        assert all(one.is_cordoned for one in inventory.brokers[4].directories or ())
        targets = {new: (1, 4), present: (4, 1), leaving: (2, 1)}
        answers = await cluster.driver.alter([AlterRequest(key, replicas) for key, replicas in targets.items()])
        assert {key: answer.code for key, answer in answers.items()} == {
            new: is_taken,
            present: is_taken,
            leaving: NONE,
        }
        for key, replicas in targets.items():
            if answers[key].code == NONE:
                await settled(cluster, key, replicas)
    finally:
        await cluster.cordon(4, cordoned=False)
    await eventually(cluster, lambda: cordoned_brokers(cluster), lambda found: found == set())


async def cordoned_brokers(cluster: ClusterUnderTest) -> set[int]:
    """Return the brokers with a cordoned log directory."""
    directories = (await cluster.driver.log_directories(())).directories
    return {broker for broker, found in directories.items() if any(one.is_cordoned for one in found)}


def test_a_broker_that_only_replica_lists_name_is_dead_and_its_rack_unknown() -> None:
    known = {2: RegisteredBroker(2, "b", is_alive=True)}
    partitions = {TopicPartition("t", 0): PartitionFacts("id", 2, (9, 2), (2,))}
    assert named_brokers(known, partitions) == {**known, 9: RegisteredBroker(9, None, is_alive=False)}
