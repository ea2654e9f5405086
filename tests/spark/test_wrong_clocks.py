"""Byte samples of senders whose clocks are wrong, or who lie about the time: none hides what comes after it."""

from collections.abc import Iterable
from typing import Any

from msgspec import msgpack

from drover.events.codec import encode_progress
from drover.events.fields import LAST_MS
from drover.events.progress import Progress, ReplicaBytes
from drover.journal.topics import rules
from drover.spark.folding.samples import Copying, Point
from tests.spark.kafka_rows import BEGAN_MS, NAMES, Stored
from tests.spark.pure import PureJob

MINUTE_MS = 60_000
# Partition, ms since the beginning at which it was appended, ms that its clock is ahead, epoch, bytes.
EventContext = tuple[int, int, int, int, int]


def samples(told: Iterable[EventContext], first: int = 0) -> list[Stored]:
    found = []
    for offset, (partition, after_ms, ahead_ms, epoch, copied) in enumerate(told, start=first):
        sample = Progress(
            cluster="local",
            topic="orders",
            partition=partition,
            epoch=epoch,
            at_ms=min(LAST_MS, BEGAN_MS + after_ms + ahead_ms),
            step=1,
            bytes_done=copied,
            bytes_total=10_000,
            adding=(ReplicaBytes(4, copied),),
        )
        found.append(Stored(NAMES.progress, 0, offset, BEGAN_MS + after_ms, encode_progress(sample)))
    return found


def shown(job: PureJob, partition: int = 0) -> dict[str, Any]:
    row: dict[str, Any] = job.rows["samples"]["local", "orders", partition]
    return row


def received(job: PureJob) -> int:
    return sum(row["bytes_in"] or 0 for row in job.rows["brokers"].values())


def test_a_sample_of_the_year_9999_hides_no_later_one_and_counts_as_of_when_it_was_appended() -> None:
    job = PureJob().take(samples([(0, 0, LAST_MS, 3, 100)]))
    assert shown(job)["at_ms"] == BEGAN_MS
    job.take(samples([(0, 2000, 0, 3, 300), (0, 4000, 0, 3, 500)], 1))
    row = shown(job)
    assert (row["at_ms"], row["bytes_done"], row["rate"]) == (BEGAN_MS + 4000, 500, 100)
    assert received(job) == 500


def test_one_sample_of_the_future_does_not_count_what_others_hold_again_in_each_batch() -> None:
    job = PureJob().take(samples([(1, 0, LAST_MS, 1, 0)]))
    for number in range(1, 6):
        job.take(samples([(0, 2000 * number, 0, 1, 100 * number)], number))
    assert received(job) == 500


def test_a_new_owner_whose_clock_is_behind_is_shown_at_once() -> None:
    job = PureJob().take(samples([(0, 0, 0, 1, 100), (0, 2000, -9 * MINUTE_MS, 2, 300)]))
    assert (shown(job)["epoch"], shown(job)["bytes_done"], shown(job)["rate"]) == (2, 300, None)
    job.take(samples([(0, 3000, 0, 1, 150), (0, 4000, -9 * MINUTE_MS, 2, 500)], 2))
    assert (shown(job)["bytes_done"], shown(job)["rate"]) == (500, 100)
    assert received(job) == 500


def test_the_epoch_of_a_liar_is_forgotten_after_ten_minutes_without_it() -> None:
    job = PureJob().take(samples([(0, 0, LAST_MS, 2**63 - 1, 0)]))
    job.take(samples([(0, 9 * MINUTE_MS, 0, 1, 100), (0, 11 * MINUTE_MS, 0, 1, 200)], 1))
    assert (shown(job)["epoch"], shown(job)["bytes_done"]) == (1, 200)


def test_what_an_earlier_version_carried_of_the_future_is_forgotten() -> None:
    job = PureJob()
    poison = Copying("local", "orders", 0, 1, LAST_MS, 1, {4: 0}, [Point(LAST_MS, 0, 0)], LAST_MS)
    other = Copying("local", "orders", 1, 1, BEGAN_MS, 1, {4: 70}, [Point(BEGAN_MS, 70, 100)], BEGAN_MS)
    # It had no time of Kafka's.
    job.carry["samples/0"] = msgpack.encode([msgpack.decode(msgpack.encode(one))[:-1] for one in (poison, other)])
    job.take(samples([(0, 1000, 0, 1, 10), (1, 1000, 0, 1, 80)]))
    assert (shown(job)["at_ms"], shown(job, 1)["rate"]) == (BEGAN_MS + 1000, 10)
    assert received(job) == 20


def test_the_brokers_date_the_samples() -> None:
    (progress,) = (rule for rule in rules(NAMES, 1) if rule.name == NAMES.progress)
    assert progress.spec.configs["message.timestamp.type"] == "LogAppendTime"
    assert progress.required == {}, "a worker starts with the topic of an older version, too"
