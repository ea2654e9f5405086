"""The writer of a cluster's tree: takes it over, writes group after group, and follows while another writer is ahead.

It never ends by itself. Faults of the store are reported and tried again, at most every few seconds; events are kept
until they are in the tree. The tree's state is always derived from its position.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from msgspec.structs import replace

from drover.errors import ConfigurationError, LogUnavailableError
from drover.events.records import Batch
from drover.projections.changes import changes, fits, flat, left_by, transactions
from drover.projections.documents import standing
from drover.projections.feed import Feed, Group, Recorded
from drover.projections.monitor import Monitor
from drover.projections.ownership import SHARED, is_projected
from drover.projections.patrol import Patrol
from drover.projections.position import START, Place, Position, mark_of
from drover.projections.requests import NoRequests, Requests
from drover.projections.store import ConflictError, Operation, StoreDeniedError, StoreError, WriteUnknownError, nothing
from drover.projections.tree import BeatenError, Tree
from drover.time_limits import time_limit

FIRST_RETRY_S, MOST_RETRY_S = 0.05, 2.0
DENIED_RETRY_S, LEAST_LOOKS = 5.0, 4


class Role(StrEnum):
    """The role of a projector for a cluster."""

    WAITING = "waiting"
    TAKING_OVER = "taking-over"
    WRITING = "writing"
    FOLLOWING = "following"


@dataclass(frozen=True, slots=True)
class WriterTimes:
    """The times of a writer in seconds: before a takeover, between looks while following, between full checks."""

    take_over_s: float = 3.0
    follow_s: float = 0.5
    verify_s: float = 30.0
    slice_s: float = 0.05


class ClusterWriter:
    """Writes one cluster's tree; `offer` feeds it, `run` is a task.

    `caught_up` is set, and `wake` called, when the end that the log had at the start is reached.
    """

    def __init__(
        self,
        feed: Feed,
        shard: int,
        tree: Tree,
        monitor: Monitor,
        caught_up: asyncio.Event,
        times: WriterTimes = WriterTimes(),
        requests: Requests | None = None,
    ) -> None:
        self.tree = tree
        self._requests = requests or NoRequests()
        self.role = Role.WAITING
        self.last_error: str | None = None
        self.drifted = 0
        self._feed = feed
        self._shard = shard
        self._monitor = monitor
        self._caught_up = caught_up
        self._times = times
        # Folded into the view and not written yet: at most one is being written, and one is prepared after it.
        self._groups: deque[Group] = deque()
        # The prepared group and its operations, which hold if the one being written succeeds.
        self._ahead: tuple[Group | None, list[Operation]] = None, []
        self._news = asyncio.Event()
        self._failures = 0
        self._has_written = False
        self._ends_if_denied = False
        self._patrol = Patrol(tree, times.verify_s)

    # -- the log's side

    def offer(self, offset: int, batch: Batch) -> None:
        """Add a valid record with events of this cluster."""
        if self._feed.offer(offset, batch):
            self._news.set()

    def answered(self, offset: int, batch: Batch) -> None:
        """Add a valid record with outcomes of this cluster."""
        self._requests.recorded(offset, batch)

    def wake(self) -> None:
        """Wake the writer, because the end of the log was reached."""
        self._news.set()

    def recheck(self, paths: Iterable[str]) -> None:
        """Check these nodes at once, because somebody has changed them."""
        self._patrol.first(paths)
        self._news.set()

    @property
    def cluster(self) -> str:
        """The cluster."""
        return self._feed.cluster

    @property
    def backlog(self) -> int:
        """The known number of events that are not in the tree yet."""
        return len(self._feed.waiting) + sum(group.events for group in self._groups)

    @property
    def oldest_ms(self) -> int | None:
        """The log's time of the oldest event that is not in the tree; None if there is none."""
        if self._groups:
            return self._groups[0].first_ms
        return self._feed.waiting[0].at_ms if self._feed.waiting else None

    # -- the task

    async def run(self) -> None:
        """Keep the tree up to date for ever."""
        while True:
            try:
                self.role = Role.TAKING_OVER
                await self._take_over()
                self.role = Role.WRITING
                await self._write_on()
            except BeatenError:
                await self._follow()
            except (StoreError, ConfigurationError, LogUnavailableError) as error:
                # After a conflict, since a node or the position was changed by hand, the tree is read again. At a
                # shared node a conflict is usual: a document meets a request.
                if isinstance(error, ConflictError) and error.path in SHARED:
                    await asyncio.sleep(FIRST_RETRY_S)
                else:
                    await self._failed(error)

    async def _failed(self, error: Exception) -> None:
        """Report, and wait longer with every failure in a row."""
        self.last_error = str(error)
        self._monitor.projection_failed(self.cluster, error)
        pause_s = min(MOST_RETRY_S, FIRST_RETRY_S * 2 ** min(self._failures, 10))
        self._failures += 1
        await asyncio.sleep(DENIED_RETRY_S if isinstance(error, StoreDeniedError | ConfigurationError) else pause_s)

    # -- taking over

    async def _take_over(self) -> None:
        """Read the tree, fold up to its position, and repair differences."""
        self._ahead = None, []
        before, _ = await self.tree.read_position()
        if before is not None and self._is_usable(before):
            await self._reach(before.place)
        await self.tree.load()
        position = self.tree.position
        if position is not None and before is not None and position.place != before.place:
            raise BeatenError(f"{self.tree.base}: {position.writer} writes it")
        await self._claim()
        # A request that is written after the load has another version, so that a transaction over it is refused.
        await self._requests.see()
        if position is None and self._has_written:
            self._monitor.projection_deleted(self.cluster, self.tree.base)
        if position is None or not self._is_usable(position) or not self._agrees(position.place):
            await self.make_anew()
        else:
            await self._repair(position)
        self._has_written = True
        self._failures, self.last_error = 0, None

    async def _claim(self) -> None:
        if exposed := await self.tree.claim():
            self._monitor.projection_claimed(self.cluster, exposed)

    def _is_usable(self, position: Position) -> bool:
        return not position.building and (position.cluster, position.shard) == (self.cluster, self._shard)

    async def _reach(self, place: Place) -> None:
        """Fold up to a place, waiting until the log reaches it."""
        deadline_s, looks = math.inf, 0
        while self._feed.place < place:
            self._groups.clear()
            self._feed.advance(place)
            if self._feed.place >= place or self._feed.waiting:
                return
            if not self._caught_up.is_set():
                await self._wait()
                continue
            # Another projector may have written since this one read the end, or this process was suspended.
            deadline_s, looks = min(deadline_s, time.monotonic() + self._times.take_over_s), looks + 1
            if looks > LEAST_LOOKS and time.monotonic() >= deadline_s:
                raise ConfigurationError(
                    f"{self.tree.base} follows a log up to {place}, this log ends before: is it another one? If it is "
                    "the right one, make the tree anew with `drover zookeeper rebuild`"
                )
            await self._wait(self._times.follow_s)

    def _agrees(self, place: Place) -> bool:
        """Whether view and waiting groups continue at the tree's place; groups that the tree has are dropped."""
        while self._groups and self._groups[0].end <= place:
            self._groups.popleft()
        if self._groups:
            return self._groups[0].start <= place
        return self._feed.place == place

    async def make_anew(self, *, ends_if_denied: bool = False) -> None:
        """Rebuild the loaded tree by the end of the log; meanwhile the position says `building`.

        Denied writes are tried again for ever, or raised as `StoreDeniedError` with `ends_if_denied`.
        """
        self._ends_if_denied = ends_if_denied
        await self._claim()
        while not self._caught_up.is_set():
            self._feed.advance_all()
            await self._wait()
        self._groups.clear()
        self._ahead = None, []
        self._feed.advance_all()
        wanted = self._feed.everything()
        self._release(wanted)
        parts = changes(self.tree.nodes, self._wanted(wanted))
        last, shared = self._feed.last, standing(self._feed.view)
        for operations in transactions(parts):
            await self._commit(operations, self._position(last, shared, wanted, building=True))
        await self._commit((), self._position(last, shared, wanted))

    async def _repair(self, position: Position) -> None:
        """Undo changes by others, except of documents that waiting groups are about to write."""
        wanted = self._feed.everything()
        self._release(wanted)
        parts = changes(self.tree.nodes, self._wanted(wanted))
        parts = [part for part in parts if not any(part[0].path in group.documents for group in self._groups)]
        paths = [part[0].path for part in parts]
        for operations in transactions(parts):
            # The place stays, since these are the documents of that place.
            await self._commit(operations, replace(position, writer=self.tree.writer))
        if paths:
            # Since the position had not moved meanwhile, this was not another writer's work.
            self.drifted += len(paths)
            self._monitor.projection_drifted(self.cluster, paths)

    def _release(self, wanted: Mapping[str, bytes | None]) -> None:
        """Release requests: shared nodes without a document of ours, now or in a waiting group.

        Without a position that says so, their content is taken for ours, so that a plan of ours is never read as a
        request and carried out again.
        """
        position = self.tree.position
        if position is None:
            return
        coming = {path for group in self._groups for path, data in group.documents.items() if data is not None}
        self.tree.release(SHARED - set(position.standing) - set(wanted) - coming)

    def _wanted(self, documents: dict[str, bytes | None]) -> dict[str, bytes | None]:
        others_nodes = [
            path for path in self.tree.nodes if path not in documents and (is_projected(path) or path in SHARED)
        ]
        self.tree.others_nodes = frozenset(others_nodes)
        return {**dict.fromkeys(path for path in others_nodes if path not in self.tree.kept), **documents}

    # -- writing

    async def _write_on(self) -> None:
        """Write new events until another writer wins."""
        while True:
            if not self._groups and not self._prepare():
                await self._idle()
                continue
            group = self._groups[0]
            (ahead, operations), self._ahead = self._ahead, (None, [])
            if ahead is not group:
                operations = flat(changes(self.tree.nodes, group.documents))
            if not fits(operations, self.tree.base):
                # One event removes more nodes than fit a transaction: it is split, and the position says `building`
                # meanwhile.
                await self.make_anew()
                continue
            position = self._position(group.last, group.standing, group.documents)
            await self._commit(operations, position, group.events, partial(self._prepare_ahead, operations))
            self._groups.popleft()
            if self._patrol.idle_s > self._times.slice_s:
                await self._patrol.look()

    def _prepare(self) -> bool:
        group = self._feed.next_group()
        if group is not None:
            self._groups.append(group)
        return group is not None

    def _prepare_ahead(self, sent: Sequence[Operation]) -> None:
        """Prepare the next group and its operations while the store works on this one."""
        if len(self._groups) < 2:
            self._prepare()
        # A write to a shared node may conflict, so its result is known only when it is done.
        if len(self._groups) > 1 and SHARED.isdisjoint(operation.path for operation in sent):
            group = self._groups[1]
            self._ahead = group, flat(changes(self.tree.nodes, group.documents, left_by(sent)))

    async def _idle(self) -> None:
        await self._wait(self._times.slice_s if self._patrol.is_under_way else self._times.follow_s)
        if not self._feed.waiting:
            await self._patrol.look()

    async def _commit(
        self,
        operations: Sequence[Operation],
        position: Position,
        events: int = 0,
        meanwhile: Callable[[], None] = nothing,
    ) -> None:
        """Write until the transaction is known to be done. Raises only `BeatenError` and `ConflictError`."""
        done = False
        while not done:
            try:
                await self.tree.commit(operations, position, meanwhile)
                done = True
            except (BeatenError, ConflictError):
                raise
            except WriteUnknownError as error:
                await self._failed(error)
                done = await self._resolved()
            except (StoreError, ConfigurationError) as error:
                if self._ends_if_denied and isinstance(error, StoreDeniedError):
                    raise
                await self._failed(error)
        self._failures, self.last_error = 0, None
        self._monitor.projected(self.cluster, events, len(operations) + 1)

    async def _resolved(self) -> bool:
        while True:
            try:
                return await self.tree.resolve()
            except (BeatenError, ConflictError):
                raise
            except StoreError as error:
                await self._failed(error)

    def _position(
        self,
        last: Recorded | None,
        shared: tuple[str, ...],
        documents: Mapping[str, bytes | None],
        *,
        building: bool = False,
    ) -> Position:
        place = START if last is None else last.place
        marks = {} if self.tree.position is None else self.tree.position.standing
        changed = {
            path: mark_of(data, place, marks.get(path)) for path in shared if (data := documents.get(path)) is not None
        }
        return Position(
            cluster=self.cluster,
            shard=self._shard,
            epoch=0 if last is None else last.epoch,
            offset=place.offset,
            event_index=place.event_index,
            at_ms=0 if last is None else last.at_ms,
            writer=self.tree.writer,
            building=building,
            standing={path: changed.get(path) or marks[path] for path in shared},
        )

    # -- following

    async def _follow(self) -> None:
        """Let the other projector write; return when it has not for some time although there is something to write.

        A tree that has gone back behind our view, as after a restore from a backup, is also something to write.
        """
        self.role, self.last_error = Role.FOLLOWING, None
        seen: int | None = None
        since = time.monotonic()
        while True:
            await asyncio.sleep(self._times.follow_s)
            try:
                position, version = await self.tree.read_position()
            except StoreError as error:
                await self._failed(error)
                since = time.monotonic()
                continue
            self._failures, self.last_error = 0, None
            if version != seen:
                seen, since = version, time.monotonic()
            is_behind = True
            if position is not None and self._is_usable(position):
                is_behind = position.place < self._feed.place
                if not is_behind:
                    self._groups.clear()
                self._feed.advance(position.place)
            if time.monotonic() - since > self._times.take_over_s and (self.backlog or is_behind):
                return

    async def _wait(self, timeout_s: float | None = None) -> None:
        self._news.clear()
        if self._feed.waiting and timeout_s is None:
            return
        with suppress(TimeoutError):
            async with time_limit(timeout_s):
                await self._news.wait()
