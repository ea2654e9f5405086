"""The fold of simulated logs: as the plain fold, as the real one, and wherever the log is cut."""

import random

import pytest

from drover.events.codec import decode_record
from drover.events.records import Batch
from drover.fold.log import RecordVerdict, ShardFold
from drover.spark.folding.carry import unpacked
from drover.spark.folding.parts import folded
from drover.spark.folding.shard import EventHandlers, TablesFold
from drover.spark.merge import part_of
from drover.spark.schema import TABLES
from drover.spark.tables.measures import bucket, bucket_end_ms
from drover.spark.tables.registry import CAPABILITIES, tables_of
from drover.spark.tables.row_buffer import RowBuffer
from tests.shard.random_logs import random_log
from tests.spark.comparing import difference
from tests.spark.kafka_rows import NAMES, Stored, acquire, shard
from tests.spark.kafka_rows import batch as made_batch
from tests.spark.oracle import Oracle
from tests.spark.pure import PureJob, in_order
from tests.spark.simulated import samples_of

# Seed 4 moves nothing in so few records.
SEEDS = (*range(4), *range(5, 13))
RECORDS = 120


def records_of(seed: int) -> list[Stored]:
    return shard(*random_log(seed, RECORDS))


@pytest.mark.parametrize("seed", SEEDS)
def test_simulated_logs_and_samples_make_the_tables_of_the_plain_fold(seed: int) -> None:
    records = [*records_of(seed), *samples_of(seed)]
    wanted = Oracle().read(records, NAMES.progress).tables()
    found = PureJob().take(records).tables()
    assert wanted.keys() == found.keys()
    assert difference(wanted, found) == []
    assert wanted["reassignments"]
    assert wanted["durations"]
    assert wanted["samples"]
    assert any("bytes_in" in row for row in wanted["brokers"].values())


@pytest.mark.parametrize("seed", SEEDS)
def test_wherever_the_log_is_cut_the_tables_are_the_same(seed: int) -> None:
    records, chance = [*records_of(seed), *samples_of(seed)], random.Random(seed)
    whole = PureJob().take(records)
    parts = PureJob()
    of_log, of_samples = records_of(seed), samples_of(seed)
    while of_log or of_samples:
        some, more = chance.randint(0, 30), chance.randint(0, 60)
        parts.take([*of_log[:some], *of_samples[:more]])
        of_log, of_samples = of_log[some:], of_samples[more:]
    assert difference(whole.tables(), parts.tables()) == []
    assert whole.carry == parts.carry


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_under_way_is_in_the_state_in_which_the_real_fold_has_it(seed: int) -> None:
    fold = ShardFold(0, 1)
    for offset, payload in enumerate(random_log(seed, RECORDS)):
        fold.fold(offset, payload)
    found = PureJob().take(records_of(seed))
    for cluster, state in fold.state.clusters.items():
        for key, entry in state.reassignments.items():
            row = found.rows["reassignments"][cluster, *key]
            assert (row["state"], row["plan"], row["began_ms"]) == (entry.phase, entry.plan, entry.created_ms)
            assert row["reason"] == (None if entry.block is None else entry.block.why)
            assert row["bytes_copied"] == entry.bytes_copied
            assert row["bytes_unknown"] == entry.bytes_unknown
            assert row["requester"] == state.plans[entry.plan].by
        for name, plan in state.plans.items():
            row = found.rows["plans"][cluster, name]
            counts = ("completed", "rolled_back", "stopped", "failed", "waiting", "withdrawn")
            assert {column: row[column] or 0 for column in counts} == {
                column: getattr(plan, column) for column in counts
            }
    carried, _ = unpacked(found.carry["shard/0"], CAPABILITIES)
    assert carried.state.hash() == fold.state.hash(), "the state is carried on, and nothing else"
    assert not list(carried.decided_commands.items())


@pytest.mark.parametrize("name", tables_of(CAPABILITIES))
def test_who_keeps_one_table_only_gets_the_same_rows_of_it(name: str) -> None:
    """A function that puts to a table without naming it would be left out."""
    for seed in SEEDS[:4]:
        rows = []
        for kept in (None, {name}):
            fold = TablesFold(0, 1, RowBuffer(TABLES), EventHandlers(CAPABILITIES, kept))
            for offset, payload in enumerate(random_log(seed, RECORDS)):
                fold.fold(offset, payload)
            fold.fill_in()
            rows.append(fold.buffer.rows[name])
        assert rows[0] == rows[1]


def test_rows_of_the_history_are_made_only_for_who_keeps_it() -> None:
    whole, bounded = (part_of(folded(in_order(records_of(1)), {}, keeps_history=keeps)) for keeps in (True, False))
    assert whole.rows.keys() - bounded.rows.keys() == {"ended"}
    assert bounded.rows == {name: rows for name, rows in whole.rows.items() if name != "ended"}
    assert bounded.carried == whole.carried


def test_all_ends_and_states_occur_in_the_simulated_logs() -> None:
    """What no log contains, the comparisons above say nothing about."""
    seen: set[str] = set()
    filled: set[str] = set()
    for seed in SEEDS:
        job = PureJob().take(records_of(seed))
        filled |= {name for name, rows in job.rows.items() if rows}
        seen |= {state for _, state, _ in job.rows["durations"]}
    assert {"pending", "intended", "copying", "completed", "rolled-back", "stopped", "cancelling"} <= seen
    assert TABLES.keys() - filled == {"samples", "undecodable"}


def last_valid(records: list[Stored]) -> bytes:
    """The payload of the last batch that counts."""
    fold, last = ShardFold(0, 1), b""
    for one in records:
        folded = fold.fold(one.offset, one.value or b"")
        if folded is not None and folded.verdict is RecordVerdict.VALID:
            last = one.value or b""
    return last


@pytest.mark.parametrize("resumes", [True, False])
def test_after_a_damaged_record_nothing_counts_until_an_acquire_resumes_the_shard(*, resumes: bool) -> None:
    records = records_of(1)
    owned = [decode_record(one.value or b"") for one in records]
    place = next(place for place, one in enumerate(owned) if place > RECORDS // 3 and isinstance(one, Batch))
    batch = owned[place]
    assert isinstance(batch, Batch)
    resuming = acquire(batch.epoch + 1, b"r" * 16, resumes_after=place if resumes else None)
    following = made_batch(
        batch.sequence, token=b"r" * 16, epoch=batch.epoch + 1, at_ms=batch.at_ms, after=last_valid(records[:place])
    )
    log = [
        *(one.value for one in records[:place]),
        b"\xc1" + batch.token,
        records[place + 1].value,
        resuming,
        following,
    ]
    wanted = Oracle().read(shard(*log), NAMES.progress).tables()
    found = PureJob().take(shard(*log))
    assert difference(wanted, found.tables()) == []
    assert sum(row["void_records"] or 0 for row in found.rows["takeovers"].values()) == (1 if resumes else 3)
    (unreadable,) = found.rows["undecodable"].values()
    assert (unreadable["records"], unreadable["last_offset"]) == (1, place)
    parts = PureJob().take(shard(*log)[: place + 1]).take(shard(*log)[place + 1 :])
    assert difference(found.tables(), parts.tables()) == []


@pytest.mark.parametrize("duration_ms", [0, 1, 2, 3, 10, 999, 1000, 86_400_000])
def test_a_bucket_holds_its_durations_and_is_narrow(duration_ms: int) -> None:
    number = bucket(duration_ms)
    assert bucket_end_ms(number - 1) <= max(1, duration_ms) <= bucket_end_ms(number)
    assert bucket_end_ms(number) / bucket_end_ms(number - 1) < 1.1
