"""Operators, an intake, a projector and the owner of the shard: everything between a node and its effect but Kafka."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from drover.events.commands import AnyCommand
from drover.events.partitions import TopicPartition
from drover.events.records import Batch, Outcome
from drover.fold.log import RecordVerdict, ShardFold
from drover.local import wait_until
from drover.projections.commands import CANCEL, PLAN
from drover.projections.feed import Feed
from drover.projections.intake import Intake
from drover.projections.store import ConflictError, Create, Delete, Examined, Set, Store
from drover.projections.tree import Tree
from drover.projections.writer import ClusterWriter, Role, WriterTimes
from tests.projections.notes import Notes
from tests.shard.world import CLUSTER, World

ORDERS = [TopicPartition("orders", number) for number in range(3)]
TIMES = WriterTimes(take_over_s=0.4, follow_s=0.05, verify_s=0.3, slice_s=0.01)
PATIENCE_S = 60


def slow_world() -> World:
    """A cluster whose new replicas join only when told to."""
    world = World(joins_by_itself=False)
    world.model.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}, partition_bytes=1_000_000)
    return world


def plan_of(*moves: tuple[int, list[int]]) -> bytes:
    """A plan as the stock tool writes it."""
    entries = [{"topic": "orders", "partition": number, "replicas": replicas} for number, replicas in moves]
    return json.dumps({"version": 1, "partitions": entries}).encode()


class Office:
    """One cluster; `store` is where operators write. `is_staffed` false: no worker decides anything."""

    def __init__(self, store: Store, root: str, world: World | None = None) -> None:
        self.store = store
        self.base = f"{root}/{CLUSTER}"
        self.world = world or slow_world()
        self.notes = Notes()
        self.is_staffed = True
        self.submitted: list[AnyCommand] = []
        self.writer = self._new_writer(root)
        self._root = root
        self._fold = ShardFold(0, 1)
        self._fed = 0

    def _new_writer(self, root: str) -> ClusterWriter:
        self.caught_up = asyncio.Event()
        self.caught_up.set()
        self.intake = Intake(CLUSTER, self.base, self.store, self._submit, self.notes, look_s=0.03)
        tree = Tree(self.store, root, CLUSTER, "w")
        return ClusterWriter(Feed(CLUSTER), 0, tree, self.notes, self.caught_up, TIMES, self.intake)

    def restart(self) -> None:
        """Another process takes over: it knows nothing but the tree and the log."""
        self._fold, self._fed = ShardFold(0, 1), 0
        self.writer = self._new_writer(self._root)

    async def _submit(self, command: AnyCommand) -> None:
        self.submitted.append(command)
        self.world.put(command)

    def feed(self) -> None:
        """Let the writer hear what the log says."""
        for offset in range(self._fed, len(self.world.log)):
            folded = self._fold.fold(offset, self.world.log[offset])
            if folded is not None and folded.verdict is RecordVerdict.VALID and isinstance(folded.record, Batch):
                if folded.record.events:
                    self.writer.offer(offset, folded.record)
                self.writer.answered(offset, folded.record)
        self._fed = len(self.world.log)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Let all of them work for the length of a block."""
        tasks = [
            asyncio.create_task(self._drive()),
            asyncio.create_task(self.writer.run()),
            asyncio.create_task(self.intake.run(self.writer, self.caught_up)),
        ]
        try:
            await wait_until(lambda: self.writer.role is Role.WRITING, what="it writes")
            yield
            for task in tasks:
                assert not task.done(), task.exception()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _drive(self) -> None:
        while True:
            if self.is_staffed:
                await self.world.run(100)
            self.feed()
            await asyncio.sleep(0.01)

    async def let_copy(self) -> None:
        """Let every new replica join from now on."""
        self.world.model.joins_by_itself = True

    # -- operators

    async def write(self, path: str, data: bytes = b"") -> None:
        """Make a node, or set it if it is there; again if Drover wrote the same node since it was looked at."""
        absolute = f"{self.base}{path}"
        async with asyncio.timeout(PATIENCE_S):
            while True:
                node = await self.node(path)
                try:
                    await self.store.write(
                        [Create(absolute, data) if node is None else Set(absolute, data, node.version)]
                    )
                except ConflictError:
                    await asyncio.sleep(0.01)
                else:
                    return

    async def remove(self, path: str) -> None:
        """Remove a node that is there."""
        node = await self.node(path)
        assert node is not None
        await self.store.write([Delete(f"{self.base}{path}", node.version)])

    async def node(self, path: str) -> Examined | None:
        absolute = f"{self.base}{path}"
        return (await self.store.examine([absolute])).get(absolute)

    async def document(self, path: str) -> Any:
        """The JSON that stands there; None if nothing does."""
        node = await self.node(path)
        return None if node is None or not node.data else json.loads(node.data)

    async def until(self, path: str, holds: Callable[[Any], bool], what: str) -> Any:
        """Wait until a node's document is as wanted, and return it."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while not holds(found := await self.document(path)):
            assert asyncio.get_running_loop().time() < deadline, f"{what}: {path} has {found}, {self.notes.errors}"
            await asyncio.sleep(0.02)
        return found

    async def until_gone(self, path: str) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while (node := await self.node(path)) is not None:
            assert asyncio.get_running_loop().time() < deadline, f"{path} still is {node}, {self.notes.errors}"
            await asyncio.sleep(0.02)

    async def until_shown(self) -> Any:
        """Wait until the plan that stands there is Drover's, with the original replicas."""
        return await self.until(PLAN, is_drovers, "the plan with its originals")

    async def until_idle(self) -> None:
        for path in (PLAN, CANCEL):
            await self.until_gone(path)

    def decided(self) -> list[Outcome]:
        """What the log says of commands that came from nodes, once each."""
        return [each for each in self._from_nodes() if each.type != "request-refused"]

    def told(self) -> list[Outcome]:
        """What the log says of requests that could not be carried out."""
        return [each for each in self._from_nodes() if each.type == "request-refused"]

    def _from_nodes(self) -> list[Outcome]:
        return [each for each in self.world.outcomes() if each.id.startswith("znode-") and each.verdict != "duplicate"]


def is_drovers(document: Any) -> bool:
    """Whether a plan is the one that Drover shows."""
    return document is not None and all("original_replicas" in entry for entry in document.get("partitions", ({},)))
