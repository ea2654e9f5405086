"""Of several projectors the one that writes is told of, for as long as it is heard; and nothing new is missed."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from drover.client import history, live_view
from drover.client.history import FoldedLog
from drover.client.live_view import SAMPLES_MS, View, _see, watch
from drover.client.transfers import Transfers
from drover.errors import LogAccessError
from drover.events.codec import encode_progress
from drover.events.partitions import TopicPartition
from drover.events.progress import OwnedShard, Progress, ProjectionSample, ReplicaBytes, Sample, WorkerSample
from drover.events.records import Cursor
from drover.events.topics import TopicNames
from drover.fold.log import ShardFold
from drover.journal.command_lag import Waiting
from drover.journal.connection import LogConnection
from drover.journal.reader import LogRecord
from tests.client.log import OneShard, Writer

PROJECTION: dict[str, Any] = {"cluster": "prod", "lag_events": 0, "lag_ms": 0}


def said(writer: str, role: str, at_ms: int, appended_ms: int = -1) -> LogRecord:
    return appended(ProjectionSample(writer=writer, role=role, at_ms=at_ms, **PROJECTION), appended_ms)


def appended(sample: Sample, appended_ms: int) -> LogRecord:
    return LogRecord(0, 0, appended_ms, encode_progress(sample), ())


def test_who_writes_is_told_and_not_who_follows() -> None:
    view = View(FoldedLog({}), Transfers())
    _see(view, said("a", "following", 1000))
    assert view.projections["prod"].writer == "a"
    _see(view, said("b", "writing", 2000))
    _see(view, said("a", "following", 3000))
    assert view.projections["prod"].writer == "b"
    _see(view, said("a", "following", 2000 + SAMPLES_MS + 1))
    assert view.projections["prod"].writer == "a"


def test_a_worker_that_owns_nothing_yet_is_heard_of_too() -> None:
    view = View(FoldedLog({}), Transfers())
    for at_ms in (1000, 3000, 2000):
        _see(view, appended(WorkerSample(worker="w", at_ms=at_ms, shards=()), at_ms))
    assert (view.running, view.workers) == ({"w": 3000}, {})


def test_a_clock_that_was_ahead_hides_nothing_that_comes_after_it_was_put_right() -> None:
    view = View(FoldedLog({}), Transfers())
    for at_ms, appended_ms in ((9_000_000, 1000), (2000, 2000)):
        key: dict[str, Any] = {"cluster": "prod", "topic": "orders", "partition": 1, "epoch": 3, "step": 1}
        copied = Progress(
            **key, at_ms=at_ms, bytes_done=appended_ms, bytes_total=9000, adding=(ReplicaBytes(4, at_ms),)
        )
        _see(view, appended(copied, appended_ms))
        _see(view, appended(WorkerSample(worker="w", at_ms=at_ms, shards=(OwnedShard(0, 3),)), appended_ms))
    _see(view, said("a", "writing", 9_000_000, 1000))
    _see(view, said("b", "following", SAMPLES_MS + 2000, SAMPLES_MS + 2000))
    transfer = view.transfers.transfer("prod", TopicPartition("orders", 1), 1)
    assert transfer is not None
    assert (transfer.bytes_done, transfer.rate) == (2000, 1000)
    assert view.workers[0].at_ms == 2000
    assert view.projections["prod"].writer == "b"


def test_an_epoch_that_the_log_does_not_know_hides_nothing() -> None:
    writer = Writer()
    writer.begin()
    view = View(FoldedLog({0: writer.fold}), Transfers())
    for number, epoch in enumerate((2**63 - 1, 1), start=1):
        key: dict[str, Any] = {"cluster": "prod", "topic": "orders", "partition": 1, "epoch": epoch, "step": 1}
        copied = Progress(**key, at_ms=number, bytes_done=number, bytes_total=9, adding=(ReplicaBytes(4, number),))
        _see(view, appended(copied, number))
        _see(view, appended(WorkerSample(worker=f"w{number}", at_ms=number, shards=(OwnedShard(0, epoch),)), number))
    transfer = view.transfers.transfer("prod", TopicPartition("orders", 1), 1)
    assert transfer is not None
    assert transfer.bytes_done == 2
    assert view.workers[0].worker == "w2"


class _Reader(OneShard):
    """A log whose records arrive when the test says so."""

    def __init__(self, records: dict[str, asyncio.Queue[tuple[LogRecord, ...]]]) -> None:
        self._records = records

    async def end_offsets(self, *_: object) -> dict[int, int]:
        return {0: 0}

    async def start_offsets(self, *_: object, since_ms: int | None = None) -> dict[int, int]:
        return {} if since_ms is not None else {0: 0}

    async def read(self, *_: object) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        none: tuple[tuple[LogRecord, ...], ...] = ()
        for records in none:
            yield records

    async def follow(self, topic: str, _: object) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        while True:
            yield await self._records[topic].get()


async def test_what_arrives_while_the_caller_is_busy_is_new_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = TopicNames()
    arriving: dict[str, asyncio.Queue[tuple[LogRecord, ...]]] = defaultdict(asyncio.Queue)
    monkeypatch.setattr(live_view, "LogReader", lambda _: _Reader(arriving))
    monkeypatch.setattr(history, "load_snapshots", _no_snapshots)
    writer = Writer()
    writer.begin()
    writer.say()
    writer.say()
    records = [LogRecord(0, offset, 0, payload, ()) for offset, payload in enumerate(writer.records)]
    seen = []
    async with asyncio.timeout(10), aclosing(watch(LogConnection("nowhere:1"), None, 60.0)) as views:
        await anext(views)
        for first, last in ((0, 3), (3, 4)):
            await arriving[topics.events].put(tuple(records[first:last]))
            # The followers run, while this caller has not asked for the next view.
            for _ in range(20):
                await asyncio.sleep(0)
            view = await anext(views)
            seen.append([record.offset for record in view.news])
    assert seen == [[2], [3]]


async def test_who_stops_watching_leaves_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python said of the one that was left "Task was destroyed but it is pending!", once for each watch."""
    arriving: dict[str, asyncio.Queue[tuple[LogRecord, ...]]] = defaultdict(asyncio.Queue)
    monkeypatch.setattr(live_view, "LogReader", lambda _: _Reader(arriving))
    monkeypatch.setattr(history, "load_snapshots", _no_snapshots)
    before = asyncio.all_tasks()
    async with aclosing(watch(LogConnection("nowhere:1"), None, 60.0)) as views:
        await anext(views)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await anext(views)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_who_follows_for_days_keeps_no_samples_of_moves_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ms = 1_000_000
    arriving: dict[str, asyncio.Queue[tuple[LogRecord, ...]]] = defaultdict(asyncio.Queue)
    monkeypatch.setattr(live_view, "LogReader", lambda _: _Reader(arriving))
    monkeypatch.setattr(live_view, "_now_ms", lambda: now_ms)
    monkeypatch.setattr(history, "load_snapshots", _no_snapshots)

    def copied(partition: int) -> Progress:
        return Progress(
            cluster="prod", topic="orders", partition=partition, epoch=0, step=1, at_ms=now_ms, bytes_done=1,
            bytes_total=9, adding=(ReplicaBytes(4, 1),),
        )  # fmt: skip

    async with asyncio.timeout(10), aclosing(watch(LogConnection("nowhere:1"), None, 0.0)) as views:
        view = await anext(views)
        for day in range(3):
            await arriving[TopicNames().progress].put(
                tuple(appended(copied(100 * day + number), now_ms) for number in range(100))
            )
            for _ in range(20):
                await asyncio.sleep(0)
            await anext(views)
            known = [
                number for number in range(300) if view.transfers.transfer("prod", TopicPartition("orders", number), 1)
            ]
            assert known == list(range(100 * day, 100 * day + 100))
            now_ms += 24 * 3_600_000


async def _no_snapshots(*_: object) -> dict[int, ShardFold]:
    return {}


class _Commands(_Reader):
    """A topic of commands whose transaction ended behind the one command, which is decided."""

    may_be_read = True

    def __init__(self, isolation: str) -> None:
        super().__init__({})
        self._is_committed = isolation == "read_committed"

    async def end_offsets(self, *_: object) -> dict[int, int]:
        return {0: 2}

    async def read(self, *_: object) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        assert self._is_committed
        if not self.may_be_read:
            raise LogAccessError("the log's Kafka does not allow what was asked")
        none: tuple[tuple[LogRecord, ...], ...] = ()
        for records in none:
            yield records


@pytest.mark.parametrize(("may_be_read", "undecided"), [(True, 0), (False, 4)])
async def test_the_end_of_a_transaction_is_no_undecided_command_for_who_may_read_the_topic(
    monkeypatch: pytest.MonkeyPatch, may_be_read: bool, undecided: int
) -> None:
    monkeypatch.setattr(live_view, "LogReader", lambda _, isolation="read_uncommitted": _Commands(isolation))
    monkeypatch.setattr(_Commands, "may_be_read", may_be_read)
    writer = Writer()
    writer.begin()
    cursors = (Cursor("id", 1),) * 4
    writer.append(replace(writer.batch(), cursors=cursors))
    view = View(FoldedLog({0: writer.fold}), Transfers())
    reader: Any = _Commands("read_uncommitted")
    await live_view._count_undecided(reader, LogConnection("nowhere:1"), view, Waiting())
    assert view.undecided == {0: undecided}
