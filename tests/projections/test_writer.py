"""Trees under faults: always the fold of a prefix of the events, never going back, and whole in the end."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from drover.events.healing import HealEnd, HealEnded
from drover.local import wait_until
from drover.projections.feed import Feed
from drover.projections.memory import Fault, MemoryStore
from drover.projections.position import Place, decode_position
from drover.projections.store import Create, Delete, Set, Store, nothing
from drover.projections.tree import Tree
from drover.projections.writer import ClusterWriter, Role, WriterTimes
from tests.projections.logs import prefixes, recorded, rendered, valid_batches, walked_log
from tests.projections.notes import Notes
from tests.projections.rig import clear, position_of, read_tree
from tests.projections.test_feed import a_heal, assignments_of
from tests.shard.world import CLUSTER

TIMES = WriterTimes(take_over_s=0.4, follow_s=0.05, verify_s=0.1, slice_s=0.01)


def writer_on(store: Store, root: str, name: str, notes: Notes, cluster: str = CLUSTER) -> ClusterWriter:
    caught_up = asyncio.Event()
    caught_up.set()
    return ClusterWriter(Feed(cluster), 0, Tree(store, root, cluster, name), notes, caught_up, TIMES)


@asynccontextmanager
async def running(*writers: ClusterWriter) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(writer.run()) for writer in writers]
    try:
        yield
        for task in tasks:
            assert not task.done(), "a writer never ends by itself"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def documents_in(store: Store, root: str) -> tuple[Place, bool, dict[str, bytes]]:
    """Return where a tree is, whether it is being built, and its documents."""
    tree = await read_tree(store, root)
    position = decode_position(tree.pop("/drover/position"))
    assert position is not None
    parents = {path for path in tree if not tree[path] and not path.startswith("/admin/reassignments/")}
    documents = {path: data for path, data in tree.items() if path not in parents and path}
    return position.place, position.building, documents


async def at_the_end(store: Store, root: str, wanted: dict[Place, dict[str, bytes]]) -> None:
    """Wait until the tree is the full fold; check that it is."""

    async def is_there() -> bool:
        position = await position_of(store, root)
        return position is not None and position.place == max(wanted) and not position.building

    await wait_until(is_there, what="the tree is at the end of the log")
    _, _, documents = await documents_in(store, root)
    assert documents == wanted[max(wanted)]


def fed(writer: ClusterWriter, log: Sequence[bytes], first: int = 0, last: int | None = None) -> None:
    for offset, batch in valid_batches(log)[first:last]:
        writer.offer(offset, batch)


async def test_an_empty_store_gets_the_whole_tree_at_once(store: Store, root: str) -> None:
    log = await walked_log(1)
    notes = Notes()
    writer = writer_on(store, root, "w", notes)
    fed(writer, log, last=40)
    async with running(writer):
        await wait_until(lambda: writer.role is Role.WRITING, what="it writes")
        place, building, documents = await documents_in(store, root)
        wanted = prefixes(log)
        assert not building
        assert documents == wanted[place]
        assert place > Place(0, 0)
        fed(writer, log, first=40)
        await at_the_end(store, root, wanted)
    assert notes.errors == []
    assert notes.drifted == []
    assert (await read_tree(store, root))[""] == b'{"cluster":"local","made_by":"drover","version":1}'


@pytest.mark.parametrize("seed", range(3))
async def test_every_transaction_leads_to_the_fold_of_a_prefix_and_none_goes_back(seed: int, root: str) -> None:
    store, log, notes = WatchedStore(), await walked_log(seed), Notes()
    wanted = prefixes(log)
    writer = writer_on(store, root, "w", notes)
    async with running(writer):
        await wait_until(lambda: writer.role is Role.WRITING, what="it writes")
        fed(writer, log)
        await at_the_end(store, root, wanted)
    store.check(wanted, root)


class WatchedStore(MemoryStore):
    """Remembers what stood there after each transaction."""

    def __init__(self) -> None:
        super().__init__()
        self.trees: list[dict[str, bytes]] = []

    async def write(self, operations: Sequence[Create | Set | Delete], meanwhile: Callable[[], None] = nothing) -> None:
        try:
            await super().write(operations, meanwhile)
        finally:
            self.trees.append({path: node.data for path, node in self.nodes.items()})

    def check(self, wanted: dict[Place, dict[str, bytes]], root: str) -> None:
        """Hold every state of the tree against the log."""
        last = Place(0, 0)
        base = f"{root}/{CLUSTER}"
        for tree in self.trees:
            data = tree.get(f"{base}/drover/position")
            position = None if data is None else decode_position(data)
            if position is None or position.building:
                continue
            assert position.place >= last, "the tree went back"
            last = position.place
            documents = {path[len(base) :]: data for path, data in tree.items() if path.startswith(f"{base}/")}
            shown = {path: documents[path] for path in documents if path in wanted[last] or documents[path]}
            shown.pop("/drover/position")
            assert shown == wanted[last]


@pytest.mark.parametrize("seed", range(6))
async def test_two_writers_fight_and_the_network_loses_what_it_can(seed: int, root: str) -> None:
    chance = random.Random(seed)
    store, log, notes = WatchedStore(), await walked_log(seed), Notes()
    faults = [None, None, None, Fault.NOT_SENT, Fault.LOST_ANSWER, Fault.LOST_REQUEST]
    store.faults = (chance.choice(faults) for _ in range(60))
    wanted = prefixes(log)
    first, second = writer_on(store, root, "first", notes), writer_on(store, root, "second", notes)
    async with running(first, second):
        for number in range(len(valid_batches(log))):
            for writer in chance.sample([first, second], 2):
                fed(writer, log, number, number + 1)
            if chance.random() < 0.3:
                await asyncio.sleep(chance.choice([0, 0.001]))
        await at_the_end(store, root, wanted)
    store.check(wanted, root)
    assert notes.drifted == []


async def test_a_writer_that_stops_is_followed_by_the_other_exactly_where_it_was(store: Store, root: str) -> None:
    log, notes = await walked_log(2), Notes()
    wanted = prefixes(log)
    middle = len(valid_batches(log)) // 2
    first, second = writer_on(store, root, "first", notes), writer_on(store, root, "second", notes)
    async with running(second):
        async with running(first):
            fed(first, log, last=middle)
            fed(second, log)
            await wait_until(lambda: not first.backlog, what="the first is done")
        await at_the_end(store, root, wanted)
    assert notes.drifted == []


async def test_what_was_changed_by_hand_is_found_reported_and_mended(store: Store, root: str) -> None:
    log, notes = await walked_log(3), Notes()
    batches = len(valid_batches(log))
    writer = writer_on(store, root, "w", notes)
    wanted = prefixes(log)
    busy = max(range(batches), key=lambda number: len(rendered_after(log, number)))
    fed(writer, log, last=busy)
    base = f"{root}/{CLUSTER}"
    async with running(writer):
        await wait_until(lambda: writer.role is Role.WRITING, what="it writes")
        place, _, documents = await documents_in(store, root)
        changed = next(path for path in documents if path.startswith("/brokers/topics/"))
        removed = next(path for path in documents if path.startswith("/admin/reassignments/") and documents[path])
        nodes = await store.read([f"{base}{changed}", f"{base}{removed}"])
        await store.write(
            [
                Set(f"{base}{changed}", b"{}", nodes[f"{base}{changed}"].version),
                Delete(f"{base}{removed}", nodes[f"{base}{removed}"].version),
                Create(f"{base}/admin/failed_brokers/99", b"by hand"),
                Create(f"{base}/admin/notes", b"of an operator"),
            ]
        )
        await wait_until(lambda: len(notes.drifted) >= 3, what="the drift is mended")
        after, _, found = await documents_in(store, root)
        assert found.pop("/admin/notes") == b"of an operator"
        assert (after, found) == (place, documents)
        assert sorted(notes.drifted) == sorted([changed, removed, "/admin/failed_brokers/99"])
        assert writer.drifted == 3
        fed(writer, log, first=busy)
        await wait_until(lambda: not writer.backlog, what="it goes on")
        _, _, found = await documents_in(store, root)
        found.pop("/admin/notes")
        assert found == wanted[max(wanted)]


def rendered_after(log: Sequence[bytes], batches: int) -> dict[str, bytes]:
    feed = Feed(CLUSTER)
    for offset, batch in valid_batches(log)[:batches]:
        feed.offer(offset, batch)
    feed.advance_all()
    return rendered(feed)


@pytest.mark.parametrize("damage", ["everything", "position", "garbage"])
async def test_a_tree_that_is_deleted_or_has_lost_its_position_is_made_again(
    store: Store, root: str, damage: str
) -> None:
    log, notes = await walked_log(3), Notes()
    wanted = prefixes(log)
    writer = writer_on(store, root, "w", notes)
    fed(writer, log, last=50)
    base = f"{root}/{CLUSTER}"
    async with running(writer):
        await wait_until(lambda: writer.role is Role.WRITING, what="it writes")
        place, _, documents = await documents_in(store, root)
        path = f"{base}/drover/position"
        version = (await store.read([path]))[path].version
        match damage:
            case "everything":
                await clear(store, base)
            case "position":
                await store.write([Delete(path, version)])
            case _:
                await store.write([Set(path, b"garbage", version)])

        async def is_back() -> bool:
            position = await position_of(store, root)
            return position is not None and position.place == place and not position.building

        await wait_until(is_back, what="the tree is back")
        assert (await documents_in(store, root))[2] == documents
        fed(writer, log, first=50)
        await at_the_end(store, root, wanted)


async def test_a_request_of_an_operator_is_left_alone_while_nothing_is_under_way(store: Store, root: str) -> None:
    log, notes = await walked_log(3), Notes()
    writer = writer_on(store, root, "w", notes)
    plan = "/admin/reassign_partitions"
    begins = next(number for number in range(100) if plan in rendered_after(log, number))
    fed(writer, log, last=begins - 1)
    base = f"{root}/{CLUSTER}"
    request = f"{base}{plan}"
    async with running(writer):
        await wait_until(lambda: writer.role is Role.WRITING, what="it writes")
        await store.write([Create(request, b"by hand"), Create(f"{base}/admin/failed_brokers/99", b"")])
        await wait_until(lambda: bool(notes.drifted), what="a full look was taken")
        assert (await store.read([request]))[request].data == b"by hand"
        # Work begins: the node is Drover's answer from now on, and goes with the last partition.
        fed(writer, log, first=begins - 1, last=begins)
        await wait_until(lambda: not writer.backlog, what="the plan is written")
        assert (await store.read([request]))[request].data == rendered_after(log, begins)[plan]
        fed(writer, log, first=begins)
        await at_the_end(store, root, prefixes(log))
        assert plan not in await read_tree(store, root)


async def test_a_tree_that_was_restored_from_before_is_written_on_although_nothing_more_happens(root: str) -> None:
    log, notes, store = await walked_log(3), Notes(), MemoryStore()
    wanted = prefixes(log)
    writer = writer_on(store, root, "w", notes)
    fed(writer, log, last=50)
    async with running(writer):
        await wait_until(lambda: writer.role is Role.WRITING and not writer.backlog, what="it writes")
        before = dict(store.nodes), dict(store.identities)
        fed(writer, log, first=50)
        await at_the_end(store, root, wanted)
        store.nodes, store.identities = before
        await at_the_end(store, root, wanted)


@pytest.mark.story
async def test_the_end_of_a_heal_of_more_chunks_than_zookeeper_takes_at_once_is_cut(
    real_store: Store, root: str
) -> None:
    """5,000 nodes below a long path go with one event: 1.2 MB, for which ZooKeeper closes the connection each time."""
    writer = writer_on(real_store, f"{root}-{'x' * 200}", "w", Notes())
    chunks = ((one,) for one in assignments_of("orders", 5_000))
    ended = HealEnded(cluster=CLUSTER, heal="heal-1", why=HealEnd.RETURNED, dropped=5_000)
    events = [replace(event, cluster=CLUSTER) for event in a_heal(*chunks)]
    async with running(writer):
        await wait_until(lambda: writer.role is Role.WRITING, what="it writes")
        writer.offer(7, recorded(events))
        await wait_until(lambda: writer.tree.position is not None and writer.tree.position.offset == 8, what="chunks")
        assert sum(path.startswith("/drover/heal/") for path in writer.tree.nodes) == 5_000
        writer.offer(8, recorded((ended,)))

        def is_over() -> bool:
            position = writer.tree.position
            return position is not None and position.offset == 9 and not position.building

        await wait_until(is_over, what="the end of the heal")
    assert not any(path.startswith("/drover/heal/") for path in await read_tree(real_store, f"{root}-{'x' * 200}"))


async def test_a_tree_that_is_ahead_of_what_a_projector_has_read_is_waited_for_and_not_called_another_logs(
    root: str,
) -> None:
    """Another projector writes what was recorded after this one had looked where the log ends."""
    store, log, notes = MemoryStore(), await walked_log(2), Notes()
    wanted = prefixes(log)
    first = writer_on(store, root, "first", Notes())
    fed(first, log)
    async with running(first):
        await at_the_end(store, root, wanted)
    second = writer_on(store, root, "second", notes)
    fed(second, log, last=-1)
    async with running(second):
        await asyncio.sleep(TIMES.take_over_s / 4)
        fed(second, log, first=-1)
        await wait_until(lambda: second.role is Role.WRITING, what="it writes")
    assert notes.errors == []


async def test_a_tree_of_another_log_is_said() -> None:
    store, log, notes = MemoryStore(), await walked_log(2), Notes()
    first = writer_on(store, "/drover", "first", Notes())
    fed(first, log)
    async with running(first):
        await wait_until(lambda: first.role is Role.WRITING and not first.backlog, what="it writes")
    second = writer_on(store, "/drover", "second", notes)
    fed(second, log, last=20)
    async with running(second):
        await wait_until(lambda: second.last_error is not None, what="it is said")
    assert "is it another one?" in str(notes.errors[0])
