"""A live view of the log and the progress topic, for `status` and the page."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from msgspec.structs import replace

from drover.client.history import FoldedLog, ValidRecord, fold_to_end, follow_log
from drover.client.transfers import HISTORY_MS, Transfers
from drover.errors import LogAccessError
from drover.events.codec import decode_progress
from drover.events.progress import ProjectionSample, WorkerSample
from drover.events.topics import shard_of
from drover.journal.command_lag import Place, Waiting
from drover.journal.connection import LogConnection
from drover.journal.reader import COMMAND_ISOLATION, LogReader, LogRecord

# Samples older than this are useless for a move that is still copying.
SAMPLES_MS = HISTORY_MS
# How long samples of moves that have ended are kept.
FORGET_MS = 10 * SAMPLES_MS
# How often the ends of the command topics are looked up.
UNDECIDED_S = 2.0


@dataclass(frozen=True, slots=True)
class Heard:
    """The last sign of life of a shard's owner: its name, its epoch there, and its wall clock."""

    worker: str
    epoch: int
    at_ms: int


@dataclass(slots=True)
class View:
    """The folded log and the samples up to now; `news` are the batches since the view was last shown.

    `projections` holds, per cluster, the last sample of the projector that writes it, or else of a standby. `workers`
    holds the last sign of life of each shard's owner, `running` that of every worker by name (wall clock, ms since the
    epoch), with or without shards, and `undecided` the number of undecided commands in each shard. `now_ms` is the
    reader's wall clock.
    """

    log: FoldedLog
    transfers: Transfers
    news: list[ValidRecord] = field(default_factory=list)
    projections: dict[str, ProjectionSample] = field(default_factory=dict)
    workers: dict[int, Heard] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    undecided: dict[int, int] = field(default_factory=dict)
    now_ms: int = 0


async def look(connection: LogConnection, cluster: str | None = None) -> View:
    """Read the log up to its current end, and the samples of the last minute."""
    async with LogReader(connection) as reader:
        view = await _opened(reader, connection, cluster)
        await _read_samples(reader, connection, view)
        await _count_undecided(reader, connection, view, Waiting())
    view.now_ms = _now_ms()
    return view


async def watch(connection: LogConnection, cluster: str | None, pause_s: float) -> AsyncGenerator[View, None]:
    """Yield the view after each new record, and at least every `pause_s` seconds.

    Never ends; close the generator. The first view has everything that `look` reads. `news` holds every batch since the
    last view, no matter how long the caller took. Samples of moves that have ended are forgotten after a while, because
    the view may be used for days.
    """
    async with (
        LogReader(connection) as log_reader,
        LogReader(connection) as sample_reader,
        LogReader(connection) as end_reader,  # a reader of its own, whose requests do not queue behind long fetches
    ):
        view = await _opened(log_reader, connection, cluster)
        starts = await _read_samples(sample_reader, connection, view)
        waiting_commands = Waiting()
        # Before the first view, which would else look as if nothing was to come.
        await _count_undecided(end_reader, connection, view, waiting_commands)
        fresh = asyncio.Event()
        following = (
            asyncio.create_task(_follow(log_reader, connection, view, fresh)),
            asyncio.create_task(_follow_samples(sample_reader, connection, view, starts)),
            asyncio.create_task(_keep_counting(end_reader, connection, view, waiting_commands)),
        )
        forgotten_ms = 0
        try:
            while True:
                # Records that arrive while the caller works belong to the next view, which then follows at once.
                fresh.clear()
                shown = len(view.news)
                view.now_ms = _now_ms()
                if abs(view.now_ms - forgotten_ms) > SAMPLES_MS:
                    forgotten_ms = view.now_ms
                    view.transfers.forget_before(view.now_ms - FORGET_MS)
                yield view
                del view.news[:shown]
                waiting = asyncio.create_task(fresh.wait())
                try:
                    done, _ = await asyncio.wait(
                        (*following, waiting), timeout=pause_s, return_when=asyncio.FIRST_COMPLETED
                    )
                finally:
                    waiting.cancel()
                for task in done & set(following):
                    task.result()
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)


async def _opened(reader: LogReader, connection: LogConnection, cluster: str | None) -> View:
    return View(await fold_to_end(reader, connection, cluster), Transfers())


async def _read_samples(reader: LogReader, connection: LogConnection, view: View) -> dict[int, int]:
    """Read the last minute's samples, and return the next offset of each partition."""
    topic = connection.topics.progress
    partitions = range(await reader.partitions(topic))
    ends = await reader.end_offsets(topic, partitions)
    recent = await reader.start_offsets(topic, partitions, since_ms=_now_ms() - SAMPLES_MS)
    async for records in reader.read(topic, recent):
        for record in records:
            _see(view, record)
    return ends


async def _count_undecided(reader: LogReader, connection: LogConnection, view: View, waiting: Waiting) -> None:
    """Count the undecided commands of each shard, from the end offsets of the command topics."""
    folds = view.log.folds
    counts: dict[Place, int] = {}
    for index, topic in enumerate(connection.topics.commands):
        ends = await reader.end_offsets(topic, folds.keys())
        for shard, fold in folds.items():
            decided = fold.cursors[index].next_offset if fold.cursors else 0
            counts[topic, shard] = waiting.count((topic, shard), decided, ends.get(shard, 0))
    if waiting.may_be_less:
        # A user without the right to read commands keeps the count of offsets, which may include ends of transactions.
        with suppress(LogAccessError):
            async with LogReader(connection, COMMAND_ISOLATION) as commands:
                counts.update(await waiting.find_out(commands))
    view.undecided.update({shard: sum(counts[topic, shard] for topic in connection.topics.commands) for shard in folds})


async def _keep_counting(reader: LogReader, connection: LogConnection, view: View, waiting: Waiting) -> None:
    while True:
        await asyncio.sleep(UNDECIDED_S)
        await _count_undecided(reader, connection, view, waiting)


async def signs_of_life(connection: LogConnection) -> View:
    """Return the signs of life of the last minute: `workers` and `running` of a view without a log."""
    async with LogReader(connection) as reader:
        view = View(FoldedLog({}), Transfers())
        await _read_samples(reader, connection, view)
    return view


def _now_ms() -> int:
    return int(time.time() * 1000)


async def _follow(reader: LogReader, connection: LogConnection, view: View, fresh: asyncio.Event) -> None:
    async with aclosing(follow_log(reader, connection, view.log)) as reading:
        async for records in reading:
            view.news += records
            fresh.set()


async def _follow_samples(reader: LogReader, connection: LogConnection, view: View, starts: dict[int, int]) -> None:
    async with aclosing(reader.follow(connection.topics.progress, starts)) as reading:
        async for records in reading:
            for record in records:
                _see(view, record)


def _see(view: View, record: LogRecord) -> None:
    sample = decode_progress(record.payload)
    # A worker's clock may be ahead; its samples would hide the later ones once the clock is corrected.
    if sample is not None and sample.at_ms > record.timestamp_ms >= 0:
        sample = replace(sample, at_ms=record.timestamp_ms)
    if isinstance(sample, ProjectionSample):
        last = view.projections.get(sample.cluster)
        # Projectors that only follow are ignored while the one that writes sends samples.
        if last is None or sample.role == "writing" or last.writer == sample.writer or _is_silent(last, sample):
            view.projections[sample.cluster] = sample
    elif isinstance(sample, WorkerSample):
        view.running[sample.worker] = max(sample.at_ms, view.running.get(sample.worker, 0))
        for owned in sample.shards:
            before = view.workers.get(owned.shard)
            is_newer = before is None or (owned.epoch, sample.at_ms) > (before.epoch, before.at_ms)
            if is_newer and not _is_to_come(view, owned.shard, owned.epoch):
                view.workers[owned.shard] = Heard(sample.worker, owned.epoch, sample.at_ms)
    elif sample is not None and not _is_to_come(view, _shard_of(view, sample.cluster), sample.epoch):
        view.transfers.see(sample)


def _is_to_come(view: View, shard: int | None, epoch: int) -> bool:
    """Whether the epoch is later than the log's; such a sample would hide those of the current owner."""
    fold = None if shard is None else view.log.folds.get(shard)
    return fold is not None and epoch > fold.epoch


def _shard_of(view: View, cluster: str) -> int | None:
    fold = next(iter(view.log.folds.values()), None)
    return None if fold is None else shard_of(cluster, fold.shards)


def _is_silent(last: ProjectionSample, sample: ProjectionSample) -> bool:
    return last.role != "writing" or sample.at_ms - last.at_ms > SAMPLES_MS
