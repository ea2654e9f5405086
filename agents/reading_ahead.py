"""Look through the commands that a full inbox leaves unread, so that what goes first is found behind any flood."""

import asyncio
from collections.abc import Callable
from time import monotonic

import structlog

from drover.errors import DroverError
from drover.events.topics import TopicNames
from drover.journal.folding import FoldedLog
from drover.journal.port import Reading
from drover.shard.arriving import arrival_of
from drover.shard.inbox import CANCEL_INDEX, Inbox

PAUSE_S = 0.2
# A flood fills the inbox again and again: the connection is kept meanwhile.
LINGER_S = 12.0
RETRY_S = 5.0
# So many are decoded before others may run: ten milliseconds of work. A batch is decided in several times that.
AT_A_TIME = 500
_log = structlog.get_logger(__name__)


class ReadingAhead:
    """Reads the topic of cancels of one shard beyond what the group has delivered, on a connection of its own.

    `wake` is called when the inbox has taken something in, and `fail` with a fault that is not the world's.
    """

    def __init__(
        self,
        log: FoldedLog,
        topics: TopicNames,
        shard: int,
        inbox: Inbox,
        wake: Callable[[], None],
        fail: Callable[[str, BaseException | None], object],
    ) -> None:
        self._log = log
        self._topic = topics.commands[CANCEL_INDEX]
        self._shard = shard
        self._inbox = inbox
        self._wake = wake
        self._fail = fail
        self._task: asyncio.Task[None] | None = None
        self._is_full = False
        self._full_at = 0.0

    def begin(self) -> None:
        """The inbox is full, or far behind its topic; may be said any number of times."""
        self._is_full, self._full_at = True, monotonic()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
            self._task.add_done_callback(self._ended)

    def pause(self) -> None:
        """The group reads on: end soon, unless the inbox is full again by then."""
        self._is_full = False

    def end(self) -> None:
        """Stop at once: the inbox begins again, elsewhere in the topic."""
        self._is_full = False
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        try:
            async with self._log.journal.reader(is_committed=True) as reader:
                while self._is_full or monotonic() - self._full_at < LINGER_S:
                    await self._look_through(reader)
                    await asyncio.sleep(PAUSE_S)
        except DroverError as error:
            _log.warning("unread commands could not be looked through", shard=self._shard, error=str(error))
            await asyncio.sleep(RETRY_S)

    async def _look_through(self, reader: Reading) -> None:
        """Show the inbox every record from where it last stopped to the present end."""
        async for records in reader.read(self._topic, {self._shard: self._inbox.preview_offset}):
            for first in range(0, len(records), AT_A_TIME):
                for one in records[first : first + AT_A_TIME]:
                    arrival = arrival_of(CANCEL_INDEX, one.offset, one.timestamp_ms, one.payload, one.headers)
                    if self._inbox.preview(arrival):
                        self._wake()
                await asyncio.sleep(0)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self._task = None
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(f"looking through the unread commands of shard {self._shard} failed", error)
