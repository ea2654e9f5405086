"""PURE: from what stands in a tree and what should, to transactions; and what stands there after one."""

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
    known: Mapping[str, Znode], wanted: Mapping[str, bytes | None], under_way: Mapping[str, Znode | None] = _NOTHING
) -> list[tuple[Operation, ...]]:
    """Say what makes each wanted path hold its bytes (None: nothing), in an order in which it can be done.

    What goes goes first, the deepest first, then what comes, the highest first. The operations of one path must be in
    one transaction. `under_way` is what a transaction leaves (`left_by`) that is done before, or else all is read anew.
    """
    going: list[tuple[Operation, ...]] = []
    coming: list[tuple[Operation, ...]] = []
    for path, data in wanted.items():
        there = under_way[path] if path in under_way else known.get(path)
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
    """Whether ZooKeeper takes these operations, below `base`, in one transaction with the position."""
    # Those of a usual group do: what is in it was weighed.
    if len(operations) <= MOST_OPERATIONS:
        return True
    return POSITION_BYTES + sum(len(base) + size_of(operation) for operation in operations) <= MOST_REQUEST_BYTES


def transactions(parts: Iterable[tuple[Operation, ...]]) -> Iterator[list[Operation]]:
    """Cut changes into transactions that have room for the position node."""
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
    """Return the nodes that a transaction leaves behind, by path; None is a node that it deletes."""
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


def absorb(known: MutableMapping[str, Znode], operations: Iterable[Operation]) -> None:
    """Let what is known follow a transaction that was done."""
    for path, node in left_by(operations).items():
        if node is None:
            del known[path]
        else:
            known[path] = node
