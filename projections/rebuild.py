"""Making a tree anew from the log beside the old one, and switching.

ZooKeeper cannot rename, and readers know fixed paths. So the new tree is written in full beside the old one and read
back; only then the old one is made equal to it, node by node, in transactions that carry the position. No document is
missing at any moment: each is the old one or the new one, and the position says `building` until all are new. Whoever
projects meanwhile is beaten, follows, and carries on behind.
"""

import asyncio
from dataclasses import dataclass

from drover.projections.changes import transactions
from drover.projections.comparing import FeedReader, differences
from drover.projections.monitor import Monitor
from drover.projections.store import Delete, Store, StoreError, read_subtree
from drover.projections.tree import BeatenError, KeptError, Tree
from drover.projections.writer import ClusterWriter

STAGING = ".rebuild"
ATTEMPTS = 5


class RebuildError(StoreError):
    """The new tree could not be made, or not be switched to; the old one is as good as it was."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What was made: how many nodes the new tree has, and up to where it follows the log."""

    cluster: str
    nodes: int
    offset: int
    event_index: int


async def rebuild(read: FeedReader, store: Store, root: str, cluster: str, writer: str, monitor: Monitor) -> Rebuilt:
    """Make the tree of a cluster anew; raises `RebuildError` and what reading log and store raises."""
    await Tree(store, root, cluster, writer).check()
    aside = f"{root}/{STAGING}"
    await remove(store, f"{aside}/{cluster}")
    feed, shard = await read(cluster)
    caught_up = asyncio.Event()
    caught_up.set()
    staged = Tree(store, aside, cluster, writer)
    await staged.load()
    await ClusterWriter(feed, shard, staged, monitor, caught_up).make_anew(ends_if_denied=True)
    await staged.load()
    wrong = differences(feed, staged)
    if wrong:
        raise RebuildError(f"{staged.base} is not what was written: {wrong[0].path} {wrong[0].what}")
    live = Tree(store, root, cluster, writer)
    for _ in range(ATTEMPTS):
        await live.load()
        if live.position is not None and live.position.place > feed.place:
            # Somebody has gone on meanwhile: the tree must not go back.
            feed, shard = await read(cluster)
        try:
            await ClusterWriter(feed, shard, live, monitor, caught_up).make_anew(ends_if_denied=True)
        except (BeatenError, KeptError):
            continue
        await remove(store, staged.base)
        return Rebuilt(cluster, len(live.known), feed.place.offset, feed.place.event_index)
    raise RebuildError(f"{root}/{cluster} is written by another projector all the time; {staged.base} is left as made")


async def remove(store: Store, top: str) -> None:
    """Remove a subtree; harmless if it is not there."""
    found = await read_subtree(store, top)
    gone = sorted(found, key=lambda path: path.count("/"), reverse=True)
    for operations in transactions((Delete(path, found[path].version),) for path in gone):
        await store.write(operations)
