"""Bytes received per broker, from the samples: each byte counts once, even if a broker restarts during a copy."""

from collections.abc import Iterable

import pytest

from drover.events.codec import encode_progress
from drover.events.progress import Progress, ReplicaBytes
from tests.spark.comparing import difference
from tests.spark.kafka_rows import BEGAN_MS, NAMES, Stored
from tests.spark.oracle import Oracle
from tests.spark.pure import PureJob
from tests.spark.simulated import samples_of

GB = 10**9
# The step, and what each replica that is added shows then.
EventContext = tuple[int, dict[int, int]]


def samples(told: Iterable[EventContext]) -> list[Stored]:
    found = []
    for number, (step, held) in enumerate(told):
        at_ms = BEGAN_MS + number * 1000
        sample = Progress(
            cluster="local",
            topic="orders",
            partition=0,
            epoch=1,
            at_ms=at_ms,
            step=step,
            bytes_done=sum(held.values()),
            bytes_total=100 * GB,
            adding=tuple(ReplicaBytes(broker, size) for broker, size in held.items()),
            leader=1,
        )
        found.append(Stored(NAMES.progress, 0, number, at_ms, encode_progress(sample)))
    return found


def received(records: list[Stored], cut: int) -> tuple[dict[int, int], int]:
    """Return what each broker received and what the leader sent, of a stream whose batches end at `cut`."""
    job = PureJob().take(records[:cut]).take(records[cut:])
    assert difference(Oracle().read(records, NAMES.progress).tables(), job.tables(), ("brokers",)) == []
    found: dict[int, int] = {}
    for (_, broker, _), row in job.rows["brokers"].items():
        found[broker] = found.get(broker, 0) + (row["bytes_in"] or 0)
    sent = sum(row["bytes_out"] or 0 for (_, broker, _), row in job.rows["brokers"].items() if broker == 1)
    return {broker: count for broker, count in found.items() if broker != 1}, sent


@pytest.mark.parametrize("cut", range(1, 6))
def test_what_a_broker_had_before_it_went_down_is_not_received_again_once_it_is_back(cut: int) -> None:
    told = samples([(1, {4: 50 * GB, 5: 0}), (1, {4: 0, 5: 0}), (1, {4: 0, 5: 9}), (1, {4: 50 * GB, 5: 9})])
    told += samples([*[(1, {4: 0, 5: 0})] * 4, (1, {4: 51 * GB, 5: 9}), (1, {4: 60 * GB, 5: 9})])[4:]
    assert received(told, cut) == ({4: 60 * GB, 5: 9}, 60 * GB + 9)


def test_a_replica_that_begins_anew_in_a_later_step_is_received_again() -> None:
    told = samples([(1, {4: 500}), (1, {4: 0}), (2, {4: 0}), (2, {4: 300})])
    assert received(told, 1) == ({4: 800}, 800)


def test_a_replica_that_was_not_added_meanwhile_is_received_again() -> None:
    told = samples([(1, {4: 500}), (1, {5: 20}), (1, {4: 300})])
    assert received(told, 2) == ({4: 800, 5: 20}, 820)


@pytest.mark.parametrize("seed", range(10, 20))
def test_random_samples_are_summed_up_as_the_plain_fold_does(seed: int) -> None:
    records = samples_of(seed)
    received(records, len(records) // 2)
