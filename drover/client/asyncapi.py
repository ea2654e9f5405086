"""PURE: an AsyncAPI 3 document of Drover's topics and their messages.

It describes Drover itself, which receives commands, and sends records of the log and samples. The messages have the
schemas of `drover.client.schema`, which use only features of AsyncAPI's own schema format.
"""

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from drover.client.schema import wire_schema
from drover.events.codec import CONTENT_TYPE_HEADER, JSON_CONTENT_TYPE, MSGPACK_CONTENT_TYPE
from drover.events.commands import TYPES_BY_TOPIC, Command
from drover.events.progress import Progress, ProjectionSample, WorkerSample
from drover.events.records import Record
from drover.events.topics import TopicNames

ASYNCAPI_VERSION = "3.0.0"
KAFKA_BINDING_VERSION = "0.5.0"
_SCHEMAS = "#/components/schemas/"


def asyncapi(version: str) -> dict[str, Any]:
    """Return the document; `version` is Drover's."""
    names = TopicNames()
    on_topic: dict[str, tuple[str, tuple[type, ...]]] = {
        **{
            topic.removeprefix("drover."): (topic, kinds)
            for topic, kinds in zip(names.commands, TYPES_BY_TOPIC, strict=True)
        },
        "events": (names.events, get_args(Record)),
        "progress": (names.progress, (Progress, ProjectionSample, WorkerSample)),
    }
    kinds = [kind for _, of_topic in on_topic.values() for kind in of_topic]
    return {
        "asyncapi": ASYNCAPI_VERSION,
        "info": {
            "title": "Drover",
            "version": version,
            "description": "Moves partition replicas of Kafka clusters. Any client may send commands; the log says "
            "what became of them. events/README.md tells every message, with examples.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": MSGPACK_CONTENT_TYPE,
        "channels": {name: _channel(topic, of_topic) for name, (topic, of_topic) in on_topic.items()},
        "operations": dict(_operation(name, of_topic) for name, (_, of_topic) in on_topic.items()),
        "components": {
            "messages": {kind.__name__: _message(kind) for kind in kinds},
            "schemas": _of_asyncapi(wire_schema()["$defs"]),
        },
    }


def _channel(topic: str, kinds: Iterable[type]) -> dict[str, Any]:
    return {
        "address": topic,
        "messages": {kind.__name__: {"$ref": f"#/components/messages/{kind.__name__}"} for kind in kinds},
        "bindings": {"kafka": {"topic": topic, "bindingVersion": KAFKA_BINDING_VERSION}},
    }


def _operation(name: str, kinds: tuple[type, ...]) -> tuple[str, dict[str, Any]]:
    is_command = issubclass(kinds[0], Command)
    action = "receive" if is_command else "send"
    messages = [{"$ref": f"#/channels/{name}/messages/{kind.__name__}"} for kind in kinds]
    return f"{action}-{name}", {"action": action, "channel": {"$ref": f"#/channels/{name}"}, "messages": messages}


def _message(kind: type) -> dict[str, Any]:
    message: dict[str, Any] = {"name": kind.__name__, "payload": {"$ref": f"{_SCHEMAS}{kind.__name__}"}}
    if not issubclass(kind, Command):
        return message
    types = {"type": "string", "enum": [JSON_CONTENT_TYPE, MSGPACK_CONTENT_TYPE]}
    key = {"type": "string", "description": "The cluster's name; it picks the partition, by murmur2."}
    return {
        **message,
        "title": str(kind.__struct_config__.tag),
        "headers": {"type": "object", "properties": {CONTENT_TYPE_HEADER: types}},
        "bindings": {"kafka": {"key": key, "bindingVersion": KAFKA_BINDING_VERSION}},
    }


def _of_asyncapi(node: Any) -> Any:
    """Point references at the components, and drop discriminators, which AsyncAPI defines differently."""
    if isinstance(node, Mapping):
        return {
            name: value.replace("#/$defs/", _SCHEMAS) if name == "$ref" else _of_asyncapi(value)
            for name, value in node.items()
            if name != "discriminator"
        }
    return [_of_asyncapi(element) for element in node] if isinstance(node, list | tuple) else node
