"""What is written of an audit: the page, CSV, Parquet and tables, with hostile words in them."""

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from drover.cli import audit_view
from drover.shard.fold import Rule
from drover.shard.inspection import Finding, Summary
from spark.audit import files, plots
from spark.audit import page as pages
from spark.audit.files import csv_text, write_csv, write_parquet
from spark.audit.page import page
from spark.audit.parts import ShardPart
from spark.audit.report import Report
from spark.audit.sections import SECTIONS
from spark.audit.verifying import Found, Verification

BEGAN_MS = 1_790_000_000_000
HOSTILE = "<script>alert(1)</script>\"'&{{ 7 * 7 }}<img src=https://example.org/x onerror=x>$x$"
TOTALS: dict[str, int | None] = {
    "commands": 1234,
    "bytes_copied": 3_000_000,
    "completed_p50_ms": 4500,
    "completed_longest_ms": None,
    "unreadable_records": 2,
}


def row_of(section: str, **values: Any) -> dict[str, Any]:
    return dict.fromkeys(SECTIONS[section].names) | values


def move(partition: int, state: str, **values: Any) -> dict[str, Any]:
    began_ms = BEGAN_MS + partition * 1000
    ended_ms = None if state == "copying" else began_ms + 5000
    known = {"cluster": "local", "topic": "orders", "partition": partition, "plan": "friday", "requester": HOSTILE}
    known |= {"plan_reason": HOSTILE, "state": state, "original": "1,2", "target": "2,3", "began_ms": began_ms}
    known |= {"started_ms": began_ms + 10, "ended_ms": ended_ms, "bytes_copied": 1_000_000, "shard": 0}
    known |= {"duration_ms": None if ended_ms is None else 5000, "began_offset": 3}
    return row_of("reassignments", **known | values)


def report_of(moves: tuple[dict[str, Any], ...]) -> Report:
    named = {"at_ms": BEGAN_MS, "shard": 0, "offset": 7, "cluster": "local", "id": "=1+1", "command": "alter"}
    named |= {"by": HOSTILE, "reason": "=HYPERLINK(1)", "plan": "friday"}
    command = row_of("commands", **named, verdict="accepted", accepted=2, unchanged=0, refused=1)
    refusal = row_of("refusals", **named, topic="orders", partition=9, code="unknown", detail="[bold]no[/bold]")
    plan = row_of("plans", cluster="local", plan="friday", requester=HOSTILE, reason=HOSTILE, opened_ms=BEGAN_MS)
    counts = {name: 0 for name in SECTIONS["requesters"].names if name != "requester"}
    sections = {
        "requesters": (row_of("requesters", requester=HOSTILE, **counts),),
        "plans": (plan,),
        "commands": (command,),
        "reassignments": moves,
        "refusals": (refusal,),
    }
    return Report((ShardPart(0, 0, 40),), TOTALS, sections)


MOVES = (
    move(0, "completed"),
    move(1, "rolled-back", cancelled_by=HOSTILE, cancel_mode="rollback", cancel_reason="too slow"),
    move(2, "failed"),
    move(3, "copying"),
    move(4, "rolled-back", started_ms=None),
)


class Elements(HTMLParser):
    """Every element with its attributes, and every text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def drawn(report: Report) -> str:
    return page(report, log="drover.events", asked={"by": HOSTILE}, end_ms=BEGAN_MS + 60_000)


def test_the_page_refers_to_nothing_outside_itself_and_runs_nothing() -> None:
    text = drawn(report_of(MOVES))
    found = Elements(text)
    assert found.open == [], "every element is closed"
    assert not {tag for tag, _ in found.elements} & {"script", "link", "img", "iframe", "object", "embed", "base"}
    for tag, attributes in found.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in {"src", "href", "xlink:href", "action", "data"}:
                assert value is not None
                assert value.startswith(("#", "data:")), (tag, name, value)
    styles = re.findall(r"url\(([^)]*)\)|@import", text)
    assert all(target.strip("'\"").startswith("#") for target in styles)
    policy = next(attributes for tag, attributes in found.elements if "http-equiv" in attributes)
    assert str(policy["content"]).startswith("default-src 'none'")


def test_what_users_wrote_stands_in_the_page_as_they_wrote_it() -> None:
    found = Elements(drawn(report_of(MOVES)))
    # The requester's row, the plan twice, the command's and the refusal's by, the filter, and the moves.
    assert found.texts.count(HOSTILE) >= 6 + len(MOVES)
    assert not any("49" in text for text in found.texts if "{{" in text)


def test_the_page_tells_totals_plots_and_every_row() -> None:
    text = drawn(report_of(MOVES))
    assert text.count("<svg") == 2
    for words in ("Moves per broker", "Bytes copied", "0:0-39", "1,234", "3,000,000", "4.5 s", "could not be read"):
        assert words in text
    assert text.count("<tr>") == 5 + sum(len(rows) for rows in report_of(MOVES).sections.values())
    assert "2026-09-21 14:13:20.000Z" in text


def test_an_audit_without_rows_has_a_page_without_plots() -> None:
    nothing = Report((), dict.fromkeys(TOTALS, 0), dict.fromkeys(SECTIONS, ()))
    text = drawn(nothing)
    assert "<svg" not in text
    assert text.count("None.") == len(SECTIONS)


def test_a_page_says_when_it_leaves_rows_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_ROWS", 3)
    assert f"The first 3 of {len(MOVES)} rows" in drawn(report_of(MOVES))


def test_the_timeline_has_a_lane_for_each_broker_and_a_line_for_each_copy() -> None:
    moves = (*MOVES, move(5, "completed", target="3,4", cluster="other"))
    text = plots.moves_per_broker(moves, BEGAN_MS + 60_000)
    assert {words for words in ("local broker 3", "other broker 3", "other broker 4") if words in text} == {
        "local broker 3",
        "other broker 3",
        "other broker 4",
    }
    assert "local broker 2" not in text, "nothing was copied to it"
    collection = re.search(r'<g id="LineCollection_1">(.*?)</g>', text, re.DOTALL)
    assert collection is not None
    assert collection[1].count("<path") == 6
    assert plots.moves_per_broker(moves, BEGAN_MS + 60_000) == text, "the same audit has the same page"


def test_many_moves_are_drawn_as_one_picture_inside_the_page() -> None:
    moves = tuple(move(number, "completed") for number in range(plots.MAX_LINES + 1))
    text = plots.moves_per_broker(moves, None)
    assert "data:image/png;base64," in text
    assert len(text) < 500_000


def test_moves_that_copied_nothing_have_no_plot() -> None:
    assert plots.moves_per_broker((move(0, "completed", target="2,1"),), None) == ""
    assert plots.bytes_over_time((move(0, "completed", bytes_copied=0), move(1, "copying"))) == ""


@pytest.mark.parametrize(
    "text",
    ["=1", "+1", "-1", "@x", "\t=1", " =1", "\n=1", "\u00a0=1", "\ufeff=1", "\uff1d1", "\uff20x", "\r", "|x", "'=1"],
)
def test_no_variant_of_a_formula_begins_a_cell(text: str) -> None:
    assert files._plain(text) == f"'{text}"
    assert files._plain(f"x{text}") == f"x{text}"


def test_csv_has_every_column_and_no_formula(tmp_path: Path) -> None:
    report = report_of(MOVES)
    write_csv(report, tmp_path / "new")
    assert {file.name for file in (tmp_path / "new").iterdir()} == {f"{name}.csv" for name in SECTIONS}
    rows = list(csv.DictReader(io.StringIO(csv_text("commands", report.sections["commands"]))))
    assert tuple(rows[0]) == SECTIONS["commands"].names
    assert (rows[0]["id"], rows[0]["reason"], rows[0]["by"]) == ("'=1+1", "'=HYPERLINK(1)", HOSTILE)
    moves = list(csv.DictReader(io.StringIO((tmp_path / "new" / "reassignments.csv").read_text())))
    assert [row["partition"] for row in moves] == ["0", "1", "2", "3", "4"]
    assert moves[3]["ended_ms"] == ""


def test_parquet_has_every_row_with_types_and_units(tmp_path: Path) -> None:
    report = report_of(MOVES)
    write_parquet(report, tmp_path)
    for name, section in SECTIONS.items():
        table = parquet.read_table(tmp_path / f"{name}.parquet")
        assert table.to_pylist() == list(report.sections[name])
        assert table.schema.names == list(section.names)
        assert {field.metadata[b"unit"].decode() for field in table.schema} == {one.unit for one in section.columns}
        assert table.schema.metadata[b"drover.offsets"] == b"0:0-39"


def test_the_table_shows_totals_and_sections_and_takes_no_word_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    audit_view.print_report(report_of(MOVES), None)
    said = capsys.readouterr().out
    for words in ("Records 0:0-39", "What was refused", "[bold]no[/bold]", "3.0 MB", "4s", "orders:3", "rollback by"):
        assert words in said
    audit_view.print_report(report_of(MOVES), "refusals")
    assert "What was done" not in capsys.readouterr().out


def test_one_section_as_json_leaves_the_others_out(capsys: pytest.CaptureFixture[str]) -> None:
    audit_view.print_json(report_of(MOVES), "plans")
    said = capsys.readouterr().out
    assert '"plans"' in said
    assert '"commands": [' not in said
    assert '"totals"' in said


def test_a_section_is_printed_as_csv(capsys: pytest.CaptureFixture[str]) -> None:
    audit_view.print_csv(report_of(MOVES), "plans")
    names, plan = capsys.readouterr().out.splitlines()
    assert names == ",".join(SECTIONS["plans"].names)
    assert plan.startswith("local,friday,")


def test_a_verification_names_every_finding(capsys: pytest.CaptureFixture[str]) -> None:
    finding = Found(Finding(2, 17, Rule.CHAIN, "the chain hash of its predecessor is wrong"), BEGAN_MS)
    shard = Summary(
        shard=2, records=20, batches=18, fenced_batches=1, stale_acquires=0, findings=1, state_hashes=3,
        unchecked_hashes=4, state_hash=None,
    )  # fmt: skip
    audit_view.print_verification(Verification((finding,), (shard,)), (), "table")
    said = capsys.readouterr()
    for words in ("17", "chain", "2026-09-21T14:13:20.000Z", "cannot be derived"):
        assert words in said.out
    assert said.err == "20 records inspected, 3 recorded state hashes agree; 1 broken rule.\n"
    audit_view.print_verification(Verification((finding,), (shard,)), (), "jsonl")
    assert '"rule":"chain"' in capsys.readouterr().out
