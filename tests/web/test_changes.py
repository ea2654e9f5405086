"""A difference, applied, gives the document that it was made for; whatever the documents are."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drover.web.changes import apply, difference

KEYS = st.sampled_from(["orders:0", "orders:1", "orders:2", "payments:0", "<b>"])
ROWS = st.fixed_dictionaries({"key": KEYS, "done": st.integers(0, 3)})
TABLES = st.lists(ROWS, max_size=5, unique_by=lambda row: row["key"])
DOCUMENTS = st.dictionaries(
    st.sampled_from(["moves", "plans", "head", "page"]),
    st.one_of(TABLES, st.integers(0, 3), st.none(), st.just({"cluster": "prod"})),
)


@given(DOCUMENTS, DOCUMENTS)
def test_a_difference_turns_one_document_into_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert apply(before, difference(before, after)) == after


@given(DOCUMENTS)
def test_equal_documents_have_no_difference(document: dict[str, Any]) -> None:
    assert difference(document, dict(document)) == {}


def test_only_the_rows_that_changed_are_sent() -> None:
    before = {"moves": [{"key": "a", "done": 1}, {"key": "b", "done": 1}], "page": 1}
    after = {"moves": [{"key": "a", "done": 1}, {"key": "b", "done": 2}], "page": 1}
    assert difference(before, after) == {"tables": {"moves": {"put": [{"key": "b", "done": 2}]}}}
    gone = {"moves": [{"key": "b", "done": 1}], "page": 1}
    assert difference(before, gone) == {"tables": {"moves": {"order": ["b"]}}}
