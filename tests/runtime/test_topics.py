"""Drover's own topics on a real Kafka: made once, checked always, and every finding says what mends it."""

import asyncio
import shlex

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic

from drover.cluster.topics import TopicSpec
from drover.errors import ConfigurationError
from drover.events.codec import decode_record
from drover.events.records import Genesis
from drover.events.topics import TopicNames
from drover.facts import INVALID_REPLICATION_FACTOR, CallResult
from drover.journal import topics
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.port import TailRecord
from drover.journal.reader import LogReader
from drover.local import LocalCluster
from drover.local.deadline import wait_until

pytestmark = pytest.mark.cluster


def _connection(cluster: LocalCluster, prefix: str) -> LogConnection:
    return LogConnection(cluster.bootstrap, TopicNames(prefix))


async def test_init_makes_every_topic_begins_every_shard_and_is_idempotent(local_cluster: LocalCluster) -> None:
    connection = _connection(local_cluster, "topics-init")
    created = await topics.init(connection, shards=3)
    assert len(created) == 8
    assert await topics.init(connection, shards=5) == ()
    assert await topics.check(connection) == ()
    assert (await topics.verify(connection)).shards == 3
    journal = KafkaJournal(connection, 3, "test")
    await journal.start()
    try:
        records: list[TailRecord] = []
        while not await journal.has_reached(await journal.ends()):
            records += await journal.next_records()
    finally:
        await journal.close()
    assert sorted((record.shard, record.offset) for record in records) == [(0, 0), (1, 0), (2, 0)]
    assert all(isinstance(decode_record(record.payload), Genesis) for record in records)


async def test_missing_topics_are_found_and_init_mends_them(local_cluster: LocalCluster) -> None:
    connection = _connection(local_cluster, "topics-missing")
    findings = await topics.check(connection)
    assert len(findings) == 8
    assert {finding.remedy for finding in findings} == {"drover log init"}
    with pytest.raises(ConfigurationError, match="drover log init"):
        await topics.verify(connection)


async def test_a_worker_may_do_without_snapshots_and_nothing_else(local_cluster: LocalCluster) -> None:
    """An installation that is older than they are has no topic for them."""
    connection = _connection(local_cluster, "topics-snapshots")
    await topics.init(connection, shards=2)
    assert (await topics.verify(connection)).has_snapshots
    name = connection.topics.snapshots
    admin = KafkaAdminClient(bootstrap_servers=local_cluster.bootstrap.split(","))
    try:
        _set(admin, name, "cleanup.policy", "delete")
        await wait_until(lambda: finds(connection, 1), what="the changed setting shows")
        verified = await topics.verify(connection)
        assert (verified.shards, verified.has_snapshots) == (2, False)
        admin.delete_topics([name])
    finally:
        admin.close()
    async with asyncio.timeout(60):
        while True:
            findings = await topics.check(connection)
            if findings[0].remedy == "drover log init":
                break
    verified = await topics.verify(connection)
    assert (verified.findings, verified.has_snapshots) == (findings, False)
    assert await topics.init(connection, shards=2) == (name,)
    assert (await topics.verify(connection)).has_snapshots


async def finds(connection: LogConnection, count: int) -> bool:
    return len(await topics.check(connection)) == count


async def test_a_changed_setting_is_found_and_its_command_mends_it(local_cluster: LocalCluster) -> None:
    connection = _connection(local_cluster, "topics-setting")
    await topics.init(connection, shards=2)
    name = connection.topics.events
    admin = KafkaAdminClient(bootstrap_servers=local_cluster.bootstrap.split(","))
    try:
        _set(admin, name, "retention.ms", "1000")
        # Brokers show a changed setting a moment later.
        await wait_until(lambda: finds(connection, 1), what="the changed setting shows")
        (finding,) = await topics.check(connection)
        assert finding.topic == name
        words = shlex.split(finding.remedy)
        assert words[:3] == ["kafka-configs", "--bootstrap-server", local_cluster.bootstrap]
        key, _, value = words[words.index("--add-config") + 1].partition("=")
        _set(admin, words[words.index("--entity-name") + 1], key, value)
        await wait_until(lambda: finds(connection, 0), what="the mended setting shows")
        _set(admin, name, "max.message.bytes", str(16 * 1024 * 1024))
        assert await topics.check(connection) == (), "more than asked for does no harm"
    finally:
        admin.close()


async def test_another_number_of_partitions_is_found_either_way(local_cluster: LocalCluster) -> None:
    connection = _connection(local_cluster, "topics-count")
    names = connection.topics
    admin = KafkaAdminClient(bootstrap_servers=local_cluster.bootstrap.split(","))
    try:
        admin.create_topics([NewTopic(names.commands[0], 1, 3)])
        await topics.init(connection, shards=2)
        admin.create_partitions({names.commands[1]: NewPartitions(3)})
        findings = await topics.check(connection)
    finally:
        admin.close()
    found = {finding.topic: finding for finding in findings if "partitions" in finding.detail}
    assert set(found) == {names.commands[0], names.commands[1]}
    assert found[names.commands[0]].remedy.endswith("--alter --partitions 2")
    assert "--delete" in found[names.commands[1]].remedy


async def test_partitions_that_were_added_to_the_log_are_named_and_not_asked_for_everywhere(
    local_cluster: LocalCluster,
) -> None:
    """The remedy was to add as many to every other topic: commands would have gone where no shard is."""
    connection = _connection(local_cluster, "topics-enlarged")
    await topics.init(connection, shards=2)
    name = connection.topics.events
    admin = KafkaAdminClient(bootstrap_servers=local_cluster.bootstrap.split(","))
    try:
        admin.create_partitions({name: NewPartitions(3)})
    finally:
        admin.close()
    await wait_until(lambda: finds(connection, 1), what="the added partition shows")
    (finding,) = await topics.check(connection)
    assert finding.topic == name
    assert "has 3 partitions, but the log was begun with 2 shards" in finding.detail
    assert "kafka-topics" not in finding.remedy
    for refusing in (topics.verify(connection), topics.init(connection, shards=2)):
        with pytest.raises(ConfigurationError, match="begun with 2 shards"):
            await refusing
    async with LogReader(connection) as reader:
        assert (await reader.end_offsets(name, [2])) == {2: 0}, "no shard was begun there"


async def test_too_few_brokers_are_named_with_what_to_do(
    local_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_bootstrap: str, specs: list[TopicSpec], _options: object) -> dict[str, CallResult]:
        return {spec.name: CallResult(INVALID_REPLICATION_FACTOR, "only 1 broker is registered.") for spec in specs}

    monkeypatch.setattr(topics, "create_topics", refuse)
    with pytest.raises(ConfigurationError, match="Start at least 3 brokers"):
        await topics.init(_connection(local_cluster, "topics-few"))


def _set(admin: KafkaAdminClient, topic: str, key: str, value: str) -> None:
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {key: value})])


async def test_a_batch_that_expands_is_refused_by_the_broker_and_none_is_stored_compressed(
    local_cluster: LocalCluster,
) -> None:
    """A worker would expand it in memory; and other codecs than gzip it could not read at all."""
    connection = _connection(local_cluster, "topics-bomb")
    await topics.init(connection, shards=1)
    topic = connection.topics.commands[1]
    # What only the leader has is not there yet for who reads up to the end.
    producer = AIOKafkaProducer(
        bootstrap_servers=local_cluster.bootstrap, compression_type="gzip", max_request_size=64 * 1024**2, acks="all"
    )
    await producer.start()
    try:
        with pytest.raises(MessageSizeTooLargeError):
            await producer.send_and_wait(topic, bytes(16 * 1024 * 1024))
        await producer.send_and_wait(topic, bytes(1024 * 1024))
    finally:
        await producer.stop()
    async with LogReader(connection) as reader:
        read = [record async for records in reader.read(topic, {0: 0}) for record in records]
    assert [len(record.payload) for record in read] == [1024 * 1024]
