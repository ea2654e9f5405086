"""For every ACL one operation of Drover's own that cannot do without it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from aiokafka.errors import GroupAuthorizationFailedError

from drover.agents.driver import new_group_consumer
from drover.agents.settings import GroupSettings
from drover.client.acls import Part, Place
from drover.client.client import Client
from drover.cluster.acls import Acl, Operation, Resource
from drover.cluster.kafka import KafkaDriver
from drover.cluster.port import AddThrottledReplicas, AlterRequest, SetBrokerRates
from drover.cluster.topics import TOPIC_ALREADY_EXISTS, TopicSpec, create_topics, describe_topics
from drover.errors import DroverError
from drover.events.partitions import TopicPartition
from drover.facts import BrokerRates, CallResult, ThrottledReplicas
from drover.journal.connection import LogConnection
from drover.journal.producer import LogProducer
from drover.journal.reader import LogReader
from drover.journal.tail import LogTail, first_offset
from tests.events.command_samples import COMMANDS

GROUP = "acl-worker"
# A consumer group of somebody's programs.
READERS = "readers"
SHARDS = 1
UNKNOWN_TOPIC = 3
# What the words for it are, in the answers of Kafka and of its clients.
WORDS = (
    "uthorization",
    "_AUTHORIZATION_FAILED",
    "Kafka error 29",
    "Kafka error 31",
    "may not see it",
    "does not allow",
    "needs the ACL",
)


class NotAuthorizedError(Exception):
    """Kafka's answer to one of a call's parts."""


@dataclass(frozen=True)
class Prober:
    """One part of Drover at one place, as a user of its own; `topic` is one of the managed cluster's."""

    part: Part
    place: Place
    connection: LogConnection
    topic: str


async def refusal(prober: Prober, acl: Acl) -> str | None:
    """Do what needs this ACL; None if it went well, else how it was said that it is not allowed."""
    try:
        await operation(prober, acl)(prober, acl.name)
    except (DroverError, GroupAuthorizationFailedError, NotAuthorizedError) as error:
        said = f"{type(error).__name__}: {error}"
        assert any(words in said for words in WORDS), f"refused, but not for want of an ACL: {said}"
        return said
    return None


def operation(prober: Prober, acl: Acl) -> Callable[[Prober, str], Awaitable[None]]:
    """Name the operation."""
    events, commands = prober.connection.topics.events, prober.connection.topics.commands
    match prober.part, prober.place, acl.resource, acl.operation:
        case Part.WORKER, Place.MANAGED, Resource.CLUSTER, Operation.ALTER:
            return reassign_and_elect
        case Part.WORKER, Place.MANAGED, Resource.CLUSTER, Operation.ALTER_CONFIGS:
            return set_rates
        case Part.WORKER, Place.MANAGED, Resource.TOPIC, Operation.DESCRIBE:
            return count_partitions
        case Part.WORKER, Place.MANAGED, Resource.TOPIC, Operation.ALTER_CONFIGS:
            return throttle
        case Part.OPERATOR, Place.MANAGED, Resource.CLUSTER, Operation.DESCRIBE:
            return take_inventory
        case Part.OPERATOR, Place.MANAGED, Resource.TOPIC, Operation.DESCRIBE:
            return count_partitions
        case Part.OPERATOR, Place.MANAGED, Resource.GROUP, Operation.DESCRIBE:
            return read_offsets_of_groups
        case Part.OPERATOR, Place.MANAGED, Resource.CLUSTER, Operation.DESCRIBE_CONFIGS:
            return read_rates
        case Part.OPERATOR, Place.MANAGED, Resource.TOPIC, Operation.DESCRIBE_CONFIGS:
            return read_topic_configs
        case Part.WORKER, Place.LOG, Resource.GROUP, Operation.READ:
            return join
        case Part.WORKER, Place.LOG, Resource.TOPIC, Operation.READ:
            return follow_the_log if acl.name == events else read_directly
        case Part.OPERATOR, Place.LOG, Resource.TOPIC, Operation.READ:
            return read_all
        case Part.OPERATOR, Place.LOG, Resource.TOPIC, Operation.WRITE if acl.name in commands:
            return send_command
        case Part.WORKER | Part.SETUP, Place.LOG, Resource.TOPIC, Operation.WRITE:
            return append
        case Part.WORKER | Part.SETUP, Place.LOG, Resource.TOPIC, Operation.DESCRIBE_CONFIGS:
            return describe
        case Part.SETUP, Place.LOG, Resource.TOPIC, Operation.DESCRIBE:
            return describe
        case Part.SETUP, Place.LOG, Resource.TOPIC, Operation.CREATE:
            return create
        case _:
            raise AssertionError(f"no operation shows that {prober.part} needs {acl}: then it is not needed")


# -- the log's Kafka


async def append(prober: Prober, topic: str) -> None:
    """As a worker appends, forwards, samples and buries, and `drover log init` begins a shard."""
    producer = LogProducer(prober.connection, "probe")
    await producer.start()
    try:
        await producer.send(topic, b"probe", key=b"probe", partition=0)
    finally:
        await producer.close()


async def follow_the_log(prober: Prober, _topic: str) -> None:
    """As a worker replays."""
    tail = LogTail(prober.connection, SHARDS, "probe")
    await tail.start()
    try:
        async with asyncio.timeout(60):
            while not await tail.next_records():
                pass
    finally:
        await tail.close()


async def read_directly(prober: Prober, topic: str) -> None:
    """As a worker's agents read commands, and as it proves an offset gap empty."""
    await first_offset(prober.connection, topic, 0, 0, "read_committed")


async def join(prober: Prober, group: str) -> None:
    """As a worker joins the others."""
    consumer = new_group_consumer(GroupSettings(prober.connection, group, "probe"))
    consumer.subscribe(prober.connection.topics.commands)
    try:
        await consumer.start()
        async with asyncio.timeout(60):
            while not consumer.assignment():
                await consumer.getmany(timeout_ms=100)
    finally:
        await consumer.stop()


async def read_all(prober: Prober, topic: str) -> None:
    """As `drover status`, `drover history` and `drover dead-letters list` read."""
    async with LogReader(prober.connection) as reader:
        partitions = range(await reader.partitions(topic))
        start = await reader.start_offsets(topic, partitions)
        async with aclosing(reader.read(topic, start)) as reading:
            assert [record async for records in reading for record in records]


async def send_command(prober: Prober, topic: str) -> None:
    """As `drover alter` and its like send."""
    kind = topic.removeprefix(f"{prober.connection.topics.prefix}.")
    async with Client(prober.connection) as client:
        await client.submit(COMMANDS[kind])


async def describe(prober: Prober, topic: str) -> None:
    """As a worker checks the topics before it starts, and `drover log check`."""
    assert (await describe_topics(prober.connection.bootstrap, [topic], prober.connection.security))[topic] is not None


async def create(prober: Prober, topic: str) -> None:
    """As `drover log init` creates a topic; that it is there already is found out after the ACLs were looked at."""
    spec = TopicSpec(topic, SHARDS, 3)
    answers = await create_topics(prober.connection.bootstrap, [spec], prober.connection.security)
    _check(answers[topic], TOPIC_ALREADY_EXISTS)


# -- a managed cluster


async def commit_an_offset(connection: LogConnection, topic: str) -> None:
    """As a program that reads a topic does."""
    consumer = new_group_consumer(GroupSettings(connection, READERS, "reader"))
    consumer.subscribe([topic])
    try:
        await consumer.start()
        async with asyncio.timeout(60):
            while not consumer.assignment():
                await consumer.getmany(timeout_ms=100)
        await consumer.commit(dict.fromkeys(consumer.assignment(), 0))
    finally:
        await consumer.stop()


async def reassign_and_elect(prober: Prober, _name: str) -> None:
    """As every step, cancel and rollback is called, and leaders are elected: both need the same ACL."""
    partition = TopicPartition("no-such-topic", 0)
    async with _driver(prober) as driver:
        altered = (await driver.alter([AlterRequest(partition, (1, 2, 3))]))[partition]
        elected = (await driver.elect_leaders([partition]))[partition]
    assert altered.code == elected.code, f"one is allowed without the other: {altered}, {elected}"
    _check(altered, UNKNOWN_TOPIC)


async def set_rates(prober: Prober, _name: str) -> None:
    """As a throttle is put on a broker."""
    change = SetBrokerRates(1, BrokerRates(None, None))
    async with _driver(prober) as driver:
        answers = await driver.change_throttles([change])
    _check(answers[change], 0)


async def count_partitions(prober: Prober, _name: str) -> None:
    """As partitions are looked at."""
    async with _driver(prober) as driver:
        assert (await driver.partition_counts([prober.topic]))[prober.topic]


async def take_inventory(prober: Prober, _name: str) -> None:
    """As `drover describe` and `drover plan` look at the whole cluster."""
    async with _driver(prober) as driver:
        inventory = await driver.inventory()
    assert TopicPartition(prober.topic, 0) in inventory.replica_bytes


async def read_offsets_of_groups(prober: Prober, _name: str) -> None:
    """As `drover describe --load` measures what is read."""
    async with _driver(prober) as driver:
        positions = await driver.positions({})
    if positions.unread:
        raise NotAuthorizedError("; ".join(positions.unread))
    assert READERS in positions.committed


async def read_rates(prober: Prober, _name: str) -> None:
    """As `drover throttle show` and `drover throttle clean` read the brokers' rates."""
    async with _driver(prober) as driver:
        assert await driver.broker_rates((1, 2, 3))


async def read_topic_configs(prober: Prober, _name: str) -> None:
    """As `drover throttle show` reads throttled replicas, and `drover alter --dry-run` min.insync.replicas."""
    partition = TopicPartition(prober.topic, 0)
    async with _driver(prober) as driver:
        listed, looked = await asyncio.gather(
            driver.throttled_replicas([prober.topic]),
            driver.observe([partition], with_min_isr=True),
            return_exceptions=True,
        )
    refused = [isinstance(answer, DroverError) for answer in (listed, looked)]
    assert refused[0] == refused[1], f"one is allowed without the other: {listed}, {looked}"
    for answer in (listed, looked):
        if isinstance(answer, BaseException):
            raise answer


async def throttle(prober: Prober, _name: str) -> None:
    """As replicas are throttled, and min.insync.replicas is read."""
    change = AddThrottledReplicas(prober.topic, ThrottledReplicas(("0:1",), ("0:2",)))
    async with _driver(prober) as driver:
        answers = await driver.change_throttles([change])
    _check(answers[change], 0)


@asynccontextmanager
async def _driver(prober: Prober) -> AsyncIterator[KafkaDriver]:
    driver = KafkaDriver("probed", prober.connection.bootstrap, prober.connection.security)
    try:
        yield driver
    finally:
        await driver.close()


def _check(answer: CallResult, expected: int) -> None:
    if answer.code != expected:
        raise NotAuthorizedError(f"Kafka error {answer.code} ({answer.message})")
