"""The glossary's words are the code's words."""

import re

from tests.architecture.repository import TOP_LEVEL, python_files, text_of
from tests.docs.shell_blocks import ROOT

DOCS = ROOT / "docs"
COMMON = (DOCS / "glossary.md").read_text(encoding="utf-8")
# Words of one subject are in its guide.
GUIDES = tuple(path.read_text(encoding="utf-8").partition("\n## Words\n")[2] for path in sorted(DOCS.glob("*.md")))
WORDS = "\n".join((COMMON, *GUIDES))
# What everything uses must stay few enough to be read in one go.
MOST_COMMON_WORDS = 57
CODE = "\n".join(text_of(path) for path in python_files() if path.parts[0] in TOP_LEVEL)


def first_cells(text: str) -> list[str]:
    rows = re.findall(r"^\| (?!word \||---)([^|]+) \|", text, flags=re.MULTILINE)
    return [cell for row in rows for cell in row.split(", ")]


def test_few_words_are_used_everywhere() -> None:
    assert len(first_cells(COMMON)) <= MOST_COMMON_WORDS


def test_no_word_has_two_meanings() -> None:
    words = first_cells(WORDS)
    assert len(words) > 40
    assert len(words) == len(set(words))


def test_the_code_uses_every_word() -> None:
    spoken = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s_]+", " ", CODE).lower()
    assert [word for word in first_cells(WORDS) if not re.search(rf"\b{word[:-1]}", spoken)] == []
