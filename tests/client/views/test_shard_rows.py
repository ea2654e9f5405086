"""Shard rows: the owner, its last sign of life, and worker groups that compete for the shard."""

from rich.console import Console

from drover.cli.status import Choice, status_layout
from drover.client.history import FoldedLog
from drover.client.live_view import View, _see
from drover.client.transfers import Transfers
from drover.client.views.shard_rows import CONFLICT_MS, ownership_conflicts, shard_rows
from drover.events.codec import encode_progress
from drover.events.progress import OwnedShard, WorkerSample
from drover.fold.log import ShardFold
from drover.journal.reader import LogRecord
from tests.client.log import Writer

NOW_MS = 1_790_000_000_000


def view(*, owner: str = "first", epoch: int = 7, last_record_s: int = 300) -> View:
    fold = ShardFold(2, 6)
    fold.owner, fold.epoch = owner, epoch
    log = FoldedLog({2: fold})
    if owner:
        log.last_record_ms[2] = NOW_MS - last_record_s * 1000
    return View(log, Transfers(), now_ms=NOW_MS)


def heard(made: View, seconds_ago: int, epoch: int = 7) -> View:
    shards = (OwnedShard(2, epoch),)
    at_ms = NOW_MS - seconds_ago * 1000
    sample = WorkerSample(worker="first", at_ms=at_ms, shards=shards)
    _see(made, LogRecord(0, 0, at_ms, encode_progress(sample), ()))
    return made


def test_an_owner_that_was_heard_of_just_now_owns_it_though_it_has_long_written_nothing() -> None:
    (row,) = shard_rows(heard(view(), 1))
    assert row.is_owned
    assert row.sentence(NOW_MS) == "shard 2 is owned by first (epoch 7)"


def test_an_owner_that_misses_its_signs_of_life_is_silent_before_its_session_is_over() -> None:
    (row,) = shard_rows(heard(view(), 8))
    assert row.is_owned
    assert row.silent_ms(NOW_MS) == 8000
    assert row.sentence(NOW_MS) == (
        "shard 2 is owned by first (epoch 7), silent for 8 s; another worker takes over after its session timeout"
    )
    (later,) = shard_rows(heard(view(), 4))
    assert later.silent_ms(NOW_MS) is None


def test_an_owner_that_is_silent_owns_nothing_since_its_last_sign_of_life() -> None:
    made = heard(view(), 41)
    made.undecided[2] = 3
    (row,) = shard_rows(made)
    assert not row.is_owned
    said = row.sentence(NOW_MS)
    assert "shard 2 has shown no sign of an owner for 41 s" in said
    assert "3 commands undecided" in said
    assert "drover worker" in said


def test_a_sign_of_life_under_an_earlier_epoch_counts_for_nothing() -> None:
    (row,) = shard_rows(heard(view(), 1, epoch=6))
    assert not row.is_owned
    assert row.heard_ms == NOW_MS - 300_000


def test_a_shard_that_never_had_an_owner_says_so_with_what_waits() -> None:
    made = view(owner="", epoch=0)
    made.undecided[2] = 1
    (row,) = shard_rows(made)
    assert (row.is_owned, row.heard_ms) == (False, None)
    assert row.sentence(NOW_MS).startswith("shard 2 has never had an owner; 1 command undecided")


def test_a_record_is_a_sign_of_life_too() -> None:
    (row,) = shard_rows(view(last_record_s=3))
    assert row.is_owned


def taken_over(*groups: str, every_ms: int = 4_000, shards: int = 1) -> View:
    """Each shard was taken by a worker of each group in turn, the last time just now."""
    log = FoldedLog({shard: ShardFold(shard, shards) for shard in range(shards)})
    for shard in range(shards):
        writer = Writer(shard, shards)
        writer.begin()
        for number, group in enumerate(groups):
            writer.acquire(f"{group}-{number}", group)
        first_ms = NOW_MS - every_ms * (len(writer.records) - 1)
        for offset, payload in enumerate(writer.records):
            log.take([LogRecord(shard, offset, first_ms + offset * every_ms, payload, ())])
    return View(log, Transfers(), now_ms=NOW_MS)


def test_groups_of_workers_that_take_a_shard_from_each_other_are_named_with_the_remedy() -> None:
    fought = taken_over("drover-worker", "other", "drover-worker", "other", shards=2)
    rows = shard_rows(fought)
    assert [set(row.competing_groups) for row in rows] == [{"g", "drover-worker", "other"}] * 2
    fought = taken_over(*("drover-worker", "other") * 20, shards=2)
    said = (
        "two groups of workers (drover-worker, other) take shards 0, 1 from each other: "
        "give all of them the same worker.group"
    )
    assert list(ownership_conflicts(shard_rows(fought))) == [said]
    assert shard_rows(fought)[0].document()["competing_groups"] == ("drover-worker", "other")
    console = Console(width=300)
    with console.capture() as capture:
        console.print(status_layout(fought, Choice()))
    assert said in capture.get()


def test_a_new_group_for_all_workers_and_takeovers_within_one_are_no_fight() -> None:
    for groups in (("g", "g", "g"), ("g", "new", "new"), ("new", "newer"), ("", "g", "", "g")):
        assert not any(row.competing_groups for row in shard_rows(taken_over(*groups)))


def test_a_fight_that_has_ended_is_not_told_of() -> None:
    fought = taken_over("other", "g", "other", "g")
    assert shard_rows(fought)[0].competing_groups
    fought.now_ms += CONFLICT_MS
    assert not shard_rows(fought)[0].competing_groups
