"""Every rule number and every test vector that the code or the tests cite is told in the documentation."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, python_files, text_of

RULE = re.compile(r"\b(R(?:236|455|435|46|491)-\d+|[XSL]\d{1,2})\b")
VECTOR = re.compile(r"TV[-_](\d{3})\b|tv_(\d{3})(?=_)")
RULES = (ROOT / "docs" / "kip-rules.md").read_text(encoding="utf-8")
VECTORS = (ROOT / "docs" / "test-vectors.md").read_text(encoding="utf-8")
EVENTS = (ROOT / "events" / "README.md").read_text(encoding="utf-8")
TOLD_RULES = frozenset(re.findall(r"^\| ([A-Z]\d+(?:-\d+)?) \|", RULES, flags=re.MULTILINE))
TOLD_VECTORS = frozenset(re.findall(r"^\| TV-(\d{3}) \|", VECTORS, flags=re.MULTILINE))

ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TOLD_LOG_RULES = frozenset(re.findall(r"^\* \*\*(R\d)\*\*", ARCHITECTURE, flags=re.MULTILINE))


def rules_cited(text: str) -> Iterator[str]:
    """Yield rule numbers; what a linter's comment names is not ours."""
    for line in text.splitlines():
        yield from RULE.findall(line.split("# noqa")[0])


def log_rules_cited(text: str) -> Iterable[str]:
    return re.findall(r"\bR\d\b(?!-)", text)


def vectors_cited(text: str) -> Iterator[str]:
    for hyphen, underscore in VECTOR.findall(text):
        yield hyphen or underscore


def unhandled(cited: Callable[[str], Iterable[str]], told: frozenset[str]) -> list[str]:
    """What the Python files cite and no table tells, each with its file."""
    return [f"{path}: {one}" for path in python_files() for one in sorted(set(cited(text_of(path))) - told)]


def test_every_rule_that_is_cited_is_told() -> None:
    assert unhandled(rules_cited, TOLD_RULES) == []


def test_every_vector_that_is_cited_is_told() -> None:
    assert unhandled(vectors_cited, TOLD_VECTORS) == []


def test_every_rule_of_the_log_that_is_cited_is_told() -> None:
    assert unhandled(log_rules_cited, TOLD_LOG_RULES) == []


def test_the_list_of_messages_cites_rules_that_are_told() -> None:
    assert sorted(set(rules_cited(EVENTS)) - TOLD_RULES) == []


def test_the_tables_are_read_as_they_are_meant() -> None:
    assert {"R236-8", "R455-3", "R435-1", "R46-1", "R491-4", "X13", "S10", "L1"} <= TOLD_RULES
    assert {"001", "048", "134", "200", "268"} <= TOLD_VECTORS
    assert set(rules_cited("see R236-8, X13 (S10)  # noqa: S310")) == {"R236-8", "X13", "S10"}
    assert set(vectors_cited("TV-001 test_tv_050_a_reorder")) == {"001", "050"}


PLACE = re.compile(r"`([\w/]+\.py)`(?: \(`(\w+)`\))?")


def places() -> Iterator[tuple[str, str]]:
    """Every file that a row names, with the name in it, if any; a file alone is in the folder of the one before."""
    for row in RULES.splitlines():
        folder = Path()
        for file, name in PLACE.findall(row):
            folder = Path(file).parent if "/" in file else folder
            yield str(folder / Path(file).name), name


@pytest.mark.parametrize(("file", "name"), sorted(set(places())))
def test_every_place_that_the_rules_name_exists(file: str, name: str) -> None:
    assert re.search(rf"\b{name}\b", text_of(Path(file)))
