"""Who owns a shard, and since when nobody does."""

from drover.client.history import FoldedLog
from drover.client.transfers import Transfers
from drover.client.views.shard_rows import shard_rows
from drover.client.watching import View, _see
from drover.shard.fold import ShardFold
from events.codec import encode_progress
from events.progress import OwnedShard, WorkerSample

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
    _see(made, encode_progress(WorkerSample(worker="first", at_ms=NOW_MS - seconds_ago * 1000, shards=shards)))
    return made


def test_an_owner_that_was_heard_of_just_now_owns_it_though_it_has_long_written_nothing() -> None:
    (row,) = shard_rows(heard(view(), 1))
    assert row.is_owned
    assert row.sentence(NOW_MS) == "shard 2 is owned by first (epoch 7)"


def test_an_owner_that_is_silent_owns_nothing_since_its_last_sign_of_life() -> None:
    made = heard(view(), 41)
    made.undecided[2] = 3
    (row,) = shard_rows(made)
    assert not row.is_owned
    said = row.sentence(NOW_MS)
    assert "nobody has owned shard 2 for 41 s" in said
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
