"""A projector as a process that kills itself at a chosen point: python -m tests.projections.projector_main …"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from drover.projections.feed import Feed
from drover.projections.store import Operation, Znode, nothing
from drover.projections.tree import Tree
from drover.projections.writer import ClusterWriter
from drover.projections.zookeeper import ZooKeeperStore
from drover.settings.settings import ZooKeeperOptions
from tests.projections.logs import valid_batches
from tests.projections.notes import Notes
from tests.shard.world import CLUSTER


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DeadlyStore(ZooKeeperStore):
    """Ends the process at the given point of the given transaction, or read."""

    def __init__(self, options: ZooKeeperOptions, point: str, number: int) -> None:
        super().__init__(options)
        self._point = point
        self._left = number

    async def read(self, paths: Sequence[str]) -> Mapping[str, Znode]:
        self._at("before-read")
        found = await super().read(paths)
        self._at("after-read")
        return found

    async def write(self, operations: Sequence[Operation], meanwhile: Callable[[], None] = nothing) -> None:
        self._at("before-write")
        writing = asyncio.create_task(super().write(operations, meanwhile))
        await asyncio.sleep(0)
        self._at("sent")
        # The server has it for certain, or nearly so; the answer may be on its way.
        await asyncio.sleep(0.001)
        self._at("answered-or-not")
        await writing
        self._at("after-write")

    def _at(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if not self._left:
                die()


async def main(hosts: str, root: str, log: Sequence[bytes], at_once: int, point: str, number: int) -> None:
    batches = valid_batches(log)
    caught_up = asyncio.Event()
    store = DeadlyStore(ZooKeeperOptions(hosts), point, number)
    writer = ClusterWriter(Feed(CLUSTER), 0, Tree(store, root, CLUSTER, f"pid-{os.getpid()}"), Notes(), caught_up)
    for offset, batch in batches[:at_once]:
        writer.offer(offset, batch)
    caught_up.set()
    task = asyncio.create_task(writer.run())
    for offset, batch in batches[at_once:]:
        while writer.role != "writing" or writer.backlog:  # noqa: ASYNC110 - a test's program with nothing else to do
            await asyncio.sleep(0.0005)
        writer.offer(offset, batch)
    while writer.backlog:  # noqa: ASYNC110 - the same
        await asyncio.sleep(0.0005)
    task.cancel()
    await asyncio.wait((task,))
    await store.close()


if __name__ == "__main__":
    recorded = msgspec.msgpack.decode(Path(sys.argv[3]).read_bytes(), type=list[bytes])
    asyncio.run(main(sys.argv[1], sys.argv[2], recorded, int(sys.argv[4]), sys.argv[5], int(sys.argv[6])))
