"""One transaction as ZooKeeper's wire has it, in the shape in which kazoo's connection takes a request.

kazoo makes an object of every operation and of every answer, in its own thread, which shares the interpreter with ours.
Here the bytes are made at once before kazoo gets them, and of the answers only the first is decoded unless it is an
error, since a transaction is done as a whole or not at all.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.protocol.serialization import Create as CreateRequest
from kazoo.protocol.serialization import Delete as DeleteRequest
from kazoo.protocol.serialization import SetData as SetRequest
from kazoo.protocol.serialization import Transaction
from kazoo.security import ACL

from drover.projections.store import Create, Operation, Set

# The header of each operation (its kind, whether it is the last, its error) and the length of the path behind it.
_BEGINNING = struct.Struct("!i?ii")
_HEADER = struct.Struct("!i?i")
_NUMBER = struct.Struct("!i")
_FAILED = -1
_END = _HEADER.pack(-1, True, -1)


class Multi:
    """A transaction on its way; `taken` is called in kazoo's thread when it takes the bytes to send them."""

    type = Transaction.type

    def __init__(self, data: bytes, taken: Callable[[], None]) -> None:
        self._data = data
        self._taken = taken

    def serialize(self) -> bytes:
        """Return the bytes to send after the request's header."""
        self._taken()
        return self._data

    @staticmethod
    def deserialize(data: Any, offset: int) -> list[Any]:
        """Return an empty list on success, else kazoo's result of each operation: an exception for each that failed."""
        kind, _, _ = _HEADER.unpack_from(data, offset)
        if kind != _FAILED:
            return []
        results: list[Any] = Transaction.deserialize(data, offset)
        return results


def encode(chroot: str, operations: Sequence[Operation], acl: bytes) -> bytes:
    """Encode a transaction; `acl`, from `encode_acl`, is for every node that it creates.

    Nodes are persistent, without a sequence number; paths are below `chroot`.
    """
    parts: list[bytes] = []
    add = parts.append
    beginning, number = _BEGINNING.pack, _NUMBER.pack
    for operation in operations:
        path = (chroot + operation.path).encode()
        if isinstance(operation, Set):
            add(beginning(SetRequest.type, False, -1, len(path)))
            add(path)
            add(number(len(operation.data)))
            add(operation.data)
            add(number(operation.version))
        elif isinstance(operation, Create):
            add(beginning(CreateRequest.type, False, -1, len(path)))
            add(path)
            add(number(len(operation.data)))
            add(operation.data)
            add(acl)
        else:
            add(beginning(DeleteRequest.type, False, -1, len(path)))
            add(path)
            add(number(operation.version))
    add(_END)
    return b"".join(parts)


def encode_acl(acl: Sequence[ACL]) -> bytes:
    """Encode the end of every create: the ACL, and the flags of a persistent node."""
    request = CreateRequest("", b"", acl, 0).serialize()
    # In front of it are the lengths of the empty path and data.
    return bytes(request[2 * _NUMBER.size :])
