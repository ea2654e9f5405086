"""The port of a store that holds the trees: nodes with bytes and a version, and transactions over several of them.

`zookeeper.py` is the real one, `memory.py` that of the tests; one contract suite holds both to this page.

DroverError
 └─ StoreError                 the store did not do what was asked
     ├─ StoreUnavailableError  known not to have happened: it may be asked again
     ├─ WriteUnknownError      may or may not have happened: read the position before anything else
     ├─ StoreDeniedError       the store's access control forbids it
     └─ ConflictError          a transaction was refused as a whole, since one node was not as expected
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from drover.errors import DroverError

# What one transaction may hold, far below ZooKeeper's own limit of 1 MiB (jute.maxbuffer).
MOST_OPERATIONS = 200
MOST_BYTES = 512_000
OPERATION_OVERHEAD_BYTES = 80
# What only an event that ends thousands of nodes may need; ZooKeeper closes the connection at 1,048,576.
MOST_REQUEST_BYTES = 1_000_000
# In place of a version that may not be read: whichever it is.
ANY_VERSION = -1


class StoreError(DroverError):
    """The store did not do what was asked; the message names store, node and remedy."""


class StoreUnavailableError(StoreError):
    """The store did not answer, and nothing was changed."""


class WriteUnknownError(StoreError):
    """A transaction was sent and its answer was lost."""


class StoreDeniedError(StoreError):
    """The credentials do not suffice; `path` is the node that forbids it, None if it is not known."""

    def __init__(self, message: str, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class ConflictError(StoreError):
    """Nothing was done, since the node at `path` is missing, there already, of another version or not empty."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} was changed by somebody else")
        self.path = path


class Znode(msgspec.Struct, frozen=True, gc=False):
    """The node at a path; `version` starts at 0 and grows by one with each change of the data."""

    data: bytes
    version: int


class Examined(NamedTuple):
    """A node and which one it is: `czxid` and `mzxid` are the transactions that made it and last wrote it.

    `mtime_ms` is the store's time of that last write: together with both ids it tells a version of a node from every
    other, even of another ensemble's. `data` is None, and nothing else known, where the node's own access control
    forbids to read it: that is `UNREADABLE`.
    """

    data: bytes | None
    version: int
    czxid: int
    mzxid: int
    mtime_ms: int


UNREADABLE = Examined(data=None, version=ANY_VERSION, czxid=0, mzxid=0, mtime_ms=0)


class Create(msgspec.Struct, frozen=True, gc=False):
    """Create a node that does not exist; its parent must exist."""

    path: str
    data: bytes


class Set(msgspec.Struct, frozen=True, gc=False):
    """Replace the data of a node that has this version."""

    path: str
    data: bytes
    version: int


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Delete a node that has this version and no children."""

    path: str
    version: int


Operation = Create | Set | Delete


def nothing() -> None:
    """Do nothing meanwhile."""


class Store(Protocol):
    """A tree of nodes, by absolute paths. Every method raises `StoreUnavailableError` or `StoreDeniedError`.

    Reads see everything that was written before by anybody whose write had been answered.
    """

    async def read(self, paths: Sequence[str]) -> Mapping[str, Znode]:
        """Return the nodes at these paths; those that are not there are left out."""
        ...

    async def examine(self, paths: Sequence[str]) -> Mapping[str, Examined]:
        """Return the nodes at these paths, those that may not be read among them; others are left out."""
        ...

    async def children(self, paths: Sequence[str]) -> Mapping[str, frozenset[str]]:
        """Return the names directly below each of these paths; paths that are not there are left out."""
        ...

    async def subtree(self, top: str) -> Mapping[str, Znode]:
        """Return a node and everything below it, level by level; empty if it is not there."""
        ...

    async def write(self, operations: Sequence[Operation], meanwhile: Callable[[], None] = nothing) -> None:
        """Do all or nothing, in this order; `meanwhile` is called while the store works on it, at most once.

        Raises `ConflictError` if a node was not as expected and `WriteUnknownError` when nobody knows what happened.
        """
        ...

    async def exposures(self, paths: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return, of these nodes, those that somebody beside the writer may change, with the ACL ids of who may.

        Empty without credentials: then everybody may change everything, and the settings say that this is meant.
        """
        ...

    async def claim(self, path: str) -> None:
        """Let only the writer change a node from now on, and its readers read it; idempotent."""
        ...

    async def close(self) -> None:
        """Close the connection; idempotent."""
        ...


def size_of(operation: Operation) -> int:
    """Estimate the bytes of an operation in a transaction."""
    data = b"" if isinstance(operation, Delete) else operation.data
    return len(operation.path) + len(data) + OPERATION_OVERHEAD_BYTES


async def nodes_below(store: Store, tops: Sequence[str]) -> dict[str, Examined]:
    """Return everything below these nodes, by absolute path, without them; nothing is seen below an unreadable one."""
    below: dict[str, Examined] = {}
    level = list(tops)
    while level:
        names = await store.children(level)
        nodes = await store.examine([f"{path}/{name}" for path in level for name in sorted(names.get(path, ()))])
        below.update(nodes)
        level = [path for path, node in nodes.items() if node.data is not None]
    return below


async def read_subtree(store: Store, top: str) -> dict[str, Znode]:
    """Read a node and everything below it, by absolute path; see `Store.subtree`."""
    return dict(await store.subtree(top))
