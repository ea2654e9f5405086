"""Compare a tree with the fold of the log's events up to the tree's position."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from drover.client.history import open_log, read_log
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.projections.feed import Feed
from drover.projections.ownership import PARENTS, is_projected
from drover.projections.position import POSITION_PATH
from drover.projections.store import StoreUnavailableError
from drover.projections.tree import Tree

READINGS = 20
# Reads the log to its current end; returns a feed with all events of the cluster, and the cluster's shard.
FeedReader = Callable[[str], Awaitable[tuple[Feed, int]]]


@dataclass(frozen=True, slots=True)
class Difference:
    """A node that differs from the log, and how."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result: the number of compared nodes, the differences, and the number of events that the tree is behind."""

    cluster: str
    nodes: int
    behind: int
    differences: tuple[Difference, ...]


async def read_feed(connection: LogConnection, cluster: str) -> tuple[Feed, int]:
    """Read the log of a real Kafka; see `FeedReader`."""
    feed = Feed(cluster)
    async with LogReader(connection) as reader:
        log = await open_log(reader, connection, cluster)
        async for records in read_log(reader, connection, log):
            for valid in records:
                feed.offer(valid.offset, valid.batch)
    (shard,) = log.folds
    return feed, shard


async def load_quietly(tree: Tree) -> None:
    """Load a tree while it is not being written. Raises `StoreUnavailableError` if it is written continuously."""
    for _ in range(READINGS):
        await tree.load()
        position, _ = await tree.read_position()
        if position == tree.position:
            return
    raise StoreUnavailableError(f"{tree.base} is written all the time: compare it later, while it is quiet")


async def compare(read: FeedReader, tree: Tree) -> Comparison:
    """Compare a tree with the fold of the events up to its position, without changing it."""
    await load_quietly(tree)
    compared = await _compare_loaded(read, tree)
    exposed = (Difference(path, f"may be written by {', '.join(ids)}") for path, ids in sorted(tree.exposed.items()))
    return replace(compared, differences=(*exposed, *compared.differences))


async def _compare_loaded(read: FeedReader, tree: Tree) -> Comparison:
    feed, _ = await read(tree.cluster)
    position = tree.position
    if position is None and not feed.waiting and not tree.nodes:
        # The log has no events of this cluster, so there is no tree.
        return Comparison(tree.cluster, 0, 0, ())
    if position is None:
        missing = Difference(POSITION_PATH, "is missing or cannot be read: there is no tree that could be true")
        return Comparison(tree.cluster, 0, len(feed.waiting), (missing,))
    feed.advance(position.place)
    if feed.place != position.place and not (feed.last is None and position.place == feed.place):
        wrong = Difference(POSITION_PATH, f"names {position.place}, which is no place between events of this log")
        return Comparison(tree.cluster, 0, len(feed.waiting), (wrong,))
    differing = differences(feed, tree)
    if position.building:
        differing = (Difference(POSITION_PATH, "says that the tree is being made anew"), *differing)
    return Comparison(tree.cluster, len(tree.nodes), len(feed.waiting), differing)


def differences(feed: Feed, tree: Tree) -> tuple[Difference, ...]:
    """Compare the loaded nodes with every document at the feed's place."""
    wanted = feed.everything()
    differing = []
    for path in sorted({*wanted, *tree.nodes, *PARENTS}):
        node, data = tree.nodes.get(path), wanted.get(path)
        if node is None:
            differing.append(Difference(path, "is missing"))
        elif data is None:
            standing = () if tree.position is None else tree.position.standing
            if is_projected(path) or path in standing:
                differing.append(Difference(path, "must not be there"))
        elif node.data != data:
            differing.append(Difference(path, f"has {node.data[:200]!r} instead of {data[:200]!r}"))
    return tuple(differing)
