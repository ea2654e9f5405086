"""The projector: follows the log and feeds the writer of every cluster in it."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import aclosing

from drover.client.history import FoldedLog, ValidRecord, follow_log, open_log, read_log
from drover.errors import LogUnavailableError
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.projections.feed import Feed
from drover.projections.intake import Intake
from drover.projections.monitor import Monitor
from drover.projections.tree import Tree
from drover.projections.writer import ClusterWriter, WriterTimes

# The most events that wait for an unreachable store before reading the log stops. Each takes about half a kilobyte.
MOST_WAITING = 100_000
RETRY_S = 1.0


class Projector:
    """Projects every cluster that the log names, or one.

    `run` ends only with a corrupt log (`CorruptLogError`), or a bug. Clusters share only the reading of the log: one
    whose tree cannot be written does not hold up the others, until the most events wait for it.
    """

    def __init__(
        self,
        connection: LogConnection,
        tree_of: Callable[[str], Tree],
        monitor: Monitor,
        cluster: str | None = None,
        times: WriterTimes = WriterTimes(),  # noqa: B008 - frozen
        intake_of: Callable[[str], Intake] | None = None,
    ) -> None:
        self.writers: dict[str, ClusterWriter] = {}
        self.caught_up = asyncio.Event()
        self.last_error: str | None = None
        self._connection = connection
        self._tree_of = tree_of
        self._monitor = monitor
        self._cluster = cluster
        self._times = times
        self._intake_of = intake_of
        self._log: FoldedLog | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Project until cancelled."""
        following = asyncio.create_task(self._follow())
        try:
            while True:
                working = {following, *self._tasks.values()}
                # Wait with a timeout, because a cluster may appear at any time.
                done, _ = await asyncio.wait(working, timeout=RETRY_S, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            working = {following, *self._tasks.values()}
            for task in working:
                task.cancel()
            await asyncio.wait(working)

    @property
    def positions(self) -> Mapping[int, int]:
        """The position of each shard."""
        return {} if self._log is None else self._log.positions

    async def _follow(self) -> None:
        while True:
            try:
                async with LogReader(self._connection) as reader:
                    if self._log is None:
                        self._log = await open_log(reader, self._connection, self._cluster)
                    async with aclosing(read_log(reader, self._connection, self._log)) as reading:
                        async for records in reading:
                            await self._take(records)
                    self._caught_up()
                    async with aclosing(follow_log(reader, self._connection, self._log)) as following:
                        async for records in following:
                            await self._take(records)
            except LogUnavailableError as error:
                self.last_error = str(error)
                await asyncio.sleep(RETRY_S)

    async def _take(self, records: Collection[ValidRecord]) -> None:
        self.last_error = None
        for valid in records:
            # Collect the names first, since most records are about one cluster only.
            for cluster in {event.cluster for event in valid.batch.events}:
                if self._cluster in {None, cluster}:
                    self._writer(cluster, valid.shard).offer(valid.offset, valid.batch)
            # A refusal alone makes no tree, since a command may name a cluster that does not exist.
            for cluster in {outcome.cluster for outcome in valid.batch.outcomes} & self.writers.keys():
                self.writers[cluster].answered(valid.offset, valid.batch)
        while any(writer.backlog > MOST_WAITING for writer in self.writers.values()):  # noqa: ASYNC110 - see MOST_WAITING
            await asyncio.sleep(0.01)

    def _caught_up(self) -> None:
        self.caught_up.set()
        for writer in self.writers.values():
            writer.wake()

    def _writer(self, cluster: str, shard: int) -> ClusterWriter:
        writer = self.writers.get(cluster)
        if writer is None:
            intake = None if self._intake_of is None else self._intake_of(cluster)
            writer = ClusterWriter(
                Feed(cluster), shard, self._tree_of(cluster), self._monitor, self.caught_up, self._times, intake
            )
            self.writers[cluster] = writer
            self._tasks[cluster] = asyncio.create_task(writer.run())
            if intake is not None:
                self._tasks[f"{cluster}/intake"] = asyncio.create_task(intake.run(writer, self.caught_up))
        return writer
