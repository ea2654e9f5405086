"""PURE: the encoded pieces of documents, and their sizes in bytes.

`Entries` keep the order in which they were added, `Members` that of their keys. Changing a piece has a constant cost;
joining the pieces is cheap.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from drover.events.partitions import TopicPartition

Key = TypeVar("Key", bound=Any)


@dataclass(slots=True)
class Entries:
    """The encoded entries of a plan document in their order, and their size in bytes."""

    by_key: dict[TopicPartition, bytes] = field(default_factory=dict)
    size: int = 0

    def put(self, key: TopicPartition, entry: bytes) -> None:
        """Add an entry at the end, or replace one in its place."""
        self.size += len(entry) + 1 - self._size_of(key)
        self.by_key[key] = entry

    def drop(self, key: TopicPartition) -> None:
        """Remove an entry."""
        self.size -= self._size_of(key)
        self.by_key.pop(key, None)

    def _size_of(self, key: TopicPartition) -> int:
        before = self.by_key.get(key)
        return 0 if before is None else len(before) + 1


@dataclass(slots=True)
class Members(Generic[Key]):
    """The encoded members of an object or a list in the order of their keys, and their size in bytes."""

    by_key: dict[Key, bytes] = field(default_factory=dict)
    size: int = 0
    _keys: list[Key] = field(default_factory=list)

    def put(self, key: Key, member: bytes) -> None:
        """Add a member, or replace the one of this key."""
        before = self.by_key.get(key)
        if before is None:
            insort(self._keys, key)
            self.size += len(member) + 1
        else:
            self.size += len(member) - len(before)
        self.by_key[key] = member

    def drop(self, key: Key) -> None:
        """Remove the member of a key, if there is one."""
        before = self.by_key.pop(key, None)
        if before is not None:
            del self._keys[bisect_left(self._keys, key)]
            self.size -= len(before) + 1

    def joined(self) -> bytes:
        """Return all members, joined by commas."""
        return b",".join(map(self.by_key.__getitem__, self._keys))
