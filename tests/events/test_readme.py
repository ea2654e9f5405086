"""The list of every message is complete, and its examples are messages."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from drover.events.base import Event, PartitionEvent
from drover.events.codec import decode_command
from drover.events.commands import TYPES_BY_TOPIC, Alter, AnyCommand, Command
from drover.events.progress import Sample
from drover.events.records import AnyEvent, Record
from drover.events.refusals import RefusalCode
from drover.events.topics import TopicNames
from tests.events.kinds import COMMAND_TYPES, EVENT_TYPES, NAMED_PARTS, RECORD_TYPES, SAMPLE_TYPES, TAGGED_TYPES, tag_of

README = Path(__file__).parents[2] / "events" / "README.md"
EVERY_SECTION: dict[str, type[msgspec.Struct]] = {**{tag_of(kind): kind for kind in TAGGED_TYPES}, **NAMED_PARTS}


def sections() -> dict[str, str]:
    """Return the text below each heading that is a message's tag."""
    parts = re.split(r"^#{2,3} (.*)$", README.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {title.strip("`"): text for title, text in zip(parts[1::2], parts[2::2], strict=True) if title[0] == "`"}


def family(title: str) -> str:
    """Return the text between a family's heading and its first message."""
    text = README.read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n")[1].split("\n##")[0]


SECTIONS = sections()


def test_every_message_has_one_section_and_no_section_is_left_over() -> None:
    assert set(SECTIONS) == set(EVERY_SECTION)


def test_the_table_says_of_each_command_topic_which_commands_it_holds() -> None:
    text = README.read_text(encoding="utf-8")
    for topic, types in zip(TopicNames().commands, TYPES_BY_TOPIC, strict=True):
        (row,) = re.findall(rf"^\| `{re.escape(topic)}` \|.*$", text, flags=re.MULTILINE)
        assert set(re.findall(r"\[`([\w-]+)`\]", row)) == {tag_of(kind) for kind in types}


@pytest.mark.parametrize("name", EVERY_SECTION)
def test_a_section_names_every_field_and_no_other(name: str) -> None:
    kind = EVERY_SECTION[name]
    common: set[str] = set()
    if issubclass(kind, Command):
        common = set(Command.__struct_fields__)
    elif issubclass(kind, PartitionEvent):
        common = set(PartitionEvent.__struct_fields__)
    elif issubclass(kind, Event):
        common = set(Event.__struct_fields__)
    named = re.findall(r"^\| `(\w+)` \|", SECTIONS[name], flags=re.MULTILINE)
    assert named == [field for field in kind.__struct_fields__ if field not in common]


def test_every_code_of_a_refusal_is_named() -> None:
    (codes,) = re.findall(r"^\| `code` \| text \| one of (.*) \|$", SECTIONS["refusal"], flags=re.MULTILINE)
    assert re.findall(r"`([a-z-]+)`", codes) == [code.value for code in RefusalCode]


def test_fields_that_a_whole_family_has_are_named_once() -> None:
    assert all(f"| `{field}` |" in family("Commands") for field in Command.__struct_fields__)
    assert all(f"`{field}`" in family("Events") for field in PartitionEvent.__struct_fields__)


@pytest.mark.parametrize("title", ["Commands", "Records of the log", "Parts of a batch", "Events", "Telemetry"])
def test_every_family_says_who_writes_and_who_reads_it(title: str) -> None:
    assert re.search(r"Writer.*Reader|Writer and reader", family(title), flags=re.DOTALL)


@pytest.mark.parametrize("name", EVERY_SECTION)
def test_the_example_is_such_a_message(name: str) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", SECTIONS[name], flags=re.DOTALL)
    kind = EVERY_SECTION[name]
    union: object = kind
    if kind in COMMAND_TYPES:
        union = AnyCommand
    elif kind in EVENT_TYPES:
        union = AnyEvent
    elif kind in RECORD_TYPES:
        union = Record
    elif kind in SAMPLE_TYPES:
        union = Sample
    assert type(msgspec.json.decode(example, type=union)) is kind
    known = {*kind.__struct_fields__, kind.__struct_config__.tag_field}
    assert set(json.loads(example)) <= known


@pytest.mark.parametrize("language", ["sh", "python", "js", "java", "go"])
def test_every_language_sends_the_same_command(language: str) -> None:
    text = README.read_text(encoding="utf-8").split("\n## From other languages\n")[1].split("\n## ")[0]
    (example,) = re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)
    (command,) = re.findall(r"""['"`\s](\{"type".*\}\]\})""", example, flags=re.DOTALL)
    alter = decode_command(command.encode(), "application/json")
    assert isinstance(alter, Alter)
    assert (alter.id, alter.cluster, alter.by) == ("friday-1", "prod", "ann")
    assert alter.partitions[0].replicas == (4, 2, 3)
    assert all(word in example for word in ("drover.alter", "prod", "content-type", "application/json"))
