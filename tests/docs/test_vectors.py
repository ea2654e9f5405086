"""Every test vector is cited by a test, and names only rules that are told."""

import re

from tests.architecture.repository import python_files, text_of
from tests.architecture.test_rules import TOLD_RULES, TOLD_VECTORS, VECTORS, rules_cited

# In words and in names of tests, of which one may be about two: `tv_062_and_063`. A range names all that are between.
CITED = re.compile(r"TV[-_](\d{3})\b(?: to TV-(\d{3})\b)?|tv_(\d{3})(?:_and_(\d{3}))?(?=_)")


def cited(text: str) -> set[str]:
    """Return the numbers of the vectors that a text cites."""
    numbers: set[str] = set()
    for first, last, named, second in CITED.findall(text):
        if last:
            numbers |= {f"{number:03}" for number in range(int(first), int(last) + 1)}
        numbers |= {number for number in (first, named, second) if number}
    return numbers


def test_every_vector_is_cited_by_a_test() -> None:
    # What tests of documents say of vectors is about no case.
    tests = (
        path for path in python_files() if path.parts[0] == "tests" and path.parts[1] not in {"architecture", "docs"}
    )
    assert sorted(TOLD_VECTORS.difference(*(cited(text_of(path)) for path in tests))) == []


def test_every_rule_that_the_vectors_name_is_told() -> None:
    # An L before a number is a leader there.
    assert sorted({rule for rule in rules_cited(VECTORS) if rule[0] != "L"} - TOLD_RULES) == []


def test_citations_are_read_as_they_are_meant() -> None:
    assert cited("TV-001, test_tv_062_and_063_a_move") == {"001", "062", "063"}
    assert cited("TV-141 to TV-143") == {"141", "142", "143"}
