"""The two clusters that the contract suite runs on, behind one small set of test verbs."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Protocol, TypeVar

from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import TopicAlreadyExistsError

from drover.cluster.kafka import KafkaDriver
from drover.cluster.port import ClusterDriver
from drover.cluster.sockets import DIRECT
from drover.events.partitions import TopicPartition
from drover.events.traits import Traits
from drover.facts import Observation, PartitionFacts
from drover.local import LocalCluster
from drover.testing.model import ClusterModel
from drover.testing.simulated import SimulatedDriver
from drover.traits import BrokerVersion, is_known_release, known_traits, traits_of

Value = TypeVar("Value")
RECORD_BYTES = 1 << 16
_names = count(1)


class ClusterUnderTest(Protocol):
    """What a contract test may do to a cluster besides using its driver; brokers are 1 to 4 in three racks."""

    driver: ClusterDriver
    traits: Traits

    async def create_topic(
        self, assignments: Mapping[int, Sequence[int]], *, records: int = 0, configs: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic with records of 64 KiB in every partition and return its name once it is led everywhere."""
        ...

    async def recreate_topic(self, name: str, assignments: Mapping[int, Sequence[int]]) -> None:
        """Delete a topic and create it again under the same name."""
        ...

    async def set_topic_config(self, topic: str, key: str, value: str) -> None:
        """Set one config as another operator would."""
        ...

    async def cordon(self, broker: int, *, cordoned: bool) -> None:
        """Cordon all log directories of a broker of Kafka 4.3 or later, or end that."""
        ...

    async def stop_broker(self, broker: int) -> None:
        """Kill a broker and wait until the cluster has noticed."""
        ...

    async def start_broker(self, broker: int) -> None:
        """Bring a broker back and wait until the cluster has noticed."""
        ...

    async def pass_time(self) -> None:
        """Let the cluster work a little."""
        ...


async def eventually(
    cluster: ClusterUnderTest, look: Callable[[], Awaitable[Value]], wanted: Callable[[Value], bool]
) -> Value:
    """Look until the value is as wanted, for at most a minute, and return it."""
    deadline = time.monotonic() + 60
    while True:
        value = await look()
        if wanted(value):
            return value
        assert time.monotonic() < deadline, f"still {value}"
        await cluster.pass_time()


async def facts(cluster: ClusterUnderTest, partition: TopicPartition) -> PartitionFacts:
    """Return one existing partition as an observation shows it."""

    async def look() -> Observation:
        return await cluster.driver.observe([partition])

    observation = await eventually(cluster, look, lambda seen: seen.partitions.get(partition) is not None)
    found = observation.partitions[partition]
    assert found is not None
    return found


async def settled(cluster: ClusterUnderTest, partition: TopicPartition, replicas: Sequence[int]) -> PartitionFacts:
    """Wait until a partition moves no more and has exactly these replicas in this order."""
    return await eventually(
        cluster,
        lambda: facts(cluster, partition),
        lambda seen: seen.move is None and seen.replicas == tuple(replicas),
    )


class SimulatedCluster:
    """The simulated twin under test; copying takes model time where a test throttles it."""

    def __init__(self, traits: Traits) -> None:
        self.traits = traits
        self.model = ClusterModel({1: "r1", 2: "r2", 3: "r3", 4: "r1"}, traits=traits)
        self.driver: ClusterDriver = SimulatedDriver(self.model, "under-test")

    async def create_topic(
        self, assignments: Mapping[int, Sequence[int]], *, records: int = 0, configs: Mapping[str, str] | None = None
    ) -> str:
        name = f"contract-{next(_names)}"
        self.model.create_topic(name, assignments, configs=configs, partition_bytes=records * RECORD_BYTES)
        return name

    async def recreate_topic(self, name: str, assignments: Mapping[int, Sequence[int]]) -> None:
        self.model.delete_topic(name)
        self.model.create_topic(name, assignments)

    async def set_topic_config(self, topic: str, key: str, value: str) -> None:
        self.model.topics[topic].configs[key] = value

    async def cordon(self, broker: int, *, cordoned: bool) -> None:
        self.model.directories.cordon(broker, cordoned=cordoned)

    async def stop_broker(self, broker: int) -> None:
        self.model.stop_broker(broker)

    async def start_broker(self, broker: int) -> None:
        self.model.start_broker(broker)

    async def pass_time(self) -> None:
        self.model.advance(100)


class RealCluster:
    """A real cluster under test; what Drover has no business doing goes through kafka-python's own client."""

    def __init__(self, local: LocalCluster, traits: Traits) -> None:
        self.local = local
        self.traits = traits
        self.driver: ClusterDriver = KafkaDriver("under-test", local.bootstrap)
        self._admin = KafkaAdminClient(
            bootstrap_servers=local.bootstrap.split(","), client_id="test-operator", proxy_url=DIRECT
        )

    async def create_topic(
        self, assignments: Mapping[int, Sequence[int]], *, records: int = 0, configs: Mapping[str, str] | None = None
    ) -> str:
        name = f"contract-{next(_names)}"
        await self._create(name, assignments, configs or {})
        if records:
            await asyncio.to_thread(self._write, name, sorted(assignments), records)
        return name

    async def recreate_topic(self, name: str, assignments: Mapping[int, Sequence[int]]) -> None:
        await asyncio.to_thread(self._admin.delete_topics, [name])
        await eventually(self, lambda: self.driver.partition_counts([name]), lambda counts: counts[name] is None)
        deadline = time.monotonic() + 60
        while True:
            try:
                await self._create(name, assignments, {})
            except TopicAlreadyExistsError:  # in ZooKeeper mode a topic is deleted for a while after it is gone
                assert time.monotonic() < deadline, f"{name} is still being deleted"
                await self.pass_time()
            else:
                return

    async def set_topic_config(self, topic: str, key: str, value: str) -> None:
        await asyncio.to_thread(self._set_topic_config, topic, key, value)

    async def cordon(self, broker: int, *, cordoned: bool) -> None:
        await asyncio.to_thread(cordon_broker, self._admin, broker, cordoned=cordoned)

    async def stop_broker(self, broker: int) -> None:
        await self.local.kill(broker)
        await eventually(self, self.driver.identify, lambda identity: broker not in identity.racks)

    async def start_broker(self, broker: int) -> None:
        await self.local.start(broker)
        await eventually(self, self.driver.identify, lambda identity: broker in identity.racks)

    async def pass_time(self) -> None:
        await asyncio.sleep(0.05)

    async def close(self) -> None:
        await self.driver.close()
        await asyncio.to_thread(self._admin.close)

    async def _create(self, name: str, assignments: Mapping[int, Sequence[int]], configs: Mapping[str, str]) -> None:
        wanted = {
            name: {
                "assignments": {number: list(replicas) for number, replicas in assignments.items()},
                "configs": configs,
            }
        }
        await asyncio.to_thread(self._admin.create_topics, wanted)
        partitions = [TopicPartition(name, number) for number in assignments]

        async def look() -> Observation:
            return await self.driver.observe(partitions)

        await eventually(self, look, lambda seen: all(map(_is_led, (seen.partitions.get(one) for one in partitions))))

    def _set_topic_config(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: value})
        self._admin.alter_configs([resource], raise_on_unknown=False)

    def _write(self, topic: str, numbers: Sequence[int], records: int) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.local.bootstrap.split(","), acks="all", linger_ms=5, proxy_url=DIRECT
        )
        try:
            for number in numbers:
                for _ in range(records):
                    producer.send(topic, bytes(RECORD_BYTES), partition=number)
            producer.flush()
        finally:
            producer.close()


def cordon_broker(admin: KafkaAdminClient, broker: int, *, cordoned: bool) -> None:
    """Cordon all log directories of a broker, as `kafka-configs` does, or delete what was set."""
    resource = ConfigResource(
        ConfigResourceType.BROKER, str(broker), configs={"cordoned.log.dirs": "*" if cordoned else ""}
    )
    admin.alter_configs([resource], raise_on_unknown=False)


async def real_cluster(local: LocalCluster) -> RealCluster:
    """Return a local cluster with the traits that it must have; only where its release is unknown, its brokers say."""
    return RealCluster(local, await _traits_of_local(local))


async def _traits_of_local(local: LocalCluster) -> Traits:
    kafka = local.spec.kafka
    if is_known(kafka):
        return traits_of_release(kafka, zookeeper_mode=local.spec.in_zookeeper_mode)
    driver = KafkaDriver("under-test", local.bootstrap)
    try:
        return expected_traits(kafka, (await driver.broker_versions()).values())
    finally:
        await driver.close()


def is_known(version: str) -> bool:
    """Whether the release of a version, named as in `3.9.2`, has its traits in the table."""
    return is_known_release(version.rpartition(".")[0])


def expected_traits(version: str, said: Collection[BrokerVersion]) -> Traits:
    """Return the traits of a new cluster with KRaft: the table's, else what its brokers lead to."""
    if is_known(version):
        return traits_of_release(version, zookeeper_mode=False)
    traits = traits_of(said)
    assert traits is not None, f"no broker of Kafka {version} says its version"
    return traits


def traits_of_release(version: str, *, zookeeper_mode: bool) -> Traits:
    """Return the traits of a new cluster of a version whose release is known, named as in `3.9.2`."""
    major, minor, *_ = map(int, version.split("."))
    return known_traits(f"{major}.{minor}", zookeeper_mode=zookeeper_mode, with_elr=(major, minor) >= (4, 1))


def _is_led(found: PartitionFacts | None) -> bool:
    return found is not None and found.leader is not None
