"""Moments of the past as the page shows them: folded on demand, one at a time, and kept for those who ask again."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from drover.client.differences import diff
from drover.client.history import FoldedLog
from drover.client.time_travel import Point, Travel
from drover.client.transfers import Transfers
from drover.client.watching import View
from drover.fold.log import ShardFold
from drover.state.cluster import ClusterState
from drover.state.declared import declarations
from drover.web.archive import Archive
from drover.web.present import Present

KEPT_MOMENTS = 32
# And together so many moves, plans, ids of commands and whatever else they list, except that the last moment is always
# there: each has a state of its own.
KEPT_ENTRIES = 100_000
# Each folds a part of the log. The page itself has two under way.
MAX_ASKED = 32
# Of one user, or one address.
MAX_ASKED_EACH = 8

Travelling = Callable[[str, Sequence[Point]], Awaitable[Travel]]


class TooManyQuestionsError(Exception):
    """So many questions about the past wait that another one is refused for now."""


@dataclass(slots=True)
class Past:
    """Travels in the log, by `travel`: it folds a cluster's shard up to some points."""

    travel: Travelling
    _kept: OrderedDict[tuple[str, Point], ShardFold] = field(default_factory=OrderedDict)
    _archive: Archive | None = None
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    _asked: Counter[str | None] = field(default_factory=Counter)

    async def at(self, cluster: str, point: Point, archive: Archive, asker: str | None = None) -> Present:
        """Return what was known at a moment; there are no samples of it.

        With another archive the page has begun anew, and the log may be another one: what was kept is forgotten.
        Raises what `travel` raises, and `TooManyQuestionsError`.
        """
        if archive is not self._archive:
            self._archive = archive
            self._kept.clear()
        fold = self._kept.get((cluster, point))
        if fold is None:
            async with self._turn(asker):
                # Whoever had the turn before may have asked for the same.
                fold = self._kept.get((cluster, point))
                if fold is None:
                    fold = await self._fold(cluster, point, archive)
        view = View(FoldedLog({fold.shard: fold}), Transfers())
        return Present(view, archive=archive, at_ms=point.at_ms if point.at_ms is not None else fold.at_ms)

    async def difference(self, cluster: str, first: Point, last: Point, asker: str | None = None) -> dict[str, Any]:
        """Return what changed between two moments, as `drover history --diff -o json` does; raises as `at` does."""
        async with self._turn(asker):
            found = await self.travel(cluster, (first, last))
        before, after = found.reached[first], found.reached[last]
        if before.position > after.position:
            before, after = after, before
        was, now = (fold.state.clusters.get(cluster) or ClusterState(cluster) for fold in (before, after))
        return {
            "cluster": cluster,
            "shard": before.shard,
            "from": {"offset": before.position - 1, "at_ms": before.at_ms or None},
            "to": {"offset": after.position - 1, "at_ms": after.at_ms or None},
            "changes": [change.document() for change in diff(was, now, found.ended)],
        }

    async def _fold(self, cluster: str, point: Point, archive: Archive) -> ShardFold:
        found = await self.travel(cluster, (point,))
        fold = found.reached[point]
        # Where nothing came behind it yet, what comes may still belong to it.
        if point in found.final and archive is self._archive:
            self._keep(cluster, point, fold)
        return fold

    @asynccontextmanager
    async def _turn(self, asker: str | None) -> AsyncIterator[None]:
        """Take turns; a question whose asker has left is answered all the same, so only so many may wait."""
        if self._asked.total() >= MAX_ASKED:
            raise TooManyQuestionsError(f"{MAX_ASKED} others ask for the past already: try again in a moment")
        if asker is not None and self._asked[asker] >= MAX_ASKED_EACH:
            raise TooManyQuestionsError(f"{asker} asks {MAX_ASKED_EACH} questions about the past already: await them")
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
    return len(fold.known) + sum(
        len(value)
        for state in fold.state.clusters.values()
        for value in (getattr(state, name) for name in declarations(ClusterState))
        if isinstance(value, dict)
    )
