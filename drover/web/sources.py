"""The page's sources: one reader each of the log, the samples and the tables, for as long as it serves."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from drover.client.history import open_log, read_log
from drover.client.live_view import watch
from drover.client.views.dead_letter_rows import dead_letter
from drover.errors import DroverError, LogUnavailableError
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.time_limits import time_limit
from drover.web.page_state import PageState
from drover.web.present import LogEnds, Present

_log = logging.getLogger(__name__)

PAUSE_S = 1.0
# The most of one core that computing documents may use; longer computations make longer pauses. Only this thread's own
# processor time counts.
BUSY_SHARE = 0.2
LEAST_PAUSE_S = 0.1
LOOK_S = 3.0
LOOK_TIMEOUT_S = 4.0
RETRY_S = 2.0
MOST_DEAD_LETTERS = 200


@dataclass(frozen=True, slots=True)
class Sources:
    """Keeps the page up to date from the log until it is cancelled; retries an unavailable log for ever."""

    connection: LogConnection
    page: PageState

    async def run(self) -> None:
        """Follow everything, for ever."""
        async with asyncio.TaskGroup() as group:
            for name, following in (
                ("log", self._watch),
                ("ends", self._look_at_ends),
                ("dead letters", self._follow_dead_letters),
            ):
                group.create_task(self._again_and_again(name, following))

    async def _again_and_again(self, name: str, following: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await following()
            except DroverError as error:
                # The log is unavailable, corrupt or lacks topics: every page says so, and it is tried again.
                if self.page.cut(name, str(error)):
                    _log.warning("the page cannot follow the %s: %s", name, error)
            except Exception as error:  # noqa: BLE001 - after any failure the page must not seem up to date
                if self.page.cut(name, repr(error)):
                    _log.exception("the page cannot follow the %s", name)
            await asyncio.sleep(RETRY_S)

    def _is_there(self, name: str) -> None:
        if self.page.restore(name):
            _log.info("the page follows the %s again", name)

    async def _watch(self) -> None:
        present: Present | None = None
        past: asyncio.Task[None] | None = None
        try:
            async with aclosing(watch(self.connection, None, PAUSE_S)) as watching:
                async for view in watching:
                    if present is None:
                        present = self.page.begin(view)
                        past = asyncio.create_task(self._read_past(present, view.log.positions))
                    elif past is not None and past.done():
                        past.result()
                    present.archive.follow(view.news)
                    began_s = time.thread_time()
                    self.page.refresh()
                    self._is_there("log")
                    spent_s = time.thread_time() - began_s
                    await asyncio.sleep(max(LEAST_PAUSE_S, spent_s / BUSY_SHARE))
        finally:
            if past is not None:
                past.cancel()
                await asyncio.gather(past, return_exceptions=True)

    async def _read_past(self, present: Present, until: dict[int, int]) -> None:
        """Read the history from the first record up to the position at which the page began to watch."""
        async with LogReader(self.connection) as reader:
            log = await open_log(reader, self.connection)
            async for records in read_log(reader, self.connection, log):
                present.archive.take(record for record in records if record.offset < until[record.shard])
                # Let other tasks run.
                await asyncio.sleep(0)
        present.archive.complete()

    async def _look_at_ends(self) -> None:
        topics = self.connection.topics
        async with LogReader(self.connection) as reader:
            shards = range(await reader.partitions(topics.events))
            while True:
                try:
                    async with time_limit(LOOK_TIMEOUT_S):
                        events = await reader.end_offsets(topics.events, shards)
                except TimeoutError as error:
                    raise LogUnavailableError(f"{self.connection.bootstrap} has not answered in time") from error
                self._is_there("ends")
                self.page.see_ends(LogEnds(events, _now_ms()))
                await asyncio.sleep(LOOK_S)

    async def _follow_dead_letters(self) -> None:
        topic = self.connection.topics.dead_letters
        async with LogReader(self.connection) as reader:
            partitions = range(await reader.partitions(topic))
            start = await reader.start_offsets(topic, partitions)
            ends = await reader.end_offsets(topic, partitions)
            recent = {shard: max(start[shard], ends[shard] - MOST_DEAD_LETTERS) for shard in start}
            self._is_there("dead letters")
            self.page.begin_dead_letters(sum(recent[shard] - start[shard] for shard in start))
            async with aclosing(reader.follow(topic, recent)) as reading:
                async for records in reading:
                    self.page.see_dead_letters([dead_letter(record) for record in records], most=MOST_DEAD_LETTERS)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
