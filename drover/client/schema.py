"""PURE: the wire contract as JSON Schema (2020-12), generated from the message types, for clients in other languages.

`$defs` holds every command, record, event and sample; a command is one of `commands`. Patterns are those of ECMAScript.
The schema describes the form of messages; events/README.md has the further rules of each command.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

import msgspec

from drover.events.commands import AnyCommand
from drover.events.progress import Progress, ProjectionSample, WorkerSample
from drover.events.records import Record

SCHEMA_ID = "https://drover.invalid/schema/1"


def wire_schema() -> dict[str, Any]:
    """Return the schema."""
    commands = tuple(get_args(AnyCommand))
    records = tuple(get_args(Record))
    samples = (Progress, ProjectionSample, WorkerSample)
    shapes, components = msgspec.json.schema_components((*commands, *records, *samples), ref_template="#/$defs/{name}")
    references = dict(zip((*commands, *records, *samples), shapes, strict=True))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "The messages of Drover",
        "description": "Commands may be JSON or msgpack; records and samples are msgpack with these very fields.",
        "properties": {
            "command": {"oneOf": _of(references, commands)},
            "record": {"oneOf": _of(references, records)},
            "sample": {"oneOf": _of(references, samples)},
        },
        "$defs": _for_clients(components),
    }


def _of(references: dict[Any, Any], kinds: Iterable[Any]) -> list[Any]:
    return [references[kind] for kind in kinds]


def _for_clients(node: Any) -> Any:
    r"""Replace `\Z` by `$` in patterns: ECMAScript has no `\Z`, and its `$` matches only at the very end.

    Descriptions lose their indentation, which Python 3.13 takes away by itself.
    """
    if isinstance(node, dict):
        return {name: _TEXTS.get(name, _for_clients)(value) for name, value in node.items()}
    if isinstance(node, list | tuple):
        return [_for_clients(element) for element in node]
    return node


def _pattern(value: Any) -> Any:
    return value.replace(r"\Z", "$") if isinstance(value, str) else _for_clients(value)


def _description(value: Any) -> Any:
    return inspect.cleandoc(value) if isinstance(value, str) else _for_clients(value)


_TEXTS: Mapping[str, Callable[[Any], Any]] = {"pattern": _pattern, "description": _description}
