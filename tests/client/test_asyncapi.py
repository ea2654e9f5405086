"""The topics and their messages as AsyncAPI 3: checked in, valid by the reference schema, and of one piece."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from drover import __version__
from drover.client.asyncapi import asyncapi
from drover.events.commands import TYPES_BY_TOPIC
from drover.events.topics import TopicNames

ROOT = Path(__file__).parents[2]
VENDOR = Path(__file__).parent / "vendor"
REFERENCE = json.loads((VENDOR / "asyncapi-3.0.0.json").read_text(encoding="utf-8"))
DOCUMENT = json.loads(msgspec.json.encode(asyncapi(__version__)))


def faults(document: Any) -> list[str]:
    return [error.message for error in jsonschema.Draft7Validator(REFERENCE).iter_errors(document)]


def test_what_is_checked_in_is_what_the_messages_say() -> None:
    checked_in = json.loads((ROOT / "events" / "asyncapi.json").read_text(encoding="utf-8"))
    assert checked_in == DOCUMENT, "drover schema --asyncapi > events/asyncapi.json"


def test_the_reference_schema_accepts_it() -> None:
    assert faults(DOCUMENT) == []


@pytest.mark.parametrize("part", ["asyncapi", "info"])
def test_the_reference_schema_would_notice_what_is_missing(part: str) -> None:
    assert faults({name: value for name, value in DOCUMENT.items() if name != part})
    assert faults({**DOCUMENT, "operations": {"send": {"action": "publish", "channel": {"$ref": "#/channels/alter"}}}})


def test_the_reference_is_what_was_pinned() -> None:
    files = json.loads((VENDOR / "vendor.lock.json").read_text(encoding="utf-8"))["files"]
    assert {file.name for file in VENDOR.iterdir()} == {*files, "vendor.lock.json"}
    for name, entry in files.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == entry["sha256"]


def test_every_reference_leads_somewhere() -> None:
    for reference in set(re.findall(r'"\$ref":"([^"]+)"', msgspec.json.encode(DOCUMENT).decode())):
        found = DOCUMENT
        for name in reference.removeprefix("#/").split("/"):
            found = found[name]
        assert found


def test_every_command_arrives_on_its_topic() -> None:
    channels = DOCUMENT["channels"]
    for topic, kinds in zip(TopicNames().commands, TYPES_BY_TOPIC, strict=True):
        (channel,) = (one for one in channels.values() if one["address"] == topic)
        assert set(channel["messages"]) == {kind.__name__ for kind in kinds}
    assert {name for name in DOCUMENT["operations"] if name.startswith("send-")} == {"send-events", "send-progress"}
