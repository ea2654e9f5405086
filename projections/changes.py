"""PURE: the transactions that turn a tree's nodes into the wanted ones, and the nodes after a transaction."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from types import MappingProxyType

from drover.projections.ownership import depth_of
from drover.projections.reassignment_document import is_another
from drover.projections.store import (
    MOST_BYTES,
    MOST_OPERATIONS,
    MOST_REQUEST_BYTES,
    Create,
    Delete,
    Operation,
    Set,
    Znode,
    size_of,
)

# The position node is in every transaction.
POSITION_BYTES = 2_000
_NOTHING: Mapping[str, Znode | None] = MappingProxyType({})


def changes(
    present: Mapping[str, Znode], wanted: Mapping[str, bytes | None], under_way: Mapping[str, Znode | None] = _NOTHING
) -> list[tuple[Operation, ...]]:
    """Return the operations that give each wanted path its bytes (None: no node), in an order that ZooKeeper accepts.

    Deletions come first, the deepest first, then creations, the highest first. The operations of a path must be in one
    transaction. `under_way` are the nodes after the transaction in flight (`left_by`); if that fails, the tree is read
    again.
    """
    going: list[tuple[Operation, ...]] = []
    coming: list[tuple[Operation, ...]] = []
    for path, data in wanted.items():
        there = under_way[path] if path in under_way else present.get(path)
        if data is None:
            if there is not None:
                going.append((Delete(path, there.version),))
        elif there is None:
            coming.append((Create(path, data),))
        elif there.data == data:
            continue
        elif is_another(path, there.data, data):
            coming.append((Delete(path, there.version), Create(path, data)))
        else:
            coming.append((Set(path, data, there.version),))
    going.sort(key=lambda change: depth_of(change[0].path), reverse=True)
    coming.sort(key=lambda change: depth_of(change[0].path))
    return going + coming


def flat(parts: Iterable[tuple[Operation, ...]]) -> list[Operation]:
    """Return the operations of changes that fit one transaction."""
    return [operation for part in parts for operation in part]


def fits(operations: Sequence[Operation], base: str) -> bool:
    """Whether ZooKeeper accepts these operations, below `base`, in one transaction with the position."""
    # The operations of a usual group fit, because their documents were weighed.
    if len(operations) <= MOST_OPERATIONS:
        return True
    return POSITION_BYTES + sum(len(base) + size_of(operation) for operation in operations) <= MOST_REQUEST_BYTES


def transactions(parts: Iterable[tuple[Operation, ...]]) -> Iterator[list[Operation]]:
    """Split changes into transactions with room for the position node."""
    some: list[Operation] = []
    size = POSITION_BYTES
    for part in parts:
        more = sum(map(size_of, part))
        if some and (len(some) + len(part) >= MOST_OPERATIONS or size + more > MOST_BYTES):
            yield some
            some, size = [], POSITION_BYTES
        some.extend(part)
        size += more
    if some:
        yield some


def left_by(operations: Iterable[Operation]) -> dict[str, Znode | None]:
    """Return the nodes after a transaction, by path; None for a deleted node."""
    left: dict[str, Znode | None] = {}
    for operation in operations:
        match operation:
            case Create():
                left[operation.path] = Znode(operation.data, 0)
            case Set():
                left[operation.path] = Znode(operation.data, operation.version + 1)
            case Delete():
                left[operation.path] = None
    return left


def absorb(present: MutableMapping[str, Znode], operations: Iterable[Operation]) -> None:
    """Update the known nodes after a transaction."""
    for path, node in left_by(operations).items():
        if node is None:
            del present[path]
        else:
            present[path] = node
