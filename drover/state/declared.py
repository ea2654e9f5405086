"""Fields of a cluster's state, each declared once: copy, hash, snapshot and comparison are derived from it.

A capability declares its slice of the state as a dataclass of `recorded` fields, which the log determines, and `index`
fields, which are derived from the recorded ones. A recorded field at its default is not hashed, so logs from before it
existed keep their hashes.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec

_RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class Recorded:
    """How a field of the state is hashed, kept in snapshots and shown to people.

    `name` is the field's name in hashes and snapshots, and never changes; `hashed` is false for a field that snapshots
    keep and no hash covers. `content` returns the hashed form of a value. `key` returns an entry's key from the entry,
    for maps of which snapshots keep only the entries. `described_as` are the words for an entry, for its coming and for
    its going; a value that is not a map has only the first.
    """

    name: str
    content: Callable[[Any], object]
    hashed: bool = True
    key: Callable[[Any], object] | None = None
    described_as: tuple[str, ...] = ()


def recorded(
    name: str,
    default: Any = None,
    *,
    factory: Callable[[], Any] | None = None,
    content: Callable[[Any], object] = lambda value: value,
    hashed: bool = True,
    key: Callable[[Any], object] | None = None,
    described_as: tuple[str, ...] = (),
) -> Any:
    """Declare a field that the log determines; see `Recorded`."""
    metadata = {_RECORDED: Recorded(name, content, hashed, key, described_as)}
    if factory is not None:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def index(factory: Callable[[], Any]) -> Any:
    """Declare a field that is derived from recorded ones: not hashed, not in snapshots, not compared.

    An index that every event would change is built on its first use, since a reader of the log may never use it.
    """
    return field(default_factory=factory)


@dataclass(eq=False)
class ClusterSlice:
    """The base of every slice of a cluster's state, with the cluster's name.

    `rebuild_indexes` makes the slice's `index` fields from its recorded ones, after a snapshot was read.
    """

    name: str

    def rebuild_indexes(self) -> None:
        """Rebuild the indexes; a slice that has any extends this."""


def declarations(kind: type[ClusterSlice]) -> Mapping[str, Recorded]:
    """Return the recorded fields of a state by attribute name, in the order of declaration."""
    return {
        attribute.name: attribute.metadata[_RECORDED] for attribute in fields(kind) if _RECORDED in attribute.metadata
    }


def copy_of(value: Any) -> Any:
    """Return an independent copy of a field's value; the entries of maps, sets and indexes are frozen and shared."""
    copy = getattr(value, "copy", None)
    return value if copy is None else copy()


# -- the hashed content of a value


def items_in_order(value: Mapping[Any, Any]) -> object:
    """Entries with their keys, in their order, which is part of the state."""
    return list(value.items())


def items_by_key(value: Mapping[Any, Any]) -> object:
    """Entries with their keys, sorted: their order is not part of the state."""
    return sorted(value.items())


def values_in_order(value: Mapping[Any, Any]) -> object:
    """Entries that hold their keys, in their order, which is part of the state."""
    return list(value.values())


def values_by_key(value: Mapping[Any, Any]) -> object:
    """Entries that hold their keys, sorted by key."""
    return [value[name] for name in sorted(value)]


def not_default(value: msgspec.Struct) -> dict[str, object]:
    """Return the fields of a struct that are not equal to their defaults, by name."""
    return {
        name: content
        for name, attribute, default in _defaults(type(value))
        if (content := getattr(value, attribute)) != default
    }


@functools.cache
def _defaults(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, object], ...]:
    """Return wire name, attribute and default of each field; cached, because msgspec resolves annotations slowly."""
    return tuple((item.encode_name, item.name, item.default) for item in msgspec.structs.fields(kind))


def items_not_default(value: Mapping[Any, msgspec.Struct]) -> object:
    """Entries with their keys, sorted, each without the fields at their defaults."""
    return [(key, not_default(entry)) for key, entry in sorted(value.items())]
