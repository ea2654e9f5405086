"""What every store must do: held against a real ZooKeeper and against the twin in memory."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from drover.local import LocalCluster
from drover.projections.memory import MemoryStore
from drover.projections.store import (
    MOST_BYTES,
    ConflictError,
    Create,
    Delete,
    Operation,
    Set,
    Store,
    Znode,
    read_subtree,
)
from drover.projections.zookeeper import ZooKeeperStore
from drover.settings.settings import ZooKeeperOptions


@pytest.fixture(params=["memory", pytest.param("zookeeper", marks=pytest.mark.cluster)])
def real_cluster(request: pytest.FixtureRequest) -> LocalCluster | None:
    """Start the real cluster only for the tests that run on it; an asynchronous fixture could not start it."""
    if request.param == "memory":
        return None
    cluster: LocalCluster = request.getfixturevalue("local_cluster")
    return cluster


@pytest_asyncio.fixture(loop_scope="session")
async def store(real_cluster: LocalCluster | None) -> AsyncIterator[Store]:
    """Each store in turn."""
    made = MemoryStore() if real_cluster is None else ZooKeeperStore(ZooKeeperOptions(real_cluster.zookeeper))
    yield made
    await made.close()


@pytest.fixture
async def top(store: Store, root: str) -> str:
    await store.write([Create(root, b"")])
    return root


async def test_what_was_written_is_read_with_its_version(store: Store, top: str) -> None:
    await store.write([Create(f"{top}/a", b"1"), Create(f"{top}/a/b", b"2")])
    await store.write([Set(f"{top}/a", b"3", 0)])
    assert await store.read([f"{top}/a", f"{top}/a/b", f"{top}/c"]) == {
        f"{top}/a": Znode(b"3", 1),
        f"{top}/a/b": Znode(b"2", 0),
    }
    assert await store.children([top, f"{top}/a", f"{top}/c"]) == {top: frozenset({"a"}), f"{top}/a": frozenset({"b"})}


async def test_a_transaction_is_done_in_its_order(store: Store, top: str) -> None:
    await store.write([Create(f"{top}/a", b"1")])
    await store.write(
        [Delete(f"{top}/a", 0), Create(f"{top}/a", b"2"), Set(f"{top}/a", b"3", 0), Create(f"{top}/a/b", b"4")]
    )
    assert await store.read([f"{top}/a", f"{top}/a/b"]) == {f"{top}/a": Znode(b"3", 1), f"{top}/a/b": Znode(b"4", 0)}


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        (Create("a", b""), "a"),
        (Create("nowhere/b", b""), "nowhere/b"),
        (Set("a", b"", 7), "a"),
        (Set("b", b"", 0), "b"),
        (Delete("a", 7), "a"),
        (Delete("b", 0), "b"),
        (Delete("full", 0), "full"),
    ],
    ids=str,
)
async def test_one_node_that_is_not_as_expected_undoes_all_and_is_named(
    store: Store, top: str, wrong: Operation, path: str
) -> None:
    await store.write([Create(f"{top}/a", b"1"), Create(f"{top}/full", b""), Create(f"{top}/full/child", b"")])
    match wrong:
        case Create():
            absolute: Operation = Create(f"{top}/{wrong.path}", wrong.data)
        case Set():
            absolute = Set(f"{top}/{wrong.path}", wrong.data, wrong.version)
        case Delete():
            absolute = Delete(f"{top}/{wrong.path}", wrong.version)
    before = await read_subtree(store, top)
    with pytest.raises(ConflictError) as raised:
        await store.write([Create(f"{top}/new", b""), Set(f"{top}/full", b"x", 0), absolute])
    if path != "full":
        assert raised.value.path == f"{top}/{path}"
    assert await read_subtree(store, top) == before


async def test_of_two_writers_on_one_version_one_wins(store: Store, top: str) -> None:
    await store.write([Create(f"{top}/position", b"")])
    competing_groups = [
        store.write([Set(f"{top}/position", bytes([number]), 0), Create(f"{top}/{number}", b"")]) for number in range(8)
    ]
    ends = await asyncio.gather(*competing_groups, return_exceptions=True)
    assert sum(end is None for end in ends) == 1
    assert all(isinstance(end, ConflictError) for end in ends if end is not None)
    assert len((await store.children([top]))[top]) == 2


async def test_there_is_time_for_something_else_once_while_a_transaction_is_done(store: Store, top: str) -> None:
    moments: list[str] = []
    await store.write([Create(f"{top}/a", b"")], lambda: moments.append("meanwhile"))
    moments.append("done")
    assert moments == ["meanwhile", "done"]
    with pytest.raises(ConflictError):
        await store.write([Create(f"{top}/a", b"")], lambda: moments.append("refused"))
    assert moments.count("refused") <= 1


async def test_a_subtree_is_read_as_a_whole(store: Store, top: str) -> None:
    await store.write([Create(f"{top}/a", b""), *(Create(f"{top}/a/{number}", b"x") for number in range(150))])
    await store.write([Create(f"{top}/a/7/deep", b"y")])
    found = await read_subtree(store, top)
    assert len(found) == 153
    assert found[f"{top}/a/7/deep"] == Znode(b"y", 0)
    assert await read_subtree(store, f"{top}/nowhere") == {}


async def test_a_transaction_as_large_as_they_get_is_taken(store: Store, top: str) -> None:
    await store.write([Create(f"{top}/{number}", b"x" * (MOST_BYTES // 200 - 100)) for number in range(200)])
    assert len((await store.children([top]))[top]) == 200
