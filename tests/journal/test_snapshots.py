"""Writing and finding snapshots: the last complete one counts, and whatever is in doubt is not used."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec
import pytest
import pytest_asyncio

from drover.errors import LogUnavailableError
from drover.events.codec import encode_record
from drover.events.topics import TopicNames
from drover.fold import snapshot
from drover.fold.log import ShardFold
from drover.fold.snapshot import Chunk, Manifest, decode_record, manifest_digest
from drover.journal import snapshots, topics
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.port import Journal
from drover.journal.snapshots import load_snapshots, write_snapshot
from drover.local import LocalCluster
from drover.testing.memory_journal import MemoryBroker, MemoryJournal, StoredRecord
from tests.shard.random_logs import random_log
from tests.shard.snapshot_anchor import anchoring_batch

NAMES = TopicNames()


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests' logs are short, and a few hundred bytes are several chunks."""
    monkeypatch.setattr(snapshots, "SHORT_LOG", 1)
    monkeypatch.setattr(snapshot, "CHUNK_BYTES", 300)


@pytest.fixture
def log() -> Sequence[bytes]:
    return random_log(5, 100)


def folded(log: Sequence[bytes], until: int | None = None) -> ShardFold:
    fold = ShardFold(0, 1)
    for offset, payload in enumerate(log[:until]):
        fold.fold(offset, payload)
    return fold


def broker_with(log: Sequence[bytes]) -> MemoryBroker:
    broker = MemoryBroker()
    for payload in log:
        broker.put(NAMES.events, 0, StoredRecord(payload))
    return broker


async def keep(journal: MemoryJournal, fold: ShardFold) -> None:
    """Write a snapshot, and let the log vouch for it."""
    written = await write_snapshot(journal, NAMES, fold)
    broker = journal._broker
    log = [record.value for record in broker.partitions[NAMES.events, 0] if record is not None]
    broker.put(NAMES.events, 0, StoredRecord(encode_record(anchoring_batch(folded(log), written.digest))))


async def found(journal: Journal, doubts: list[str] | None = None, names: TopicNames = NAMES) -> ShardFold | None:
    told = [] if doubts is None else doubts
    async with journal.reader() as reader:
        folds = await load_snapshots(reader, names, [0], lambda _, why: told.append(why))
    return folds.get(0)


def last_value(broker: MemoryBroker) -> bytes:
    record = positions(broker)[-1]
    assert record is not None
    return record.value


def positions(broker: MemoryBroker) -> list[StoredRecord | None]:
    return broker.partitions[NAMES.snapshots, 0]


async def test_what_was_written_is_found(log: Sequence[bytes]) -> None:
    broker = broker_with(log)
    journal = MemoryJournal(broker, 1)
    assert await found(journal) is None
    for position in (40, 80, 90):
        await keep(journal, folded(log, position))
        fold = await found(journal)
        assert fold is not None
        assert (fold.position, fold.state.hash()) == (position, folded(log, position).state.hash())


async def test_a_writer_that_dies_anywhere_leaves_the_last_complete_snapshot(log: Sequence[bytes]) -> None:
    """Each prefix of what a writer writes may be all there is, and its successor may die as well."""
    whole = broker_with(log)
    await write_snapshot(MemoryJournal(whole, 1), NAMES, folded(log, 40))
    first = len(positions(whole))
    await write_snapshot(MemoryJournal(whole, 1), NAMES, folded(log, 80))
    second = len(positions(whole)) - first
    await write_snapshot(MemoryJournal(whole, 1), NAMES, folded(log, 85))
    third = len(positions(whole)) - first - second
    assert min(second, third) > 3
    for sends in range(first):
        broker = broker_with(log)
        broker.aside_sends = sends
        with pytest.raises(LogUnavailableError):
            await write_snapshot(MemoryJournal(broker, 1), NAMES, folded(log, 40))
        assert await found(MemoryJournal(broker, 1)) is None
    for sends in range(second):
        for sends_of_successor in (0, 1, third - 1):
            broker = broker_with(log)
            journal = MemoryJournal(broker, 1)
            await keep(journal, folded(log, 40))
            for left, position in ((sends, 80), (sends_of_successor, 85)):
                broker.aside_sends = left
                with pytest.raises(LogUnavailableError):
                    await write_snapshot(journal, NAMES, folded(log, position))
                fold = await found(journal)
                assert fold is not None
                assert fold.position == 40
            broker.aside_sends = None
            await keep(journal, folded(log, 90))
            fold = await found(journal)
            assert fold is not None
            assert fold.position == 90


async def test_compaction_leaves_the_last_complete_snapshot(log: Sequence[bytes]) -> None:
    broker = broker_with(log)
    journal = MemoryJournal(broker, 1)
    for position in (20, 30, 40):
        await keep(journal, folded(log, position))
    broker.aside_sends = 2
    with pytest.raises(LogUnavailableError):
        await write_snapshot(journal, NAMES, folded(log, 80))
    stored = positions(broker)
    last = {record.key: offset for offset, record in enumerate(stored) if record is not None}
    for offset, record in enumerate(stored):
        if record is not None and last[record.key] != offset:
            stored[offset] = None
    fold = await found(journal)
    assert fold is not None
    assert fold.position == 40


async def test_two_writers_at_once_leave_the_last_complete_snapshot(log: Sequence[bytes]) -> None:
    """A fenced owner may still write: both take the same slot, and spoil each other's chunks at worst."""
    broker = broker_with(log)
    journal = MemoryJournal(broker, 1)
    await keep(journal, folded(log, 40))
    before = len(positions(broker))
    await keep(journal, folded(log, 80))
    one = positions(broker)[before:]
    del positions(broker)[before:]
    await keep(journal, folded(log, 85))
    other = positions(broker)[before:]
    del positions(broker)[before:]
    mixed = [record for pair in zip(one[:-1], other[:-1], strict=False) for record in pair]
    for end in range(1, len(mixed) + 1):
        positions(broker)[before:] = mixed[:end]
        fold = await found(journal)
        assert fold is not None
        assert fold.position == 40
    positions(broker)[before:] = [*mixed, one[-1]]
    doubts: list[str] = []
    fold = await found(journal, doubts)
    assert fold is not None
    assert fold.position == 40
    assert doubts == ["its chunks are not those that its manifest names"]


Spoil = Callable[[list[StoredRecord | None]], object]


def _without_a_chunk(stored: list[StoredRecord | None]) -> None:
    stored[1] = None


def _with_a_spoiled_chunk(stored: list[StoredRecord | None]) -> None:
    record = stored[1]
    assert record is not None
    chunk = decode_record(record.value)
    assert isinstance(chunk, Chunk)
    bent = msgspec.structs.replace(chunk, data=chunk.data[:-1] + bytes([chunk.data[-1] ^ 1]))
    stored[1] = StoredRecord(msgspec.msgpack.encode(bent), record.key)


def _manifest_with(**fields: object) -> Spoil:
    def spoil(stored: list[StoredRecord | None]) -> None:
        record = stored[-1]
        assert record is not None
        manifest = decode_record(record.value)
        assert isinstance(manifest, Manifest)
        bent = msgspec.structs.replace(manifest, **fields)
        stored[-1] = StoredRecord(msgspec.msgpack.encode(bent), record.key)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_without_a_chunk, "its chunks are not those"),
        (_with_a_spoiled_chunk, "its chunks are not those"),
        (_manifest_with(shards=2), "belongs to shard 0 of 2"),
        (_manifest_with(shard=1), "belongs to shard 1 of 1"),
        (_manifest_with(position=10**6), "it was taken at offset 1000000, but the log ends at"),
        (_manifest_with(state_hash=b"0" * 16), "no record of the log anchors"),
        (_manifest_with(chunks=10**12), "no record of the log anchors"),
        (_manifest_with(chain_offset=-1), "cannot be at offset -1"),
        (_manifest_with(chain=b"0" * 16), "the log does not have its last batch"),
        (_manifest_with(chain_offset=3), "the log does not have its last batch"),
        (_manifest_with(schema=99), "its last record cannot be decoded"),
        (_manifest_with(since=-1), "its last record cannot be decoded"),
    ],
)
async def test_what_is_in_doubt_is_not_used_and_the_reason_is_told(
    log: Sequence[bytes], spoil: Spoil, why: str
) -> None:
    broker = broker_with(log)
    journal = MemoryJournal(broker, 1)
    await keep(journal, folded(log, 80))
    spoil(positions(broker))
    doubts: list[str] = []
    assert await found(journal, doubts) is None
    (doubt,) = doubts
    assert why in doubt
    await keep(journal, folded(log, 90))
    fold = await found(journal)
    assert fold is not None
    assert fold.position == 90


async def test_who_may_write_snapshots_has_no_power_over_the_state(log: Sequence[bytes]) -> None:
    """Whole and consistent, with the log's own past: but no owner has said that it may be used."""
    broker = broker_with(log)
    journal = MemoryJournal(broker, 1)
    await keep(journal, folded(log, 40))
    forged = folded(log, 90)
    next(iter(forged.state.clusters.values())).blacklist = (1, 2, 3)
    await write_snapshot(journal, NAMES, forged)
    doubts: list[str] = []
    fold = await found(journal, doubts)
    assert fold is not None
    assert fold.position == 40
    assert doubts == ["no record of the log anchors the snapshot of offset 90"]
    # A record that somebody else writes to vouch for it is in no chain of the owner's.
    fake = anchoring_batch(folded(log), None)
    digest = manifest_digest(last_value(broker))
    stray = msgspec.structs.replace(fake, previous_hash=b"0" * 16, snapshot_digest=digest)
    broker.put(NAMES.events, 0, StoredRecord(encode_record(stray)))
    fold = await found(journal)
    assert fold is not None
    assert fold.position == 40


async def test_a_log_that_was_made_anew_has_another_past(log: Sequence[bytes]) -> None:
    journal = MemoryJournal(broker_with(log), 1)
    await keep(journal, folded(log, 80))
    # A simulation has tasks of its own: they are not entered while another one of this thread is.
    anew = broker_with(await asyncio.to_thread(random_log, 6, 100))
    anew.partitions[NAMES.snapshots, 0] = positions(journal._broker)
    doubts: list[str] = []
    assert await found(MemoryJournal(anew, 1), doubts) is None
    assert doubts == [f"the log does not have its last batch at offset {folded(log, 80).chain_offset}"]


async def test_nothing_is_looked_for_without_the_topic_or_in_a_short_log(
    log: Sequence[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = broker_with(log)
    journal = MemoryJournal(broker, 1)
    await keep(journal, folded(log, 80))
    doubts: list[str] = []
    broker.missing.add(NAMES.snapshots)
    assert await found(journal, doubts) is None
    broker.missing.clear()
    monkeypatch.setattr(snapshots, "SHORT_LOG", len(log) + 10)
    assert await found(journal, doubts) is None
    assert doubts == []


@pytest_asyncio.fixture
async def on_kafka(local_cluster: LocalCluster, log: Sequence[bytes]) -> AsyncIterator[KafkaJournal]:
    connection = LogConnection(local_cluster.bootstrap, TopicNames("snapshots"))
    await topics.init(connection, 1)
    journal = KafkaJournal(connection, 1, "snapshots-test")
    await journal.start()
    for payload in log[1:]:
        await journal.append(0, payload, ())
    yield journal
    await journal.close()


@pytest.mark.cluster
async def test_on_a_real_kafka_a_snapshot_is_written_found_and_continued(
    on_kafka: KafkaJournal, log: Sequence[bytes]
) -> None:
    names = TopicNames("snapshots")
    await write_snapshot(on_kafka, names, folded(log, 40))
    written = await write_snapshot(on_kafka, names, folded(log, 80))
    assert await found(on_kafka, names=names) is None
    anchored = [*log, encode_record(anchoring_batch(folded(log), written.digest))]
    await on_kafka.append(0, anchored[-1], ())
    fold = await found(on_kafka, names=names)
    assert fold is not None
    assert fold.position == 80
    on_kafka.seek([fold.position])
    while fold.position < len(anchored):
        for record in await on_kafka.next_records():
            assert record.offset >= 80
            fold.fold(record.offset, record.payload)
    assert fold.state.hash() == folded(anchored).state.hash()
