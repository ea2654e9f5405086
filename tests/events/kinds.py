"""Every message type of the contract, found by its union, so that a new one cannot be forgotten."""

from enum import Enum
from typing import Any, get_args

import msgspec

from drover.events import commands, progress, records
from drover.events.refusals import Refusal

COMMAND_TYPES: tuple[type[msgspec.Struct], ...] = get_args(commands.AnyCommand)
EVENT_TYPES: tuple[type[msgspec.Struct], ...] = get_args(records.AnyEvent)
RECORD_TYPES: tuple[type[msgspec.Struct], ...] = get_args(records.Record)
SAMPLE_TYPES: tuple[type[msgspec.Struct], ...] = get_args(progress.Sample)
TAGGED_TYPES: tuple[type[msgspec.Struct], ...] = (*COMMAND_TYPES, *EVENT_TYPES, *RECORD_TYPES, *SAMPLE_TYPES)
# Messages inside messages that have a section of their own in the list.
NAMED_PARTS: dict[str, type[msgspec.Struct]] = {
    "outcome": records.Outcome,
    "refusal": Refusal,
    "cursor": records.Cursor,
    "cancelled-partitions": records.CancelledPartitions,
}


def tag_of(kind: type[msgspec.Struct]) -> str:
    """Return the string by which a reader knows the type."""
    tag = kind.__struct_config__.tag
    assert isinstance(tag, str), f"{kind.__name__} has no explicit string tag"
    return tag


def with_independent_codec(value: object) -> Any:
    """Turn a message into what a codec without types sees: maps, lists, text, numbers and bytes."""
    return _with_lists(msgspec.to_builtins(value, builtin_types=(bytes,)))


def _with_lists(value: object) -> object:
    match value:
        case dict():
            return {name: _with_lists(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_with_lists(inner) for inner in value]
        case _:
            return value


def members(kind: type[Enum]) -> tuple[str, ...]:
    """Return the values of an enumeration."""
    return tuple(str(member.value) for member in kind)
