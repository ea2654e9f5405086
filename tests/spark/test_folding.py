"""The fold of simulated logs: as the plain fold, as the real one, and wherever the log is cut."""

import random

import msgpack
import pytest

from drover.shard.fold import ShardFold
from spark.folding.tally import bucket, bucket_end_ms
from tests.shard.random_logs import random_log
from tests.spark.comparing import difference
from tests.spark.kafka_rows import NAMES, Stored, shard
from tests.spark.oracle import Oracle
from tests.spark.pure import FOLDED, PureJob
from tests.spark.simulated import samples_of

SEEDS = range(12)
RECORDS = 120


def records_of(seed: int) -> list[Stored]:
    return shard(*random_log(seed, RECORDS))


@pytest.mark.parametrize("seed", SEEDS)
def test_simulated_logs_and_samples_make_the_tables_of_the_plain_fold(seed: int) -> None:
    records = [*records_of(seed), *samples_of(seed)]
    wanted = Oracle().read(records, NAMES.progress).tables()
    found = PureJob().take(records).tables()
    assert difference(wanted, found, FOLDED) == []
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
    assert {key for key in whole.carry if not key.startswith("sample")} == {
        key for key in parts.carry if not key.startswith("sample")
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_under_way_is_in_the_state_in_which_the_real_fold_has_it(seed: int) -> None:
    fold = ShardFold(0, 1)
    for offset, payload in enumerate(random_log(seed, RECORDS)):
        fold.fold(offset, payload)
    found = PureJob().take(records_of(seed))
    under_way = 0
    for cluster, state in fold.state.clusters.items():
        for key, entry in state.reassignments.items():
            row = found.rows["reassignments"][cluster, *key]
            under_way += 1
            assert (row["state"], row["plan"], row["began_ms"]) == (entry.phase, entry.plan, entry.queued_ms)
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
    carried = [key for key in found.carry if key.startswith("move/")]
    assert len(carried) == under_way, "what has ended is not carried on"


def test_all_ends_and_states_occur_in_the_simulated_logs() -> None:
    """What no log contains, the comparisons above say nothing about."""
    seen: set[str] = set()
    for seed in SEEDS:
        job = PureJob().take(records_of(seed))
        seen |= {state for _, state, _ in job.rows["durations"]}
    assert {"queued", "intended", "copying", "completed", "rolled-back", "stopped", "cancelling"} <= seen


def test_events_about_a_move_whose_beginning_could_not_be_read_are_passed_over() -> None:
    damaged = []
    for record in records_of(1):
        content = msgpack.unpackb(record.value) if record.value is not None else {}
        begins = any(event["type"] == "reassignment-queued" for event in content.get("events", ()))
        damaged.append(record._replace(value=b"\xc1") if begins else record)
    assert difference(Oracle().read(damaged, NAMES.progress).tables(), PureJob().take(damaged).tables(), FOLDED) == []


@pytest.mark.parametrize("duration_ms", [0, 1, 2, 3, 10, 999, 1000, 86_400_000])
def test_a_bucket_holds_its_durations_and_is_narrow(duration_ms: int) -> None:
    number = bucket(duration_ms)
    assert bucket_end_ms(number - 1) <= max(1, duration_ms) <= bucket_end_ms(number)
    assert bucket_end_ms(number) / bucket_end_ms(number - 1) < 1.1
