"""The port of a store that holds the trees: nodes with bytes and a version, and transactions over several of them.

`zookeeper.py` is the real one, `memory.py` that of the tests; one contract suite tests both.

DroverError
 └─ StoreError                 the store did not carry out a request
     ├─ StoreUnavailableError  it had no effect, and may be tried again
     ├─ WriteUnknownError      it may have had an effect: read the position before anything else
     ├─ StoreDeniedError       the store's access control forbids it
     └─ ConflictError          a transaction was refused as a whole, since one node was not as expected
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from drover.errors import DroverError

# The bounds of a transaction, far below ZooKeeper's own limit of 1 MiB (jute.maxbuffer).
MOST_OPERATIONS = 200
MOST_BYTES = 512_000
OPERATION_OVERHEAD_BYTES = 80
# The bound for a single event that removes thousands of nodes; ZooKeeper closes the connection at 1,048,576.
MOST_REQUEST_BYTES = 1_000_000
# The version of an unreadable node: it matches any.
ANY_VERSION = -1


class StoreError(DroverError):
    """The store did not carry out a request; the message names store, node and remedy."""


class StoreUnavailableError(StoreError):
    """The store did not answer, and nothing was changed."""


class WriteUnknownError(StoreError):
    """A transaction was sent and its answer was lost."""


class StoreDeniedError(StoreError):
    """The credentials do not suffice; `path` is the node whose ACL forbids it, None if unknown."""

    def __init__(self, message: str, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class ConflictError(StoreError):
    """A transaction was refused: the node at `path` is missing, exists already, has another version or is not empty."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} was changed by somebody else")
        self.path = path


class Znode(msgspec.Struct, frozen=True, gc=False):
    """The node at a path; `version` starts at 0 and grows by one with each change of the data."""

    data: bytes
    version: int


class Examined(NamedTuple):
    """A node and which one it is: `czxid` and `mzxid` are the transactions that made it and last wrote it.

    `mtime_ms` is the store's time of that last write: together with both ids it identifies a version of a node, even
    across ensembles. A node whose ACL forbids to read it is `UNREADABLE`: `data` is None, and nothing else is known.
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

    Reads see every write that was answered before, whoever made it.
    """

    async def read(self, paths: Sequence[str]) -> Mapping[str, Znode]:
        """Return the nodes at these paths; missing ones are left out."""
        ...

    async def examine(self, paths: Sequence[str]) -> Mapping[str, Examined]:
        """Return the nodes at these paths, unreadable ones included; missing ones are left out."""
        ...

    async def children(self, paths: Sequence[str]) -> Mapping[str, frozenset[str]]:
        """Return the names directly below each of these paths; missing paths are left out."""
        ...

    async def subtree(self, top: str) -> Mapping[str, Znode]:
        """Return a node and everything below it, level by level; empty if it is missing."""
        ...

    async def write(self, operations: Sequence[Operation], meanwhile: Callable[[], None] = nothing) -> None:
        """Carry out all operations, in this order, or none; `meanwhile` is called during that, at most once.

        Raises `ConflictError` if a node was not as expected, and `WriteUnknownError` if the answer was lost.
        """
        ...

    async def exposures(self, paths: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return those of these nodes that others than the writer may change, with the ACL ids of these others.

        Empty without credentials, since the settings then let everybody change everything.
        """
        ...

    async def claim(self, path: str) -> None:
        """Let only the writer change a node from now on, and only its readers read it; idempotent."""
        ...

    async def close(self) -> None:
        """Close the connection; idempotent."""
        ...


def size_of(operation: Operation) -> int:
    """Estimate the bytes of an operation in a transaction."""
    data = b"" if isinstance(operation, Delete) else operation.data
    return len(operation.path) + len(data) + OPERATION_OVERHEAD_BYTES


async def nodes_below(store: Store, tops: Sequence[str]) -> dict[str, Examined]:
    """Return the nodes below these nodes, by absolute path; those below an unreadable node are left out."""
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
