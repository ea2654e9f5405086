"""How far producers and consumers have come, on a real Kafka: the offsets of leaders and of groups."""

import asyncio

import pytest
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition
from kafka.structs import OffsetAndMetadata

from drover.cluster.kafka import KafkaDriver
from drover.cluster.sockets import DIRECT
from drover.events.partitions import TopicPartition
from drover.local import LocalCluster
from tests.cluster.support import RealCluster, real_cluster

pytestmark = pytest.mark.cluster
GROUP = "reads-positions"


async def test_positions_are_the_offsets_of_leaders_and_what_groups_have_committed(local_cluster: LocalCluster) -> None:
    cluster: RealCluster = await real_cluster(local_cluster)
    driver = KafkaDriver("positions", local_cluster.bootstrap)
    try:
        topic = await cluster.create_topic({0: (1, 2), 1: (3, 4)}, records=5)
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        await asyncio.to_thread(commit, local_cluster.bootstrap, topic, 3)
        positions = await driver.positions({first: 1, second: 3})
    finally:
        await driver.close()
        await cluster.close()
    assert positions.unread == ()
    assert positions.begins == {first: 0, second: 0}
    assert positions.ends == {first: 5, second: 5}
    assert positions.committed[GROUP] == {first: 3}


def commit(bootstrap: str, topic: str, offset: int) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap.split(","), group_id=GROUP, enable_auto_commit=False, proxy_url=DIRECT
    )
    try:
        partition = KafkaPartition(topic, 0)
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(offset, "", -1)})
    finally:
        consumer.close()
