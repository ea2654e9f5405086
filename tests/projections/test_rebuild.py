"""Verify names what differs; rebuild makes a tree anew beside the old one, whatever else is going on."""

import asyncio
from collections.abc import Sequence

import pytest

from drover.local import LocalZooKeeper, wait_until
from drover.projections.comparison import FeedReader, compare
from drover.projections.feed import Feed
from drover.projections.position import Place
from drover.projections.rebuild import rebuild
from drover.projections.store import Create, Delete, Set, Store, StoreDeniedError
from drover.projections.tree import Tree
from drover.projections.writer import Role
from tests.projections.logs import feed_of, prefixes, valid_batches, walked_log
from tests.projections.notes import Notes
from tests.projections.observer import shown
from tests.projections.rig import clear, position_of, read_tree, zookeeper_store
from tests.projections.test_writer import WatchedStore, at_the_end, fed, running, writer_on
from tests.shard.world import CLUSTER


def reading(log: Sequence[bytes]) -> FeedReader:
    async def read(cluster: str) -> tuple[Feed, int]:
        await asyncio.sleep(0)
        return feed_of(log, cluster), 0

    return read


async def written(store: Store, root: str, log: Sequence[bytes], batches: int) -> None:
    """Let a projector write the tree up to there."""
    writer = writer_on(store, root, "w", Notes())
    fed(writer, log, last=batches)
    async with running(writer):
        await wait_until(lambda: writer.role is Role.WRITING and not writer.backlog, what="written")


def busiest(log: Sequence[bytes]) -> int:
    """After how many batches the tree has most nodes."""
    wanted = prefixes(log)
    place = max(wanted, key=lambda place: len(wanted[place]))
    return sum(offset < place.offset for offset, _ in valid_batches(log))


async def test_verify_names_every_difference_and_nothing_else(store: Store, root: str) -> None:
    log = await walked_log(3)
    batches = busiest(log)
    await written(store, root, log, batches)
    tree = Tree(store, root, CLUSTER, "")
    whole = await compare(reading(log), tree)
    assert whole.differences == ()
    assert whole.behind == sum(len(batch.events) for _, batch in valid_batches(log)[batches:])
    base = f"{root}/{CLUSTER}"
    paths = ["/admin/reassign_partitions"]
    paths += [path for path in tree.nodes if path.startswith("/admin/reassignments/") and tree.nodes[path].data][:1]
    nodes = await store.read([f"{base}{path}" for path in paths])
    await store.write(
        [
            Set(f"{base}{paths[0]}", b"{}", nodes[f"{base}{paths[0]}"].version),
            Delete(f"{base}{paths[1]}", nodes[f"{base}{paths[1]}"].version),
            Create(f"{base}/drover/plans/ghost", b"{}"),
        ]
    )
    found = await compare(reading(log), tree)
    assert [(each.path, each.what.split()[0]) for each in found.differences] == sorted(
        [(paths[0], "has"), (paths[1], "is"), ("/drover/plans/ghost", "must")]
    )
    assert (await read_tree(store, root))["/drover/plans/ghost"] == b"{}", "verify changes nothing"


async def test_verify_says_when_there_is_no_tree_or_none_of_this_log(store: Store, root: str) -> None:
    log = await walked_log(3)
    (missing,) = (await compare(reading(log), Tree(store, root, CLUSTER, ""))).differences
    assert "no tree" in missing.what
    await written(store, root, log, 60)
    (elsewhere,) = (await compare(reading(log[:20]), Tree(store, root, CLUSTER, ""))).differences
    assert elsewhere.path == "/drover/position"


async def test_rebuild_makes_a_damaged_tree_whole_and_leaves_nothing_beside_it(store: Store, root: str) -> None:
    log = await walked_log(3)
    wanted = prefixes(log)
    await written(store, root, log, busiest(log))
    base = f"{root}/{CLUSTER}"
    await store.write([Create(f"{base}/drover/plans/ghost", b"{}"), Create(f"{base}/admin/notes", b"of an operator")])
    await clear(store, f"{base}/brokers/topics")
    made = await rebuild(reading(log), store, root, CLUSTER, "rebuilder", Notes())
    tree = await read_tree(store, root)
    position = await position_of(store, root)
    assert position is not None
    assert not position.building
    assert Place(made.offset, made.event_index) == position.place == max(wanted)
    assert tree.pop("/admin/notes") == b"of an operator"
    del tree["/drover/position"]
    assert shown(tree) == wanted[max(wanted)]
    assert await store.children([f"{root}/.rebuild"]) == {f"{root}/.rebuild": frozenset()}


async def test_no_document_is_missing_at_any_moment_of_a_switch(root: str) -> None:
    store, log = WatchedStore(), await walked_log(3)
    batches = busiest(log)
    await written(store, root, log, batches)
    before = set(store.trees[-1])
    store.trees.clear()
    await rebuild(reading(log[: valid_batches(log)[batches - 1][0] + 1]), store, root, CLUSTER, "rebuilder", Notes())
    assert store.trees
    assert all(before <= set(tree) for tree in store.trees)


async def test_a_projector_that_runs_carries_on_behind_a_rebuild(store: Store, root: str) -> None:
    log, notes = await walked_log(2), Notes()
    wanted = prefixes(log)
    middle = len(valid_batches(log)) // 2
    writer = writer_on(store, root, "w", notes)
    fed(writer, log, last=middle)
    async with running(writer):
        await wait_until(lambda: writer.role is Role.WRITING, what="it writes")
        await rebuild(reading(log[: valid_batches(log)[middle][0]]), store, root, CLUSTER, "rebuilder", Notes())
        fed(writer, log, first=middle)
        await at_the_end(store, root, wanted)
    assert notes.drifted == []


@pytest.mark.story
async def test_a_rebuild_that_may_not_write_ends_and_says_so(zookeeper: LocalZooKeeper, root: str) -> None:
    """It tried again for ever."""
    log = await walked_log(3)
    owner, other = ({"username": name, "password": name} for name in ("drover", "stranger"))
    owned = zookeeper_store(zookeeper, **owner, readers=("world:anyone",))
    await written(owned, root, log, 20)
    stranger = zookeeper_store(zookeeper, **other)
    with pytest.raises(StoreDeniedError, match=r"zookeeper\.username"):
        async with asyncio.timeout(10):
            await rebuild(reading(log), stranger, root, CLUSTER, "rebuilder", Notes())
    await stranger.close()
    await owned.close()


async def test_a_cluster_of_which_nothing_was_recorded_has_no_tree_and_that_is_right(store: Store, root: str) -> None:
    found = await compare(reading(()), Tree(store, root, CLUSTER, ""))
    assert (found.nodes, found.behind, found.differences) == (0, 0, ())
