"""The present as the log and the progress topic show it, kept up to date: what `status` draws."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from drover.client.history import FoldedLog, ValidRecord, fold_to_end, follow_log
from drover.client.transfers import WINDOW_MS, Transfers
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from events.codec import decode_progress
from events.progress import ProjectionSample

# Samples older than this say nothing about a move that is still copying.
SAMPLES_MS = 4 * WINDOW_MS


@dataclass(slots=True)
class View:
    """The folded log and the samples, up to now; `news` is what was recorded since it was last shown.

    `projections` holds, per cluster, the last sample of the projector that writes it, or else of one that waits to.
    """

    log: FoldedLog
    transfers: Transfers
    news: list[ValidRecord] = field(default_factory=list)
    projections: dict[str, ProjectionSample] = field(default_factory=dict)


async def look(connection: LogConnection, cluster: str | None = None) -> View:
    """Read the log up to its present end, and the samples of the last minute."""
    async with LogReader(connection) as reader:
        view = await _opened(reader, connection, cluster)
        await _read_samples(reader, connection, view)
    return view


async def watch(connection: LogConnection, cluster: str | None, pause_s: float) -> AsyncGenerator[View, None]:
    """Yield the present whenever something is new, and at least every `pause_s` seconds.

    Never ends; close the generator. `news` is cleared after each time.
    """
    async with LogReader(connection) as log_reader, LogReader(connection) as sample_reader:
        view = await _opened(log_reader, connection, cluster)
        starts = await _read_samples(sample_reader, connection, view)
        fresh = asyncio.Event()
        following = (
            asyncio.create_task(_follow(log_reader, connection, view, fresh)),
            asyncio.create_task(_follow_samples(sample_reader, connection, view, starts)),
        )
        try:
            while True:
                yield view
                view.news.clear()
                fresh.clear()
                waiting = asyncio.create_task(fresh.wait())
                done, _ = await asyncio.wait(
                    (*following, waiting), timeout=pause_s, return_when=asyncio.FIRST_COMPLETED
                )
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
    """Read the last minute's samples and return where every partition goes on."""
    topic = connection.topics.progress
    partitions = range(await reader.partitions(topic))
    ends = await reader.end_offsets(topic, partitions)
    recent = await reader.start_offsets(topic, partitions, since_ms=int(time.time() * 1000) - SAMPLES_MS)
    async for records in reader.read(topic, recent):
        for record in records:
            _see(view, record.payload)
    return ends


async def _follow(reader: LogReader, connection: LogConnection, view: View, fresh: asyncio.Event) -> None:
    async with aclosing(follow_log(reader, connection, view.log)) as reading:
        async for found in reading:
            view.news += found
            fresh.set()


async def _follow_samples(reader: LogReader, connection: LogConnection, view: View, starts: dict[int, int]) -> None:
    async with aclosing(reader.follow(connection.topics.progress, starts)) as reading:
        async for records in reading:
            for record in records:
                _see(view, record.payload)


def _see(view: View, payload: bytes) -> None:
    sample = decode_progress(payload)
    if isinstance(sample, ProjectionSample):
        known = view.projections.get(sample.cluster)
        # Projectors that only follow are ignored while the one that writes sends samples.
        if known is None or sample.role == "writing" or known.writer == sample.writer or _is_silent(known, sample):
            view.projections[sample.cluster] = sample
    elif sample is not None:
        view.transfers.see(sample)


def _is_silent(known: ProjectionSample, sample: ProjectionSample) -> bool:
    return known.role != "writing" or sample.at_ms - known.at_ms > SAMPLES_MS
