"""One contract for the journal in memory and on a real Kafka."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer

from drover.errors import AppendUnknownError
from drover.events.topics import TopicNames
from drover.journal import topics
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.port import Journal, RecordTooLargeError, TailRecord
from drover.local import LocalCluster
from drover.testing.memory_journal import MemoryBroker, MemoryJournal, StoredRecord

SHARDS = 3
_prefixes = (f"contract-{number}" for number in itertools.count())


@dataclass
class Subject:
    """A journal under test, how to open another on the same topics, and how to leave a transaction marker."""

    journal: Journal
    names: TopicNames
    another: Callable[[], Journal]
    abort_a_transaction: Callable[[str, int], Awaitable[None]]


def _in_memory() -> Subject:
    broker = MemoryBroker()
    for shard in range(SHARDS):
        broker.put(broker.topics.events, shard, StoredRecord(b"genesis"))

    async def abort(topic: str, partition: int) -> None:
        broker.put(topic, partition, None)
        broker.put(topic, partition, None)

    return Subject(MemoryJournal(broker, SHARDS), broker.topics, lambda: MemoryJournal(broker, SHARDS), abort)


async def _on_kafka(bootstrap: str) -> Subject:
    connection = LogConnection(bootstrap, TopicNames(next(_prefixes)))
    await topics.init(connection, SHARDS)

    async def abort(topic: str, partition: int) -> None:
        writer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{connection.topics.prefix}-abort")
        await writer.start()
        try:
            await writer.begin_transaction()
            await writer.send_and_wait(topic, b"never asked for", partition=partition)
            await writer.abort_transaction()
        finally:
            await writer.stop()

    def another() -> Journal:
        return KafkaJournal(connection, SHARDS, "contract")

    return Subject(another(), connection.topics, another, abort)


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.cluster)])
def kafka(request: pytest.FixtureRequest) -> LocalCluster | None:
    """Start the real cluster only for the tests that run on it; an asynchronous fixture could not start it."""
    if request.param == "memory":
        return None
    cluster: LocalCluster = request.getfixturevalue("local_cluster")
    return cluster


@pytest_asyncio.fixture
async def subject(kafka: LocalCluster | None) -> AsyncIterator[Subject]:
    made = _in_memory() if kafka is None else await _on_kafka(kafka.bootstrap)
    await made.journal.start()
    yield made
    await made.journal.close()


async def _read_to_the_end(journal: Journal) -> list[TailRecord]:
    ends = await journal.ends()
    found: list[TailRecord] = []
    while not await journal.has_reached(ends):
        found += await journal.next_records()
    return found


async def test_appends_get_consecutive_offsets_and_come_back_in_order(subject: Subject) -> None:
    offsets = [await subject.journal.append(1, b"record %d" % number, (("kind", b"batch"),)) for number in range(5)]
    assert offsets == [1, 2, 3, 4, 5]
    found = [record for record in await _read_to_the_end(subject.journal) if record.shard == 1]
    assert [record.offset for record in found] == [0, 1, 2, 3, 4, 5]
    assert [record.payload for record in found[1:]] == [b"record %d" % number for number in range(5)]


async def test_shards_do_not_disturb_each_other(subject: Subject) -> None:
    await subject.journal.append(0, b"zero", ())
    await subject.journal.append(2, b"two", ())
    assert await subject.journal.ends() == (2, 1, 2)


async def test_a_second_journal_reads_from_the_first_record_on(subject: Subject) -> None:
    await subject.journal.append(0, b"before it was there", ())
    second = subject.another()
    await second.start()
    try:
        found = await _read_to_the_end(second)
        assert [record.payload for record in found if record.shard == 0][1:] == [b"before it was there"]
    finally:
        await second.close()


async def test_the_tail_brings_what_is_appended_later_by_others(subject: Subject) -> None:
    await _read_to_the_end(subject.journal)
    second = subject.another()
    await second.start()
    try:
        offset = await second.append(2, b"by another", ())
    finally:
        await second.close()
    assert list(await _read_to_the_end(subject.journal)) == [TailRecord(2, offset, b"by another")]


async def test_nothing_new_is_an_empty_answer(subject: Subject) -> None:
    await _read_to_the_end(subject.journal)
    assert list(await subject.journal.next_records()) == []


async def test_too_large_a_record_is_known_not_to_be_written(subject: Subject) -> None:
    with pytest.raises(RecordTooLargeError):
        await subject.journal.append(0, b"x" * (9 * 1024 * 1024), ())
    assert await subject.journal.ends() == (1, 1, 1)
    assert await subject.journal.append(0, b"the next one", ()) == 1


async def test_a_record_of_four_megabytes_goes_through(subject: Subject) -> None:
    payload = b"x" * (4 * 1024 * 1024)
    assert await subject.journal.append(0, payload, ()) == 1
    found = await _read_to_the_end(subject.journal)
    assert [record.payload for record in found if record.shard == 0][1:] == [payload]


async def test_records_beside_the_log_are_sent_and_bounded(subject: Subject) -> None:
    topic = subject.names.commands[0]
    await subject.journal.send(topic, b"command", partition=1, key=b"key", headers=(("drover-forwarded", b"0:1"),))
    assert await subject.journal.bounds(topic) == ((0, 0), (0, 1), (0, 0))


async def test_a_direct_read_finds_the_first_record_behind_a_gap(subject: Subject) -> None:
    topic = subject.names.commands[0]
    await subject.journal.send(topic, b"first", partition=0)
    await subject.abort_a_transaction(topic, 0)
    while (await subject.journal.bounds(topic))[0] != (0, 3):
        # The marker is written some time after the client was told that the transaction is aborted.
        await subject.journal.next_records()
    await subject.journal.send(topic, b"second", partition=0)
    assert await subject.journal.first_offset(topic, 0, 0) == 0
    assert await subject.journal.first_offset(topic, 0, 1) == 3


async def test_a_committed_reading_brings_what_was_not_aborted(subject: Subject) -> None:
    """What a client aborted was never asked for, whoever reads it."""
    topic = subject.names.commands[1]
    await subject.journal.send(topic, b"first", partition=0, headers=(("content-type", b"x"),))
    await subject.abort_a_transaction(topic, 0)
    await subject.journal.send(topic, b"second", partition=0)
    async with subject.journal.reader(is_committed=True) as reader:
        # Open transactions hide what comes after them, and the marker is written some time after the abort.
        while not (found := [record async for records in reader.read(topic, {0: 0}) for record in records])[1:]:
            await subject.journal.next_records()
        assert [record.payload for record in found] == [b"first", b"second"]
        again = [record.payload async for records in reader.read(topic, {0: 1}) for record in records]
    assert again == [b"second"]
    assert found[0].headers == (("content-type", b"x"),)


async def test_a_lost_acknowledgement_is_an_unknown_outcome() -> None:
    broker = MemoryBroker(lost_acknowledgements=1)
    journal = MemoryJournal(broker, SHARDS)
    with pytest.raises(AppendUnknownError):
        await journal.append(0, b"written all the same", ())
    assert broker.values(broker.topics.events, 0) == [b"written all the same"]
