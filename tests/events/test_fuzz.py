"""Hostile input: whatever arrives on a command topic is read or refused, and never raises."""

import json

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drover.events.codec import (
    MAX_COMMAND_BYTES,
    Malformed,
    UndecodableError,
    decode_command,
    decode_progress,
    decode_record,
)
from drover.events.commands import Command
from tests.events import golden
from tests.events.command_samples import COMMANDS
from tests.growth import processor_seconds

VALID = [bytes.fromhex(golden.read()[name].msgpack) for name in COMMANDS]
VALID += [text.encode() for name in COMMANDS if (text := golden.read()[name].json) is not None]
CONTENT_TYPES = st.sampled_from([None, "application/json", "application/msgpack", "text/plain", ""])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = sorted({field for command in COMMANDS.values() for field in command.__struct_fields__} | {"type"})


def check(payload: bytes, content_type: str | None = None) -> Command | Malformed:
    """Decode; whatever comes must be a command or a refusal with words."""
    decoded = decode_command(payload, content_type)
    assert isinstance(decoded, Command) or decoded.detail
    return decoded


@settings(max_examples=500)
@given(st.binary(max_size=400), CONTENT_TYPES)
def test_random_bytes_are_refused_and_never_raise(payload: bytes, content_type: str | None) -> None:
    check(payload, content_type)


@settings(max_examples=500)
@given(st.sampled_from(VALID), st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=6))
def test_damaged_commands_are_read_or_refused_and_never_raise(payload: bytes, damage: list[tuple[int, int]]) -> None:
    damaged = bytearray(payload)
    for place, value in damage:
        damaged[place % len(damaged)] = value
    check(bytes(damaged))


@settings(max_examples=300)
@given(st.sampled_from(VALID), st.integers(0, 2000))
def test_cut_commands_are_refused(payload: bytes, end: int) -> None:
    assert isinstance(check(payload[: end % len(payload)]), Malformed)


@settings(max_examples=500)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES, max_size=8))
def test_wrong_types_in_known_fields_are_refused_and_never_raise(content: dict[str, object]) -> None:
    check(json.dumps(content).encode())


@settings(max_examples=300)
@given(st.binary(max_size=300))
def test_random_bytes_in_the_log_stop_the_reader_in_one_way_only(payload: bytes) -> None:
    with pytest.raises(UndecodableError):
        decode_record(payload)
    assert decode_progress(payload) is None


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b'{"type":' + b"[" * 200_000, id="open lists"),
        pytest.param(b"[" * 500_000 + b"]" * 500_000, id="lists"),
        pytest.param(b'{"a":' * 150_000 + b"1" + b"}" * 150_000, id="maps"),
        pytest.param(b'{"type":"freeze","id":"a","more":' + b"[" * 500_000 + b"]" * 500_000 + b"}", id="in a field"),
        pytest.param(b"\x91" * 1_000_000 + b"\xc0", id="msgpack lists"),
        pytest.param(b"\x81\xa1a" * 300_000 + b"\xc0", id="msgpack maps"),
        pytest.param(b"\x82\xa4type\xa6freeze\xa4more" + b"\x91" * 900_000 + b"\xc0", id="msgpack in a field"),
        pytest.param(b"\xdd\xff\xff\xff\xff", id="a list that claims 4 billion entries"),
        pytest.param(b"\xdf\xff\xff\xff\xff", id="a map that claims 4 billion entries"),
        pytest.param(b"\xc6\xff\xff\xff\xff", id="4 GiB of bytes announced"),
        pytest.param(b'{"type":"freeze","id":' + b"9" * 1_000_000 + b"}", id="a number of a million digits"),
    ],
)
def test_deep_and_lying_payloads_are_refused(payload: bytes) -> None:
    assert len(payload) <= MAX_COMMAND_BYTES
    assert isinstance(check(payload), Malformed)


def test_finding_a_name_that_appears_twice_costs_the_names_and_not_the_square_of_them() -> None:
    def seconds_for(count: int) -> float:
        names = "".join(f'"{number:x}":0,' for number in range(count))
        payload = f'{{{names}"last":0,"last":0}}'.encode()
        refused = check(payload)
        assert isinstance(refused, Malformed)
        assert refused.detail == "last appears twice in one map: which one was meant?"
        return processor_seconds(lambda: check(payload))

    assert seconds_for(90_000) < 40 * seconds_for(9_000)


def test_the_largest_plan_is_read() -> None:
    partitions = [{"topic": "t", "partition": number, "replicas": [1, 2, 3]} for number in range(10_000)]
    content = {"type": "alter", "id": "a", "cluster": "local", "by": "a", "reason": "b", "partitions": partitions}
    payload: bytes = msgpack.packb(content)
    assert len(payload) <= MAX_COMMAND_BYTES
    assert isinstance(check(payload), Command)


def test_what_is_too_long_is_not_even_looked_at() -> None:
    found = check(b"{" * (MAX_COMMAND_BYTES + 1))
    assert isinstance(found, Malformed)
    assert (found.id, found.cluster) == (None, None)
