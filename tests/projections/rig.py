"""What the tests do to a tree and to the ZooKeeper that holds it."""

from drover.local import LocalZooKeeper
from drover.projections.position import Position
from drover.projections.store import Delete, Store, read_subtree
from drover.projections.tree import Tree
from drover.projections.zookeeper import ZooKeeperStore
from drover.settings.settings import ZooKeeperOptions
from tests.shard.world import CLUSTER

ROOT = "/drover"


async def read_tree(store: Store, root: str = ROOT, cluster: str = CLUSTER) -> dict[str, bytes]:
    """Read a cluster's whole tree, by path below its chroot."""
    base = f"{root}/{cluster}"
    return {path[len(base) :]: node.data for path, node in (await read_subtree(store, base)).items()}


async def clear(store: Store, root: str) -> None:
    """Remove everything below a path, and it."""
    found = await read_subtree(store, root)
    for path in sorted(found, key=lambda path: path.count("/"), reverse=True):
        await store.write([Delete(path, found[path].version)])


async def position_of(store: Store, root: str = ROOT) -> Position | None:
    """Read the position as a bystander."""
    position, _ = await Tree(store, root, CLUSTER, "bystander").read_position()
    return position


def zookeeper_store(zookeeper: LocalZooKeeper, **more: object) -> ZooKeeperStore:
    """Connect to it; `more` are further options."""
    return ZooKeeperStore(ZooKeeperOptions(zookeeper.hosts, **more))  # type: ignore[arg-type]  # whatever the test sets
