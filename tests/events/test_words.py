"""What people are told of a message that cannot be read."""

import json
from typing import Any

import msgpack
import pytest

from drover.events.codec import Malformed, decode_command

FREEZE: dict[str, Any] = {"type": "freeze", "id": "f", "cluster": "prod", "by": "ana", "reason": "r"}
ALTER: dict[str, Any] = {
    **FREEZE, "type": "alter", "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}, {"topic": "u"}]
}  # fmt: skip


def told(payload: bytes) -> str:
    found = decode_command(payload)
    assert isinstance(found, Malformed)
    assert "`" not in found.detail
    assert "$" not in found.detail.replace("$)", "").replace(r"\Z", "")
    return found.detail


@pytest.mark.parametrize("as_json", [True, False])
def test_a_name_in_a_map_that_has_the_wrong_form_is_told_with_its_map(as_json: bool) -> None:
    content = {**FREEZE, "type": "limits", "values": {"not a name": 1}}
    said = told(json.dumps(content).encode() if as_json else msgpack.packb(content))
    assert said.startswith("values: the text must have the form ^[A-Za-z]")


def test_names_that_are_bytes_are_told() -> None:
    assert told(msgpack.packb({b"type": b"freeze"})) == "it must be text, and is bytes"


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({**FREEZE, "throtle": 1}, "throtle is no field of it"),
        ({"type": "freeze", "id": "f"}, "the field cluster is missing"),
        ({**FREEZE, "by": 7}, "by: it must be text, and is a whole number"),
        ({**FREEZE, "type": "thaw"}, "type: thaw is none of the values that are known"),
        (ALTER, "partitions, entry 2: the field partition is missing"),
        ({**ALTER, "partitions": 5}, "partitions: it must be a list, and is a whole number"),
        (
            {**ALTER, "partitions": [], "throttle_bytes_per_second": 0},
            "throttle_bytes_per_second: it must be at least 1",
        ),
    ],
)
def test_it_is_said_in_words_and_places(content: dict[str, Any], said: str, *, as_json: bool) -> None:
    payload = json.dumps(content).encode() if as_json else msgpack.packb(content)
    assert told(payload) == said


def test_a_name_that_stands_twice_is_refused() -> None:
    assert told(b'{"reason": "a", ' + json.dumps(FREEZE).encode()[1:]).startswith("reason appears twice")
    inner = json.dumps(ALTER).replace('{"topic": "u"}', '{"topic": "u", "topic": "v", "partition": 0, "replicas": [1]}')
    assert told(inner.encode()).startswith("topic appears twice")


def test_half_of_a_character_is_named() -> None:
    text = json.dumps(FREEZE).replace('"r"', r'"r\ud83d"')
    assert told(text.encode()) == r"\ud83d is half of a character: write both halves, or the character"


@pytest.mark.parametrize(("encoding", "named"), [("utf-8-sig", "UTF-8"), ("utf-16", "UTF-16")])
def test_a_byte_order_mark_is_named(encoding: str, named: str) -> None:
    assert f"byte order mark of {named}" in told(json.dumps(FREEZE).encode(encoding))


def test_what_ends_too_early_is_said_to() -> None:
    assert told(json.dumps(FREEZE).encode()[:-5]) == "it ends too early"
