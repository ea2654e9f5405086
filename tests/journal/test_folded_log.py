"""The folded log: appends know their verdict, gaps are proven, and nothing is guessed."""

import asyncio
from collections.abc import Sequence

import pytest

from drover.errors import AppendUnknownError, ConfigurationError, CorruptLogError
from drover.events.codec import encode_record
from drover.events.records import SCHEMA_VERSION, Acquire, Batch, Cursor, Genesis
from drover.fold.log import Damage, Folded, RecordVerdict, ShardFold
from drover.journal.folded_log import FoldedLog
from drover.journal.port import TailRecord
from drover.journal.recovery import resume, resuming_acquire
from drover.testing.memory_journal import MemoryBroker, MemoryJournal, StoredRecord

EVENTS = MemoryBroker().topics.events
CURSORS = tuple(Cursor(f"id-{number}", 0) for number in range(4))


def _acquire(epoch: int, token: bytes = b"mine") -> Acquire:
    return Acquire(schema=SCHEMA_VERSION, epoch=epoch, token=token, owner="w", group="g", generation=1)


def _batch(token: bytes = b"mine", sequence: int = 1) -> Batch:
    return Batch(
        schema=SCHEMA_VERSION,
        token=token,
        epoch=1,
        sequence=sequence,
        at_ms=1,
        cursors=CURSORS,
        previous_hash=b"",
    )


def _broker() -> MemoryBroker:
    broker = MemoryBroker()
    genesis = Genesis(schema=SCHEMA_VERSION, shards=1, shard=0)
    broker.put(EVENTS, 0, StoredRecord(encode_record(genesis)))
    return broker


class Skipping(MemoryJournal):
    """A tail that loses the record at offset 1."""

    async def next_records(self) -> Sequence[TailRecord]:
        return [record for record in await super().next_records() if record.offset != 1]


async def _log(
    journal: MemoryJournal, told: list[Folded] | None = None, damages: list[tuple[int, Damage]] | None = None
) -> FoldedLog:
    told, damaged = [] if told is None else told, [] if damages is None else damages
    log = FoldedLog(
        journal,
        EVENTS,
        lambda _shard, folded: told.append(folded),
        lambda shard, damage: damaged.append((shard, damage)),
    )
    await journal.start()
    await log.replay()
    return log


async def test_replay_folds_everything_there_is() -> None:
    broker = _broker()
    broker.put(EVENTS, 0, StoredRecord(encode_record(_acquire(1))))
    told: list[Folded] = []
    log = await _log(MemoryJournal(broker, 1), told)
    assert log.folds[0].epoch == 1
    assert [folded.verdict for folded in told] == [RecordVerdict.GENESIS, RecordVerdict.ACQUIRED]


async def test_an_append_with_nothing_in_between_is_folded_at_once() -> None:
    log = await _log(MemoryJournal(_broker(), 1))
    acquire, batch = _acquire(1), _batch()
    assert (await log.append(0, acquire, encode_record(acquire))).verdict is RecordVerdict.ACQUIRED
    assert (await log.append(0, batch, encode_record(batch))).verdict is RecordVerdict.VALID


async def test_an_append_behind_a_theft_is_fenced_and_the_tail_says_so() -> None:
    broker = _broker()
    log = await _log(MemoryJournal(broker, 1))
    acquire, batch = _acquire(1), _batch()
    await log.append(0, acquire, encode_record(acquire))
    broker.put(EVENTS, 0, StoredRecord(encode_record(_acquire(2, b"thief"))))
    following = asyncio.create_task(log.follow())
    try:
        assert (await log.append(0, batch, encode_record(batch))).verdict is RecordVerdict.FENCED
    finally:
        following.cancel()
    assert log.folds[0].token == b"thief"


async def test_a_valid_append_stays_valid_although_the_shard_is_lost_right_after() -> None:
    broker = _broker()
    log = await _log(MemoryJournal(broker, 1))
    acquire, batch = _acquire(1), _batch()
    await log.append(0, acquire, encode_record(acquire))
    appending = asyncio.create_task(log.append(0, batch, encode_record(batch)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    broker.put(EVENTS, 0, StoredRecord(encode_record(_acquire(2, b"thief"))))
    await log.replay()
    assert (await appending).verdict is RecordVerdict.VALID
    assert log.folds[0].token == b"thief"


async def test_transaction_markers_in_the_log_are_passed() -> None:
    broker = _broker()
    broker.put(EVENTS, 0, None)
    broker.put(EVENTS, 0, StoredRecord(encode_record(_acquire(1))))
    broker.put(EVENTS, 0, None)
    log = await _log(MemoryJournal(broker, 1))
    assert log.folds[0].epoch == 1


async def test_a_record_that_the_tail_lost_stops_the_reader() -> None:
    broker = _broker()
    for epoch in (1, 2):
        broker.put(EVENTS, 0, StoredRecord(encode_record(_acquire(epoch))))
    with pytest.raises(CorruptLogError, match="a direct read finds a record at 1"):
        await _log(Skipping(broker, 1))


async def test_an_unknown_append_is_passed_on_and_leaves_nothing_behind() -> None:
    broker = _broker()
    log = await _log(MemoryJournal(broker, 1))
    broker.lost_acknowledgements = 1
    acquire = _acquire(1)
    with pytest.raises(AppendUnknownError):
        await log.append(0, acquire, encode_record(acquire))
    await log.replay()
    assert log.folds[0].token == b"mine", "it was written all the same"


async def test_damage_stops_its_own_shard_and_an_acquire_that_names_it_resumes_it() -> None:
    broker = MemoryBroker()
    for shard in (0, 1):
        genesis = Genesis(schema=SCHEMA_VERSION, shards=2, shard=shard)
        for record in (genesis, _acquire(1)):
            broker.put(EVENTS, shard, StoredRecord(encode_record(record)))
    broker.put(EVENTS, 0, StoredRecord(b"\xc1 mine"))
    broker.put(EVENTS, 0, StoredRecord(encode_record(_batch())))
    damages: list[tuple[int, Damage]] = []
    log = await _log(MemoryJournal(broker, 2), damages=damages)
    assert [(shard, damage.offset) for shard, damage in damages] == [(0, 2)]
    broker.put(EVENTS, 1, StoredRecord(encode_record(_batch())))
    await log.replay()
    assert [fold.sequence for fold in log.folds] == [0, 1]
    await resume(MemoryJournal(broker, 2), log.folds[0].copy(), 2, "admin")
    await log.replay()
    assert [fold.damage for fold in log.folds] == [None, None]
    assert log.folds[0].epoch == 2


async def test_an_owner_whose_own_record_breaks_a_rule_is_told_so() -> None:
    log = await _log(MemoryJournal(_broker(), 1))
    acquire, batch = _acquire(1), _batch(sequence=7)
    await log.append(0, acquire, encode_record(acquire))
    with pytest.raises(CorruptLogError, match="sequence 7"):
        await log.append(0, batch, encode_record(batch))


@pytest.mark.parametrize("offset", [1, 3])
def test_nobody_resumes_a_shard_at_another_place_than_where_it_is_damaged(offset: int) -> None:
    fold = ShardFold(0, 1)
    with pytest.raises(ConfigurationError, match="not damaged"):
        resuming_acquire(fold, offset, "admin")
    fold.fold(0, encode_record(_acquire(1)))
    fold.fold_on(1, encode_record(_batch()))
    assert fold.fold_on(2, b"\xc1 mine") is None
    with pytest.raises(ConfigurationError, match="at offset 2"):
        resuming_acquire(fold, offset, "admin")
