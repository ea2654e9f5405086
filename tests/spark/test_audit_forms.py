"""What is written of an audit: the page, CSV, Parquet and tables, with hostile words in them."""

import csv
import dataclasses
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from pyarrow import parquet

from drover.cli import audit
from drover.cli.audit import _made
from drover.events.fields import LAST_MS
from drover.fold.inspection import Finding, Summary
from drover.fold.log import Rule
from drover.spark.audit import files, plots
from drover.spark.audit import page as pages
from drover.spark.audit.audit_run import Log
from drover.spark.audit.cells import size, span
from drover.spark.audit.facts import ShardDamage
from drover.spark.audit.files import csv_text, write_csv, write_parquet
from drover.spark.audit.page import Made, page
from drover.spark.audit.parts import ShardPart
from drover.spark.audit.report import Report
from drover.spark.audit.sections import SECTIONS
from drover.spark.audit.verification import Found, Verification
from drover.spark.log_source import LogSource

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


MADE = Made(
    log="drover.events", version="1.2.3", made_ms=BEGAN_MS + 70_000, end_ms=BEGAN_MS + 60_000, asked={"by": HOSTILE}
)


def drawn(report: Report, made: Made = MADE) -> str:
    return page(report, made)


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
    assert len(re.findall(r"<tr[ >]", text)) == 5 + sum(len(rows) for rows in report_of(MOVES).sections.values())
    assert "2026-09-21 14:13:20.000Z" in text


def test_the_page_says_of_what_it_is_who_made_it_and_what_was_checked() -> None:
    text = " ".join(Elements(drawn(report_of(MOVES))).texts)
    for words in (
        "2026-09-21 14:14:30.000Z by Drover 1.2.3",
        "the log's beginning to 2026-09-21 14:14:20.000Z",
        "local",
    ):
        assert words in text
    assert "None is broken." in text
    damaged = dataclasses.replace(report_of(MOVES), damages=(ShardDamage(3, 17, "its chain is wrong"),))
    told = " ".join(Elements(drawn(damaged)).texts)
    assert "Shard 3 breaks a rule at offset 17" in told
    assert "None is broken." not in told


def test_a_page_of_named_records_does_not_say_that_it_reaches_from_the_beginning_to_now() -> None:
    log = Log(LogSource("nowhere"), {0: 0}, {0: 40}, Path("nowhere"))
    made = _made(log, {"since_ms": None, "until_ms": None, "offsets": "0:0-39"}, {})
    text = drawn(report_of(MOVES), made)
    assert "<dt>time</dt><dd>that of these records; all times UTC</dd>" in text
    drawn_to = [pages._last_ms(report_of(moves)) for moves in (MOVES, MOVES[3:4], ())]
    assert drawn_to == [BEGAN_MS + 9000, BEGAN_MS + 3010, BEGAN_MS], "and nothing moves on until today"


def test_a_page_says_nothing_of_a_time_that_is_still_to_come() -> None:
    log = Log(LogSource("nowhere"), {0: 0}, {0: 40}, Path("nowhere"))
    asked = {"since_ms": None, "until_ms": LAST_MS + 43_200_000, "offsets": None}
    made = _made(log, asked, {})
    assert made.end_ms == made.made_ms
    text = drawn(report_of(MOVES), dataclasses.replace(made, since_ms=LAST_MS + 1))
    assert "9999-12-31 23:59:59" in text, "a time that is behind the last date is written as the last"


def test_links_lead_from_a_plan_to_its_moves_from_a_move_to_its_plan_and_to_who_asked() -> None:
    elements = Elements(drawn(report_of(MOVES))).elements
    ids = {attributes["id"] for _, attributes in elements if "id" in attributes}
    links = [str(attributes["href"])[1:] for tag, attributes in elements if tag == "a"]
    assert set(links) <= ids
    assert links.count("plans-0") == len(MOVES) + 2, "every move, the command and the refusal"
    assert links.count("reassignments-0") == 1
    assert links.count("requesters-0") >= len(MOVES) + 3
    assert set(SECTIONS) <= set(links), "the contents"


def test_amounts_are_told_in_words_and_exactly_and_outcomes_also_without_their_colour() -> None:
    moves = (*MOVES, move(6, "completed", bytes_copied=5, bytes_unknown=1))
    found = Elements(drawn(report_of(moves)))
    exact = {attributes["data-exact"] for _, attributes in found.elements if "data-exact" in attributes}
    assert {"3,000,000 B", ">= 5 B", "5,000 ms"} <= exact
    assert {"3.0 MB", ">= 5 B", "5.0 s"} <= set(found.texts)
    marked = {attributes.get("class") for tag, attributes in found.elements if tag == "span"}
    assert {"completed", "rolled-back", "failed", "under-way", "accepted"} <= marked
    assert {"completed", "rolled-back", "failed", "copying"} <= set(found.texts)


@pytest.mark.parametrize(("count", "words"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (3 * 10**12, "3.0 TB")])
def test_sizes_are_written_as_people_say_them(count: int, words: str) -> None:
    assert size(count) == words


@pytest.mark.parametrize(("ms", "words"), [(4500, "4.5 s"), (90_000, "1.5 min"), (5_400_000, "1.5 h")])
def test_spans_are_written_as_people_say_them(ms: int, words: str) -> None:
    assert span(ms) == words


def test_the_legend_has_what_is_drawn_and_a_short_move_is_seen() -> None:
    short = move(0, "completed", ended_ms=BEGAN_MS + 11, started_ms=BEGAN_MS + 10)
    long = move(1, "completed", started_ms=BEGAN_MS, ended_ms=BEGAN_MS + 1_000_000)
    text = plots.moves_per_broker((short, long), None)
    assert "completed" in text
    assert "rolled-back" not in text
    collection = re.search(r'<g id="LineCollection_1">(.*?)</g>', text, re.DOTALL)
    assert collection is not None
    lines = re.findall(r'd="M ([\d.]+) [\d.]+\s+L ([\d.]+) ', collection[1])
    assert len(lines) == 2
    assert min(float(last) - float(first) for first, last in lines) >= 1.0, "points of a plot of some 900"


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
    audit.print_report(report_of(MOVES), None)
    said = capsys.readouterr().out
    for words in ("Records 0:0-39", "What was refused", "[bold]no[/bold]", "3.0 MB", "4s", "orders:3", "rollback by"):
        assert words in said
    audit.print_report(report_of(MOVES), "refusals")
    assert "What was done" not in capsys.readouterr().out


def test_one_section_as_json_leaves_the_others_out(capsys: pytest.CaptureFixture[str]) -> None:
    audit.print_json(report_of(MOVES), "plans")
    said = capsys.readouterr().out
    assert '"plans"' in said
    assert '"commands": [' not in said
    assert '"totals"' in said


def test_a_section_is_printed_as_csv(capsys: pytest.CaptureFixture[str]) -> None:
    audit.print_csv(report_of(MOVES), "plans")
    names, plan = capsys.readouterr().out.splitlines()
    assert names == ",".join(SECTIONS["plans"].names)
    assert plan.startswith("local,friday,")


def test_a_verification_names_every_finding(capsys: pytest.CaptureFixture[str]) -> None:
    finding = Found(Finding(2, 17, Rule.CHAIN, "the chain hash of its predecessor is wrong"), BEGAN_MS)
    shard = Summary(
        shard=2, records=20, batches=18, fenced_batches=1, stale_acquires=0, findings=1, state_hashes=3,
        unchecked_hashes=4, state_hash=None,
    )  # fmt: skip
    audit.print_verification(Verification((finding,), (shard,)), (), "table")
    said = capsys.readouterr()
    for words in ("17", "chain", "2026-09-21T14:13:20.000Z", "cannot be derived"):
        assert words in said.out
    told = "20 records inspected, 3 recorded state hashes agree (4 more were not checked); 1 broken rule.\n"
    assert said.err == told
    unhashed = structs.replace(shard, state_hashes=0, unchecked_hashes=0)
    audit.print_verification(Verification((), (unhashed,)), (), "table")
    assert "the hash chains and the rules" in capsys.readouterr().err
    audit.print_verification(Verification((finding,), (shard,)), (), "jsonl")
    assert '"rule":"chain"' in capsys.readouterr().out
