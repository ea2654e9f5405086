"""The event log as it grows: every valid batch with the time at which an independent reader received it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from bench.results import BenchmarkError
from drover.client.history import FoldedLog, ValidRecord, open_log
from drover.fold.log import ShardFold
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader, LogRecord
from drover.state.cluster import ClusterState
from drover.time_limits import time_limit


@dataclass(frozen=True, slots=True)
class Seen:
    """A valid batch of the log.

    `written_ms` is the broker's LogAppendTime, `received_ms` this process's clock when the batch arrived: consumers
    receive only durable records. Both in ms since the epoch. `owner` is the worker that wrote it.
    """

    valid: ValidRecord
    owner: str
    written_ms: int
    received_ms: float


class Tail:
    """Follows the whole log in a task, from its first record on."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection = connection
        self._reader = LogReader(connection)
        self._log = FoldedLog({})
        self._grown = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.seen: list[Seen] = []
        self.outcomes = 0

    async def __aenter__(self) -> Self:
        await self._reader.__aenter__()
        self._log = await open_log(self._reader, self._connection)
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._reader.__aexit__(kind, error, trace)

    @property
    def folds(self) -> dict[int, ShardFold]:
        return self._log.folds

    @property
    def owners(self) -> set[str]:
        """Return the owners of the shards; the empty name stands for a shard without one."""
        return {fold.owner for fold in self.folds.values()}

    def cluster(self, shard: int, name: str) -> ClusterState:
        return self.folds[shard].state.cluster(name)

    async def until(self, condition: Callable[[], bool], event: str, timeout_s: float = 60.0) -> None:
        """Wait until a condition holds for the log as read so far; at the deadline `BenchmarkError` names the event."""
        assert self._task is not None, "enter the tail first"
        try:
            async with time_limit(timeout_s):
                while not condition():
                    self._grown.clear()
                    waiting = asyncio.create_task(self._grown.wait())
                    await asyncio.wait((waiting, self._task), return_when=asyncio.FIRST_COMPLETED)
                    waiting.cancel()
                    if self._task.done():
                        self._task.result()
        except TimeoutError as error:
            raise BenchmarkError(f"not within {timeout_s:.0f} s: {event}") from error

    async def _follow(self) -> None:
        async for records in self._reader.follow(self._connection.topics.events, self._log.positions):
            received_ms = time.time() * 1000
            for record in records:
                self._take(record, received_ms)
            self._grown.set()

    def _take(self, record: LogRecord, received_ms: float) -> None:
        for valid in self._log.take((record,)):
            self.outcomes += len(valid.batch.outcomes)
            self.seen.append(Seen(valid, self.folds[record.shard].owner, record.timestamp_ms, received_ms))
