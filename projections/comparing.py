"""Reading a tree beside the log: is it the fold of the events up to its own position?"""

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
# Reads the log to its present end: a feed in which all of the cluster waits, and the cluster's shard.
FeedReader = Callable[[str], Awaitable[tuple[Feed, int]]]


@dataclass(frozen=True, slots=True)
class Difference:
    """One node that is not as the log says, and what is wrong with it."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found: how many nodes were compared, what differs, and how many events the tree is behind."""

    cluster: str
    nodes: int
    behind: int
    differences: tuple[Difference, ...]


async def read_feed(connection: LogConnection, cluster: str) -> tuple[Feed, int]:
    """Read the log of a real Kafka; see `FeedReader`."""
    feed = Feed(cluster)
    async with LogReader(connection) as reader:
        log = await open_log(reader, connection, cluster)
        async for found in read_log(reader, connection, log):
            for valid in found:
                feed.offer(valid.offset, valid.batch)
    (shard,) = log.folds
    return feed, shard


async def load_quietly(tree: Tree) -> None:
    """Load a tree at a moment when nobody writes it; raises `StoreUnavailableError` if there is none."""
    for _ in range(READINGS):
        await tree.load()
        position, _ = await tree.read_position()
        if position == tree.position:
            return
    raise StoreUnavailableError(f"{tree.base} is written all the time: compare it in a quieter moment")


async def compare(read: FeedReader, tree: Tree) -> Comparison:
    """Compare a tree with the fold of the events up to its position. Changes nothing."""
    await load_quietly(tree)
    compared = await _compare_loaded(read, tree)
    exposed = (Difference(path, f"may be written by {', '.join(ids)}") for path, ids in sorted(tree.exposed.items()))
    return replace(compared, differences=(*exposed, *compared.differences))


async def _compare_loaded(read: FeedReader, tree: Tree) -> Comparison:
    feed, _ = await read(tree.cluster)
    position = tree.position
    if position is None and not feed.waiting and not tree.known:
        # Nothing has ever happened on this cluster: no projector makes a tree of that.
        return Comparison(tree.cluster, 0, 0, ())
    if position is None:
        missing = Difference(POSITION_PATH, "is missing or cannot be read: there is no tree that could be true")
        return Comparison(tree.cluster, 0, len(feed.waiting), (missing,))
    feed.advance(position.place)
    if feed.place != position.place and not (feed.last is None and position.place == feed.place):
        wrong = Difference(POSITION_PATH, f"names {position.place}, which is no place between events of this log")
        return Comparison(tree.cluster, 0, len(feed.waiting), (wrong,))
    found = differences(feed, tree)
    if position.building:
        found = (Difference(POSITION_PATH, "says that the tree is being made anew"), *found)
    return Comparison(tree.cluster, len(tree.known), len(feed.waiting), found)


def differences(feed: Feed, tree: Tree) -> tuple[Difference, ...]:
    """Compare what is loaded with every document at the feed's place."""
    wanted = feed.everything()
    found = []
    for path in sorted({*wanted, *tree.known, *PARENTS}):
        node, data = tree.known.get(path), wanted.get(path)
        if node is None:
            found.append(Difference(path, "is missing"))
        elif data is None:
            standing = () if tree.position is None else tree.position.standing
            if is_projected(path) or path in standing:
                found.append(Difference(path, "must not be there"))
        elif node.data != data:
            found.append(Difference(path, f"has {node.data[:200]!r} instead of {data[:200]!r}"))
    return tuple(found)
