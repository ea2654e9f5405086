"""Questions to Kafka that need not wait for anything are answered at once, whatever else the log's reader has asked."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer

from drover.events.topics import TopicNames
from drover.journal import leaders, tail, topics
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader, LogRecord
from drover.journal.tail import LogTail
from drover.local import LocalCluster
from tests.integration.support import wait_for

pytestmark = pytest.mark.cluster

SHARDS = 6
# As good as for ever: who waits for it once misses the deadline of the test.
FOR_EVER_S = 3600.0
DEADLINE_S = 30.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def connection(local_cluster: LocalCluster) -> LogConnection:
    made = LogConnection(local_cluster.bootstrap, TopicNames("reader"))
    await topics.init(made, shards=SHARDS)
    return made


@pytest_asyncio.fixture
async def reader(connection: LogConnection) -> AsyncIterator[LogReader]:
    async with LogReader(connection) as made:
        yield made


async def test_offsets_of_a_topic_that_was_never_asked_for_are_told_at_once(
    connection: LogConnection, reader: LogReader
) -> None:
    reader._consumer._fetcher._retry_backoff = FOR_EVER_S
    async with asyncio.timeout(DEADLINE_S):
        for topic in connection.topics.commands:
            assert await reader.end_offsets(topic, range(SHARDS)) == dict.fromkeys(range(SHARDS), 0)
        assert await reader.start_offsets(connection.topics.progress, [0]) == {0: 0}


async def test_after_a_reading_nothing_is_asked_that_the_next_question_would_have_to_wait_for(
    connection: LogConnection, reader: LogReader
) -> None:
    topic = connection.topics.progress
    async with AIOKafkaProducer(bootstrap_servers=connection.bootstrap, acks="all") as producer:
        for shard in range(SHARDS):
            await producer.send_and_wait(topic, b"sample", partition=shard)
    found: list[LogRecord] = []
    async for records in reader.read(topic, dict.fromkeys(range(SHARDS), 0)):
        found += records
        # Time for aiokafka to ask for more, of which there is none: such a question stands for half a second.
        await asyncio.sleep(0.1)
    assert sorted(record.shard for record in found) == list(range(SHARDS))
    assert not reader._consumer._fetcher._in_flight


async def test_a_header_without_a_value_is_left_out(connection: LogConnection, reader: LogReader) -> None:
    topic = connection.topics.dead_letters
    headers: list[tuple[str, bytes | None]] = [("content-type", None), ("more", b"1")]
    async with AIOKafkaProducer(bootstrap_servers=connection.bootstrap, acks="all") as producer:
        written = await producer.send_and_wait(topic, b"letter", partition=0, headers=headers)
    async for (record,) in reader.read(topic, {0: written.offset}):
        assert record.headers == (("more", b"1"),)
        assert record.header("content-type") is None


async def test_offsets_are_told_while_the_tail_waits_for_records(
    connection: LogConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nearly as long as a request may take: questions behind a fetch would miss the deadline.
    monkeypatch.setattr(tail, "FETCH_WAIT_MS", 9000)
    made = LogTail(connection, SHARDS, "tail")
    await made.start()
    try:
        ends = [end for _, end in await made.bounds(connection.topics.events)]
        while not await made.has_reached(ends):
            await made.next_records()

        async def waits() -> bool:
            return bool(made._consumer._fetcher._in_flight)

        await wait_for(waits, "the tail to ask for more")
        for topic in connection.topics.commands:
            assert await made.bounds(topic) == ((0, 0),) * SHARDS
        assert await waits(), "the answers came before the records"
    finally:
        await made.close()


async def test_leaders_that_no_broker_tells_are_given_up(reader: LogReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaders, "AT_MOST_S", 0.01)
    monkeypatch.setattr(reader._consumer._client, "add_topic", lambda _: asyncio.sleep(FOR_EVER_S))
    async with asyncio.timeout(DEADLINE_S):
        await leaders.learn_leaders(reader._consumer, "anything")
