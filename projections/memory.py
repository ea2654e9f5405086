"""A store in memory with the same contract, for tests, including the faults of a real one."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from drover.projections.ownership import parent_of
from drover.projections.store import (
    ConflictError,
    Create,
    Delete,
    Examined,
    Operation,
    Set,
    StoreUnavailableError,
    WriteUnknownError,
    Znode,
    nothing,
)


class Fault(Enum):
    """The fault of a transaction."""

    NOT_SENT = "not-sent"
    LOST_REQUEST = "lost-request"
    LOST_ANSWER = "lost-answer"


@dataclass(slots=True)
class MemoryStore:
    """A tree of nodes; several writers share one object.

    Each transaction takes the next of `faults`. `exposed` are the nodes that others may change, with their ids.
    """

    nodes: dict[str, Znode] = field(default_factory=dict)
    faults: Iterator[Fault | None] = field(default_factory=lambda: iter(()))
    transactions: list[tuple[Operation, ...]] = field(default_factory=list)
    identities: dict[str, tuple[int, int]] = field(default_factory=dict)
    number: int = 0
    exposed: dict[str, tuple[str, ...]] = field(default_factory=dict)

    async def read(self, paths: Sequence[str]) -> Mapping[str, Znode]:
        """Return the nodes at these paths."""
        await asyncio.sleep(0)
        return {path: self.nodes[path] for path in paths if path in self.nodes}

    async def examine(self, paths: Sequence[str]) -> Mapping[str, Examined]:
        """Return the nodes at these paths, with their identity; its time is the number of the transaction."""
        await asyncio.sleep(0)
        return {
            path: Examined(
                self.nodes[path].data, self.nodes[path].version, *self.identities[path], self.identities[path][1]
            )
            for path in paths
            if path in self.nodes
        }

    async def children(self, paths: Sequence[str]) -> Mapping[str, frozenset[str]]:
        """Return the names below each of these paths."""
        await asyncio.sleep(0)
        names: dict[str, set[str]] = {path: set() for path in paths if path in self.nodes or path == "/"}
        for node in self.nodes:
            parent = parent_of(node) or "/"
            if parent in names:
                names[parent].add(node.rpartition("/")[2])
        return {path: frozenset(children) for path, children in names.items()}

    async def subtree(self, top: str) -> Mapping[str, Znode]:
        """Return a node and everything below it."""
        await asyncio.sleep(0)
        below = f"{top.rstrip('/')}/"
        return {path: node for path, node in self.nodes.items() if path == top or path.startswith(below)}

    async def write(self, operations: Sequence[Operation], meanwhile: Callable[[], None] = nothing) -> None:
        """Carry out all operations or none."""
        fault = next(self.faults, None)
        await asyncio.sleep(0)
        meanwhile()
        if fault is Fault.NOT_SENT:
            raise StoreUnavailableError("the store is out of reach")
        if fault is Fault.LOST_REQUEST:
            raise WriteUnknownError("the connection was lost")
        nodes = dict(self.nodes)
        for operation in operations:
            _do(nodes, operation)
        self.nodes = nodes
        self.number += 1
        for operation in operations:
            self._identify(operation)
        self.transactions.append(tuple(operations))
        await asyncio.sleep(0)
        if fault is Fault.LOST_ANSWER:
            raise WriteUnknownError("the connection was lost")

    async def exposures(self, paths: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the nodes that others may change, with their ids."""
        await asyncio.sleep(0)
        return {path: self.exposed[path] for path in paths if path in self.exposed and path in self.nodes}

    async def claim(self, path: str) -> None:
        """Let only the writer change a node."""
        await asyncio.sleep(0)
        self.exposed.pop(path, None)

    async def close(self) -> None:
        """Do nothing, because there is no connection."""

    def _identify(self, operation: Operation) -> None:
        match operation:
            case Create():
                self.identities[operation.path] = (self.number, self.number)
            case Set():
                self.identities[operation.path] = (self.identities[operation.path][0], self.number)
            case Delete():
                del self.identities[operation.path]


def _do(nodes: dict[str, Znode], operation: Operation) -> None:
    path = operation.path
    there = nodes.get(path)
    match operation:
        case Create():
            parent = parent_of(path)
            if there is not None or (parent and parent not in nodes):
                raise ConflictError(path)
            nodes[path] = Znode(operation.data, 0)
        case Set():
            if there is None or there.version != operation.version:
                raise ConflictError(path)
            nodes[path] = Znode(operation.data, there.version + 1)
        case Delete():
            if there is None or there.version != operation.version:
                raise ConflictError(path)
            if any(parent_of(node) == path for node in nodes):
                raise ConflictError(path)
            del nodes[path]
