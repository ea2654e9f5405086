"""One real ZooKeeper per session without any Kafka, and what the tests do to it."""

import signal
from collections.abc import Sequence
from pathlib import Path

from drover.local import probe
from drover.local.layout import ZOOKEEPER, ClusterSpec, Layout, random_id
from drover.local.nodes import Nodes
from drover.local.ports import reserve
from drover.local.processes import ProcessState
from drover.local.programs import Programs, node_command, prepare
from drover.local.settings import LOGGING, zookeeper_settings
from drover.local.waiting import wait_until
from projections.options import ZooKeeperOptions
from projections.position import Position
from projections.store import Delete, Store, read_subtree
from projections.tree import Tree
from projections.zookeeper import ZooKeeperStore
from tests.shard.world import CLUSTER

ROOT = "/drover"


class RealZooKeeper:
    """A ZooKeeper 3.9 as a child process; `more` are lines of its settings."""

    def __init__(self, directory: Path, more: Sequence[str] = ()) -> None:
        self._layout = Layout(directory)
        self._nodes = Nodes(self._layout)
        self._more = more
        self._programs: Programs | None = None

    @property
    def hosts(self) -> str:
        return self._nodes.spec.zookeeper

    async def start(self) -> None:
        """Start it, or start it again on its data."""
        if self._programs is None:
            self._programs = prepare()
            spec = reserve(self._layout, 1, lambda ports: ClusterSpec(random_id(), (), 0, 0, ports[0]))
            self._layout.data_directory(ZOOKEEPER).mkdir(parents=True)
            self._layout.logging_file.write_text(LOGGING, encoding="utf-8")
            text = zookeeper_settings(spec, self._layout.data_directory(ZOOKEEPER))
            self._layout.settings_file(ZOOKEEPER).write_text("\n".join([text, *self._more]), encoding="utf-8")
        self._nodes.spawn(ZOOKEEPER, node_command(self._programs, self._layout, ZOOKEEPER), self._programs)
        await self.serves()

    async def serves(self) -> None:
        port = self._nodes.spec.zookeeper_port
        await wait_until(lambda: probe.zookeeper_serves(port), what="ZooKeeper serves", timeout_s=60)

    async def kill(self) -> None:
        await self._nodes.kill(ZOOKEEPER)

    async def pause(self) -> None:
        await self._nodes.signal(ZOOKEEPER, signal.SIGSTOP, ProcessState.PAUSED)

    async def resume(self) -> None:
        await self._nodes.signal(ZOOKEEPER, signal.SIGCONT, ProcessState.RUNNING)

    async def stop(self) -> None:
        await self._nodes.end_all(grace_s=0.0, wake_paused=False)
        self._layout.spec_file.unlink(missing_ok=True)

    def options(self, **more: object) -> ZooKeeperOptions:
        return ZooKeeperOptions(self.hosts, **more)  # type: ignore[arg-type]  # whatever the test sets


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


def zookeeper_store(zookeeper: RealZooKeeper, **more: object) -> ZooKeeperStore:
    return ZooKeeperStore(zookeeper.options(**more))
