"""One list of gates: no other module asks the state what keeps the work on a cluster from going on."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.repository import TOP_LEVEL, python_files, text_of

GATED = frozenset({"freeze", "is_migrating", "is_right_cluster", "mismatched_kafka_cluster_id", "closed_windows"})
# They make these fields of events, by definition.
LAYERS = ("drover/state/", "drover/fold/")
ASKING = {
    "drover/reconcile/gates.py": "the gates themselves",
    "drover/decide/alter.py": "refuses the command, so that nothing waits",
    "drover/decide/repair.py": "refuses the command, so that nothing waits",
    "drover/reconcile/identity/reconciler.py": "records which cluster answers",
    "drover/reconcile/starts/limits_reconciler.py": "records when windows close and open",
    "drover/cli/history.py": "shows the fact",
    "drover/client/views/status_rows.py": "shows the fact",
    "agents/state_metrics.py": "shows the fact",
    "projections/documents.py": "shows the fact",
    "projections/feed.py": "weighs the document that shows the fact",
}


def asked_of_a_state(source: str) -> Iterator[str]:
    """Yield the gated fields that are read of something called a state."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in GATED:
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            if name.lstrip("_") == "state":
                yield node.attr


def test_only_the_gates_and_what_shows_facts_ask_what_is_shut() -> None:
    asking = {
        str(path)
        for path in python_files()
        if path.parts[0] in TOP_LEVEL and not str(path).startswith(LAYERS) and any(asked_of_a_state(text_of(path)))
    }
    assert asking == set(ASKING)


@pytest.mark.parametrize("source", ["if state.freeze: ...", "self._state.is_migrating", "view.state.closed_windows"])
def test_the_check_notices_a_field_however_the_state_is_reached(source: str) -> None:
    assert list(asked_of_a_state(source))


def test_the_check_leaves_alone_what_is_no_state() -> None:
    assert not list(asked_of_a_state("gc.freeze(); scope.freeze = True; state.freezes"))
