"""Rebuild a tree from the log beside the old one, and switch to it.

ZooKeeper cannot rename nodes, and readers use fixed paths. The new tree is therefore written beside the old one and
read back; then the old one is made equal to it, node by node, in transactions that carry the position. Each document is
always the old one or the new one, and the position says `building` until all are new. A projector that runs meanwhile
loses a transaction, follows, and carries on from the new position.
"""

import asyncio
from dataclasses import dataclass

from drover.projections.changes import transactions
from drover.projections.comparison import FeedReader, differences
from drover.projections.monitor import Monitor
from drover.projections.store import Delete, Store, StoreError, read_subtree
from drover.projections.tree import BeatenError, KeptError, Tree
from drover.projections.writer import ClusterWriter

STAGING = ".rebuild"
ATTEMPTS = 5


class RebuildError(StoreError):
    """The new tree could not be built or switched to; the old one is unharmed."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The result: the number of nodes in the new tree, and its position in the log."""

    cluster: str
    nodes: int
    offset: int
    event_index: int


async def rebuild(read: FeedReader, store: Store, root: str, cluster: str, writer: str, monitor: Monitor) -> Rebuilt:
    """Rebuild the tree of a cluster. Raises `RebuildError`, and the exceptions of log and store."""
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
        raise RebuildError(f"{staged.base} differs from what was written: {wrong[0].path} {wrong[0].what}")
    live = Tree(store, root, cluster, writer)
    for _ in range(ATTEMPTS):
        await live.load()
        if live.position is not None and live.position.place > feed.place:
            # Another projector has moved the tree on, which must not go back.
            feed, shard = await read(cluster)
        try:
            await ClusterWriter(feed, shard, live, monitor, caught_up).make_anew(ends_if_denied=True)
        except (BeatenError, KeptError):
            continue
        await remove(store, staged.base)
        return Rebuilt(cluster, len(live.nodes), feed.place.offset, feed.place.event_index)
    raise RebuildError(f"{root}/{cluster} is written by another projector all the time; {staged.base} is left as made")


async def remove(store: Store, top: str) -> None:
    """Remove a subtree, if it exists."""
    nodes = await read_subtree(store, top)
    gone = sorted(nodes, key=lambda path: path.count("/"), reverse=True)
    for operations in transactions((Delete(path, nodes[path].version),) for path in gone):
        await store.write(operations)
