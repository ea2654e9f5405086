"""The glossary's words are the code's words, and names that it says are only on the wire are there."""

import re

from tests.architecture.repository import TOP_LEVEL, python_files, text_of
from tests.docs.shell_blocks import ROOT

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
WORDS, _, WIRE = GLOSSARY.partition("## Names that never change")
CODE = "\n".join(text_of(path) for path in python_files() if path.parts[0] in TOP_LEVEL)


def first_cells(text: str) -> list[str]:
    rows = re.findall(r"^\| (?!word \||there \||---)([^|]+) \|", text, flags=re.MULTILINE)
    return [cell for row in rows for cell in row.split(", ")]


def test_no_word_has_two_meanings() -> None:
    words = first_cells(WORDS)
    assert len(words) > 40
    assert len(words) == len(set(words))


def test_the_code_uses_every_word() -> None:
    spoken = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s_]+", " ", CODE).lower()
    assert [word for word in first_cells(WORDS) if not re.search(rf"\b{word[:-1]}", spoken)] == []


def test_the_wire_has_every_name_that_is_only_there() -> None:
    names = re.findall(r"`([\w-]+)`", "".join(first_cells(WIRE)))
    assert len(names) > 5
    assert [name for name in names if not re.search(rf'"{name}"|\b{name}: ', CODE)] == []
