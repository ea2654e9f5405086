"""Views of the past for the page: folded on demand, one at a time, and cached."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from drover.client.differences import diff
from drover.client.history import FoldedLog
from drover.client.live_view import View
from drover.client.time_travel import Point, Travel
from drover.client.transfers import Transfers
from drover.fold.log import ShardFold
from drover.state.cluster import ClusterState
from drover.state.declared import declarations
from drover.web.archive import Archive
from drover.web.present import Present

KEPT_MOMENTS = 32
# The most entries (moves, plans, ids of commands and so on) of all cached states together; the last state is always
# kept.
KEPT_ENTRIES = 100_000
# The most questions at a time, since each folds a part of the log; one page asks up to two.
MAX_ASKED = 32
# Of one user, or one address.
MAX_ASKED_EACH = 8

Travelling = Callable[[str, Sequence[Point]], Awaitable[Travel]]


class TooManyQuestionsError(Exception):
    """Too many questions about the past are waiting; another one is refused for now."""


@dataclass(slots=True)
class Past:
    """Answers questions about the past with `travel`, which folds a cluster's shard up to some points."""

    travel: Travelling
    _kept: OrderedDict[tuple[str, Point], ShardFold] = field(default_factory=OrderedDict)
    _archive: Archive | None = None
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    _asked: Counter[str | None] = field(default_factory=Counter)

    async def at(self, cluster: str, point: Point, archive: Archive, asker: str | None = None) -> Present:
        """Return the state at a point of the past, without samples.

        Another archive means that the page has started anew, perhaps with another log, and clears the cache. Raises
        `TooManyQuestionsError`, and the exceptions of `travel`.
        """
        if archive is not self._archive:
            self._archive = archive
            self._kept.clear()
        fold = self._kept.get((cluster, point))
        if fold is None:
            async with self._turn(asker):
                # The question before may have been the same.
                fold = self._kept.get((cluster, point))
                if fold is None:
                    fold = await self._fold(cluster, point, archive)
        view = View(FoldedLog({fold.shard: fold}), Transfers())
        return Present(view, archive=archive, at_ms=point.at_ms if point.at_ms is not None else fold.at_ms)

    async def difference(self, cluster: str, first: Point, last: Point, asker: str | None = None) -> dict[str, Any]:
        """Return the changes between two points, as `drover history --diff -o json` does; raises as `at` does."""
        async with self._turn(asker):
            travelled = await self.travel(cluster, (first, last))
        before, after = travelled.reached[first], travelled.reached[last]
        if before.position > after.position:
            before, after = after, before
        was, now = (fold.state.clusters.get(cluster) or ClusterState(cluster) for fold in (before, after))
        return {
            "cluster": cluster,
            "shard": before.shard,
            "from": {"offset": before.position - 1, "at_ms": before.at_ms or None},
            "to": {"offset": after.position - 1, "at_ms": after.at_ms or None},
            "changes": [change.document() for change in diff(was, now, travelled.ended)],
        }

    async def _fold(self, cluster: str, point: Point, archive: Archive) -> ShardFold:
        travelled = await self.travel(cluster, (point,))
        fold = travelled.reached[point]
        # Cache only points that later records follow; at the end of the log, the next record may still belong to one.
        if point in travelled.final and archive is self._archive:
            self._keep(cluster, point, fold)
        return fold

    @asynccontextmanager
    async def _turn(self, asker: str | None) -> AsyncIterator[None]:
        """Wait for a turn; the number of waiting questions is bounded, because abandoned ones are answered, too."""
        if self._asked.total() >= MAX_ASKED:
            raise TooManyQuestionsError(f"{MAX_ASKED} questions about the past are waiting: try again in a moment")
        if asker is not None and self._asked[asker] >= MAX_ASKED_EACH:
            raise TooManyQuestionsError(
                f"{MAX_ASKED_EACH} questions of {asker} about the past are waiting: try again in a moment"
            )
        self._asked[asker] += 1
        try:
            async with self._one_at_a_time:
                yield
        finally:
            self._asked[asker] -= 1
            if not self._asked[asker]:
                del self._asked[asker]

    def _keep(self, cluster: str, point: Point, fold: ShardFold) -> None:
        self._kept[cluster, point] = fold
        entries = sum(map(_entries, self._kept.values()))
        while len(self._kept) > 1 and (len(self._kept) > KEPT_MOMENTS or entries > KEPT_ENTRIES):
            _, oldest = self._kept.popitem(last=False)
            entries -= _entries(oldest)


def _entries(fold: ShardFold) -> int:
    return len(fold.decided_commands) + sum(
        len(value)
        for state in fold.state.clusters.values()
        for value in (getattr(state, name) for name in declarations(ClusterState))
        if isinstance(value, dict)
    )
