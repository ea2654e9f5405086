"""The wire contract as JSON Schema: checked in, valid by the meta-schema, and true of every message."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from drover.client.schema import wire_schema
from drover.events.codec import decode_command
from drover.events.commands import AnyCommand
from tests.events.progress_samples import PROGRESS
from tests.events.samples import EVENTS, RECORDS

SCHEMA = Path(__file__).parents[2] / "events" / "schema.json"
GOLDEN = json.loads((Path(__file__).parents[1] / "events" / "golden.json").read_text(encoding="utf-8"))
COMMANDS = [entry["json"] for entry in GOLDEN.values() if isinstance(entry, dict) and "json" in entry]


def judge(kind: str, message: Any) -> list[str]:
    schema = wire_schema()
    only = {"$ref": f"#/properties/{kind}", "$defs": schema["$defs"], "properties": schema["properties"]}
    return [error.message for error in jsonschema.Draft202012Validator(only).iter_errors(message)]


def plain(message: object) -> Any:
    return json.loads(msgspec.json.encode(message))


def test_what_is_checked_in_is_what_the_messages_say() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == plain(wire_schema()), "drover schema > events/schema.json"


def test_the_reference_schema_accepts_it_and_ecmascript_its_patterns() -> None:
    jsonschema.Draft202012Validator.check_schema(plain(wire_schema()))
    patterns = set(re.findall(r'"pattern":"([^"]+)"', msgspec.json.encode(wire_schema()).decode()))
    assert len(patterns) > 1
    assert not [pattern for pattern in patterns if re.search(r"\\[ZAz]", pattern)]


def test_every_golden_command_is_valid() -> None:
    assert len(COMMANDS) > 5
    for text in COMMANDS:
        assert isinstance(decode_command(text.encode()), AnyCommand)
        assert judge("command", json.loads(text)) == []


@pytest.mark.parametrize("name", RECORDS)
def test_every_record_is_valid(name: str) -> None:
    assert judge("record", plain(RECORDS[name])) == []


@pytest.mark.parametrize("name", PROGRESS)
def test_every_sample_is_valid(name: str) -> None:
    assert judge("sample", plain(PROGRESS[name])) == []


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_has_its_definition(name: str) -> None:
    event = EVENTS[name]
    definition = wire_schema()["$defs"][type(event).__name__]
    assert definition["properties"]["type"]["enum"] == [event.__struct_config__.tag]


@pytest.mark.parametrize("field", ["cluster", "id", "reason"])
def test_a_command_that_lacks_something_is_not_valid(field: str) -> None:
    command = {"type": "freeze", "id": "f", "cluster": "prod", "by": "ann", "reason": "why"}
    assert judge("command", command) == []
    assert judge("command", {name: value for name, value in command.items() if name != field})
    assert judge("command", {**command, "misspelt": 1})
    assert judge("command", {**command, "cluster": "Prod\n"})
