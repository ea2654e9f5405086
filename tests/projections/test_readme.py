"""projections/README.md lists every kind of document, with an example that is one."""

import json
import re
from pathlib import Path

import pytest

from drover.events.queue_entries import QueueEntryAdded
from drover.events.reassignments import Blocker, ReassignmentBlocked
from drover.events.records import AnyEvent
from drover.events.refusals import Refusal, RefusalCode
from drover.projections import documents
from drover.projections.commands import MOST_BYTES, MOST_PARTITIONS, Fault, error_document
from drover.projections.documents import DOCUMENTS, PLAN_LIMIT_BYTES
from drover.projections.ownership import PARENTS, PROJECTED, SHARED, SUBTREES
from drover.projections.position import POSITION_PATH, decode_position
from drover.projections.store import Examined
from tests.events.healing_samples import HEALING
from tests.projections.logs import accepted, opened, queued, sent, viewed
from tests.projections.samples import BALANCING, BLACKLISTED, CANCELLED, DEMOTED, FAILED, FROZEN

TEXT = (Path(__file__).parents[2] / "projections" / "README.md").read_text(encoding="utf-8")
ROWS = {
    row[0]: row[1:]
    for row in re.findall(r"^\| `([^`|]+)`[^|]*\| ([^|]+) \| `([^`]+)` \| ([^|]+) \|", TEXT, flags=re.MULTILINE)
}
SECTIONS = dict(re.findall(r"^### `([^`]+)`\n(.*?)(?=^##|\Z)", TEXT, flags=re.MULTILINE | re.DOTALL))


def everything() -> dict[str, bytes]:
    """A tree with a document of every kind."""
    blocked = ReassignmentBlocked(
        cluster="prod", topic="orders", partition=0, why=Blocker.DEAD_DESTINATION, detail="broker 4 is dead"
    )
    waiting = QueueEntryAdded(cluster="prod", topic="orders", partition=3, id="move-2", plan="later", target=(5, 6))
    events: tuple[AnyEvent, ...] = (
        opened(), opened("later"), queued(0), queued(1), sent(0), accepted(0), blocked, waiting,
        FROZEN, FAILED, BLACKLISTED, DEMOTED, BALANCING, *CANCELLED,
        HEALING["heal-planned"], HEALING["heal-chunk-planned"],
    )  # fmt: skip
    view = viewed(*events)
    return {path: data for path, data in documents.documents(view, view.everything()) if data}


def row_of(path: str) -> str:
    """Find the row of a path of the tree."""
    patterns = {row: re.sub(r"<(?!default)[a-z]+>", "[^/]+", row) for row in ROWS}
    found = [row for row, pattern in patterns.items() if re.fullmatch(pattern, path)]
    return found[0] if found else ""


def test_every_kind_of_document_has_a_row_and_no_row_is_made_up() -> None:
    functions = {kind.__name__ for kind in DOCUMENTS}
    assert {row[1] for row in ROWS.values()} - {"projections/tree.py"} == functions
    pieces = re.compile(r"/drover/plans/[^/]+/\d+")
    shown = {row_of(path) for path in everything() if not pieces.fullmatch(path)}
    assert "" not in shown
    assert shown == {row for row, (_, writer, _) in ROWS.items() if writer in functions}


def test_the_owners_are_those_of_the_code() -> None:
    assert {row for row, (_, _, owner) in ROWS.items() if owner == "shared"} == set(SHARED)
    alone = {row for row, (_, _, owner) in ROWS.items() if owner == "Drover"} - {POSITION_PATH}
    assert all(row in PROJECTED or any(row.startswith(f"{top}/") for top in SUBTREES) for row in alone)
    assert set(ROWS) & set(PARENTS) == {"/admin/reassignment_requests"}


@pytest.mark.parametrize("row", [row for row in ROWS if row != "/admin/reassignment_requests"])
def test_every_node_has_an_example_with_the_fields_it_has(row: str) -> None:
    (text,) = re.findall(r"```json\n(.*?)```", SECTIONS[row], flags=re.DOTALL)
    example = json.loads(text)
    compact = json.dumps(example, sort_keys=True, separators=(",", ":"))
    assert compact == re.sub(r"\n ?", "", text), "the example is not canonical"
    if row == POSITION_PATH:
        position = decode_position(compact.encode())
        assert position is not None
        assert set(example) == set(position.__struct_fields__)
        return
    documents_of_row = [json.loads(data) for path, data in everything().items() if row_of(path) == row]
    assert any(fields_of(example) <= fields_of(each) for each in documents_of_row), fields_of(example)


def fields_of(value: object) -> set[str]:
    """Name every key that is not a topic's, a broker's or a partition's number, with what it is inside of."""
    match value:
        case dict():
            keys = {str(key) for key in value if not str(key).isdecimal()}
            return keys | {f"{key}.{inner}" for key, each in value.items() for inner in fields_of(each)}
        case list() if value and isinstance(value[0], dict):
            return set[str]().union(*map(fields_of, value))
        case _:
            return set()


def test_the_answer_to_a_request_has_the_fields_of_the_example() -> None:
    (text,) = re.findall(r"^## Requests\n.*?```json\n(.*?)```", TEXT, flags=re.MULTILINE | re.DOTALL)
    example = json.loads(text)
    refusal = Refusal(code=RefusalCode.INVALID_REPLICA_ASSIGNMENT, detail="why", topic="orders", partition=1)
    node = Examined(b"", version=0, czxid=7, mzxid=8, mtime_ms=9)
    answer = json.loads(error_document(node, Fault(RefusalCode.DENIED, "why"), 1, [refusal]))
    assert fields_of(example) == fields_of(answer)
    assert [example[name] for name in ("czxid", "mzxid")] == [answer[name] for name in ("czxid", "mzxid")]
    for limit in (MOST_PARTITIONS, MOST_BYTES):
        assert f"{limit:,}" in TEXT


def test_the_limits_are_those_of_the_code() -> None:
    assert f'"limit_bytes":{PLAN_LIMIT_BYTES}' in TEXT
    for limit in (documents.PLAN_LIMIT_BYTES, documents.TOPIC_LIMIT_BYTES, documents.CHUNK_LIMIT_BYTES):
        assert f"{limit:,}" in TEXT
    assert f"{documents.SMALL_LIMIT_BYTES:,}" in TEXT
