"""Bytes that were written once are read for ever."""

import msgpack
import pytest

from drover.events.codec import command_digest, decode_command, decode_progress, decode_record
from tests.events import golden
from tests.events.command_samples import COMMANDS
from tests.events.kinds import TAGGED_TYPES, tag_of
from tests.events.progress_samples import PROGRESS
from tests.events.samples import EVENTS, RECORDS, batch_of

GOLDEN = golden.read()


def test_every_message_type_has_a_sample() -> None:
    sampled = {type(value) for values in (COMMANDS, EVENTS, RECORDS, PROGRESS) for value in values.values()}
    assert {tag_of(kind) for kind in TAGGED_TYPES if kind not in sampled} == set()


def test_every_sample_has_golden_bytes_and_no_golden_bytes_are_without_a_sample() -> None:
    names = {*COMMANDS, *EVENTS, *RECORDS, *PROGRESS}
    assert set(GOLDEN) == names, "run: python -m tests.events.golden (it adds what is missing and changes nothing)"


def test_no_two_message_types_have_one_tag() -> None:
    tags = [tag_of(kind) for kind in TAGGED_TYPES]
    assert sorted(tags) == sorted(set(tags))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_was_written_once_is_read_for_ever(name: str) -> None:
    kept = GOLDEN[name]
    assert kept.json is not None
    assert decode_command(bytes.fromhex(kept.msgpack)) == COMMANDS[name]
    assert decode_command(kept.json.encode()) == COMMANDS[name]
    assert decode_command(kept.json.encode(), "application/json") == COMMANDS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_an_upgrade_does_not_change_a_digest(name: str) -> None:
    """A retry may arrive after an upgrade: with another digest it would be refused as another command."""
    assert command_digest(COMMANDS[name]).hex() == GOLDEN[name].digest


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_that_was_written_once_is_read_for_ever(name: str) -> None:
    assert decode_record(bytes.fromhex(GOLDEN[name].msgpack)) == batch_of(EVENTS[name])


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_was_written_once_is_read_for_ever(name: str) -> None:
    assert decode_record(bytes.fromhex(GOLDEN[name].msgpack)) == RECORDS[name]


@pytest.mark.parametrize("name", PROGRESS)
def test_a_byte_sample_that_was_written_once_is_read_for_ever(name: str) -> None:
    assert decode_progress(bytes.fromhex(GOLDEN[name].msgpack)) == PROGRESS[name]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_bytes_are_plain_msgpack_with_an_explicit_tag(name: str) -> None:
    content = msgpack.unpackb(bytes.fromhex(GOLDEN[name].msgpack))
    assert isinstance(content.get("type", content.get("kind")), str)
    for event in content.get("events", ()):
        assert isinstance(event["type"], str)
