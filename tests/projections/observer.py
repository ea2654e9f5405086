"""Somebody who reads a tree all the time and holds every consistent sight of it against the log."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from drover.projections.position import Place, decode_position
from drover.projections.store import Store, StoreError
from tests.projections.rig import read_tree
from tests.shard.world import CLUSTER

POSITION = "/drover/position"


@dataclass
class Observer:
    """`sights` are the places at which the tree was seen whole; the first fault that is found is raised at the end."""

    store: Store
    root: str
    wanted: dict[Place, dict[str, bytes]]
    sights: list[Place] = field(default_factory=list)

    async def look(self) -> Place | None:
        """Read the tree; if nothing was written meanwhile, it must be the fold of a prefix, and not of an older one."""
        path = f"{self.root}/{CLUSTER}{POSITION}"
        before = await self.store.read([path])
        tree = await read_tree(self.store, self.root)
        # Every transaction moves the position's version: if it stood still, so did the tree.
        if before != await self.store.read([path]) or POSITION not in tree:
            return None
        position = decode_position(tree.pop(POSITION))
        assert position is not None
        if position.building:
            return None
        documents = shown(tree)
        assert documents == self.wanted[position.place], f"at {position.place} the tree is not the fold"
        assert not self.sights or position.place >= self.sights[-1], "the tree went back"
        self.sights.append(position.place)
        return position.place

    async def watch(self) -> None:
        """Look for ever; a store that is away is no fault of the tree."""
        while True:
            try:
                await self.look()
            except StoreError:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0)


def shown(tree: dict[str, bytes]) -> dict[str, bytes]:
    """Leave out what is no document: the chroot itself and the nodes that only hold others."""
    return {path: data for path, data in tree.items() if path and (data or path.startswith("/admin/reassignments/"))}


@asynccontextmanager
async def observing(store: Store, root: str, wanted: dict[Place, dict[str, bytes]]) -> AsyncIterator[Observer]:
    """Watch a tree for the length of a block; what was found wrong is raised at its end."""
    observer = Observer(store, root, wanted)
    task = asyncio.create_task(observer.watch())
    try:
        yield observer
    finally:
        if not task.done():
            task.cancel()
        await asyncio.wait((task,))
    if not task.cancelled():
        task.result()
