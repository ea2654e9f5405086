"""Tables in terminals of 40 to 140 columns; what is quoted cannot act on a terminal."""

import itertools
import json
import re
from pathlib import Path

import pytest
import yaml
from rich.console import Console, RenderableType

from drover.cli import describe, history, status
from drover.cli.exits import Failure
from drover.cli.output import (
    GAP,
    NARROWEST_PROSE,
    Arrangement,
    Column,
    Fit,
    arrange,
    console,
    print_document,
    print_line,
    say,
    styled,
    table,
)
from drover.cli.status import Choice, fitting, status_layout
from drover.client.history import FoldedLog
from drover.client.live_view import View
from drover.client.transfers import Transfers
from drover.client.views.describe_rows import PartitionRow
from drover.client.views.history_rows import HistoryRow
from drover.events.bounds import visible
from drover.events.partitions import TopicPartition
from drover.events.progress import Progress
from drover.fold.log import ShardFold
from drover.state.phase import Phase
from drover.state.plans import Plan
from drover.state.reassignment import Reassignment, Step
from drover.state.scheduling import Freeze
from tests.architecture.repository import ROOT

HOSTILE = "\x1b[2Jclear \x9b1m \u202etxt.exe \u2066 \x7f \x07 \r end"
ACTS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
WHY = "withheld, frozen by ann (the disks of rack b are being replaced until noon): `drover unfreeze`"
WIDTHS = (40, 80, 100, 140)


def test_what_nobody_sees_is_written_as_its_escape() -> None:
    assert (
        visible("\x1b[2J\u202ea\nb \U0001f469\u200d\U0001f4bb größe")
        == "\\x1b[2J\\u202ea\nb \U0001f469\u200d\U0001f4bb größe"
    )
    assert visible("\udc80") == "\\udc80"


def test_no_way_of_printing_lets_it_through(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    console().print(table(("reason",), [(HOSTILE,)]))
    console().print(styled(HOSTILE + "\nshard 0 is owned by nobody"))
    print_line({"reason": HOSTILE})
    for output in ("json", "jsonl", "yaml"):
        print_document({"rows": [{"reason": HOSTILE}]}, [{"reason": HOSTILE}], output)
    Failure(f"refused: {HOSTILE}").show()
    said = capsys.readouterr()
    assert said.out.count("clear") == 7
    assert not ACTS.search(said.out + said.err)
    assert "\nshard 0" not in said.out


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_programs_read_what_was_written(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_document({"reason": HOSTILE}, [], output)
    said = capsys.readouterr().out
    assert (json.loads(said) if output == "json" else yaml.safe_load(said)) == {"reason": HOSTILE}


@pytest.mark.parametrize("module", sorted((ROOT / "drover" / "cli").glob("*.py")), ids=lambda file: file.name)
def test_every_module_prints_by_that_function(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    if module.name != "output.py":
        assert "click.echo" not in text
        assert "rich.text" not in text


# As wide as the cells of a move with everything known, and of one that waits.
STATUS = [
    Column(name, len(name), cell, word)
    for name, cell, word in (
        ("partition", 10, 10), ("plan", 12, 12), ("state", 8, 8), ("step", 1, 4), ("replicas", 13, 8),
        ("done", 8, 5), ("of", 7, 5), ("%", 2, 2), ("rate", 9, 5), ("eta", 5, 5), ("for", 5, 5), ("waits for", 70, 14),
    )
]  # fmt: skip
WAITS = len(STATUS) - 1
HISTORY = [
    Column(name, len(name), cell, word)
    for name, cell, word in (
        ("time", 24, 24), ("log", 5, 5), ("cluster", 5, 7), ("what", 23, 23), ("partition", 8, 9), ("plan", 6, 6),
        ("by", 5, 5), ("reason", 14, 6), ("detail", 80, 31),
    )
]  # fmt: skip


def names(columns: list[Column], numbers: tuple[int, ...]) -> list[str]:
    return [columns[number].name for number in numbers]


def total(arrangement: Arrangement) -> int:
    return sum(arrangement.widths.values()) + GAP * (len(arrangement.widths) - 1)


@pytest.mark.parametrize(
    ("room", "left_out"),
    [
        (140, []),
        (100, ["step", "of"]),
        (80, ["step", "of", "done", "replicas"]),
        (40, ["step", "of", "done", "replicas", "for", "%", "plan", "eta"]),
    ],
)
def test_the_less_a_column_of_status_tells_an_operator_the_sooner_it_is_left_out(
    room: int, left_out: list[str]
) -> None:
    found = arrange(STATUS, status.FIT, room)
    assert names(STATUS, found.left_out) == left_out
    assert total(found) <= room
    assert all(width >= STATUS[number].cell for number, width in found.widths.items() if number != WAITS)


@pytest.mark.parametrize("room", [40, 80, 100, 140, 160])
def test_why_something_waits_is_in_a_column_of_some_width_or_below_the_row(room: int) -> None:
    found = arrange(STATUS, status.FIT, room)
    assert (WAITS in found.below) is (WAITS not in found.widths)
    assert found.widths.get(WAITS, NARROWEST_PROSE) >= NARROWEST_PROSE


def test_with_room_for_everything_nothing_is_folded_or_moved() -> None:
    found = arrange(STATUS, status.FIT, 1000)
    assert found == Arrangement({number: column.widest for number, column in enumerate(STATUS)})


@pytest.mark.parametrize(
    ("room", "below", "left_out"),
    [
        (144, [], []),
        (140, ["detail"], []),
        (100, ["detail", "reason"], []),
        (80, ["detail", "reason"], ["log", "cluster"]),
        (40, ["detail", "reason"], ["log", "cluster", "plan", "by", "time"]),
    ],
)
def test_a_narrow_history_keeps_what_happened_to_which_partition_and_why(
    room: int, below: list[str], left_out: list[str]
) -> None:
    found = arrange(HISTORY, history.HISTORY_FIT, room)
    assert (names(HISTORY, found.below), names(HISTORY, found.left_out)) == (below, left_out)
    assert total(found) <= room


def test_without_columns_to_spare_the_widest_gives_way_and_words_stay_whole_as_long_as_they_can() -> None:
    columns = [Column("a", 1, 20, 9), Column("b", 1, 10, 10), Column("c", 1, 31, 6)]
    assert arrange(columns, Fit(), 52).widths == {0: 18, 1: 10, 2: 18}
    assert arrange(columns, Fit(), 31).widths == {0: 9, 1: 10, 2: 6}
    assert arrange(columns, Fit(), 21).widths == {0: 5, 1: 5, 2: 5}


@pytest.mark.parametrize("fit", [Fit(), status.FIT, history.HISTORY_FIT], ids=["none", "status", "history"])
def test_every_column_is_drawn_once_or_named_and_none_is_too_wide(fit: Fit) -> None:
    for columns, room in itertools.product((STATUS, HISTORY), range(1, 200)):
        found = arrange(columns, fit, room)
        assert sorted((*found.widths, *found.below, *found.left_out)) == list(range(len(columns)))
        assert all(width >= 1 for width in found.widths.values())
        assert total(found) <= max(room, len(found.widths) + GAP * (len(found.widths) - 1))


def move(partition: int, phase: Phase, step: Step | None = None) -> Reassignment:
    return Reassignment(
        key=TopicPartition("orders", partition), topic_id="id", plan="friday-night", number=partition,
        original=(4, 2, 3), target=(1, 2, 3), created_ms=0, phase=phase, since_ms=1000, current=(4, 2, 3), step=step,
    )  # fmt: skip


def present(waiting: int = 1) -> View:
    """One partition is copied, the others wait for the end of a freeze."""
    fold = ShardFold(0, 1)
    state = fold.state.cluster("prod")
    state.kafka_cluster_id = "kafka-1"
    state.put_plan(Plan("friday-night", "ann", "drain broker 4", 1000, active=1 + waiting))
    state.freeze = Freeze("ann", "the disks of rack b are being replaced until noon", 1000)
    state.put(move(0, Phase.COPYING, Step(number=1, final=True, expected=(4, 2, 3), replicas=(1, 2, 3), leader=2)))
    for number in range(1, waiting + 1):
        state.put(move(number, Phase.PENDING))
    transfers = Transfers()
    for at_ms, done in ((0, 100_000_000), (1000, 786_000_000)):
        transfers.see(
            Progress(
                cluster="prod", topic="orders", partition=0, epoch=1, at_ms=at_ms, step=1, bytes_done=done,
                bytes_total=31_000_000_000, adding=(),
            )
        )  # fmt: skip
    return View(FoldedLog({0: fold}), transfers, now_ms=1000)


def printed(what: RenderableType, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(what)
    lines = capture.get().splitlines()
    assert all(len(line) <= width for line in lines)
    return lines


def one_line(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


@pytest.mark.parametrize("width", WIDTHS)
def test_a_terminal_of_any_width_shows_each_partition_its_state_and_why_it_waits(width: int) -> None:
    lines = printed(status_layout(present(), Choice(by_partition=True)), width)
    assert any(re.match(r"orders:0 .*copying .*686\.0 MB/s", line) for line in lines)
    assert any(re.match(r"orders:1 .*pending ", line) for line in lines)
    below = lines[next(at for at, line in enumerate(lines) if line.startswith("orders:1")) :]
    assert WHY in one_line(below)
    assert "…" not in one_line(lines)


@pytest.mark.parametrize(
    ("width", "said"),
    [
        (40, "no room for: plan, step, replicas, done, of, %, for; "),
        (80, "no room for: step, replicas, done, of; "),
    ],
)
def test_what_is_left_out_is_named_in_one_line_below_the_table(width: int, said: str) -> None:
    assert f"{said}a wider terminal or `drover status -o json` shows them" in one_line(
        printed(status_layout(present(), Choice(by_partition=True)), width)
    )


def test_a_wide_terminal_shows_one_line_for_each_move_and_leaves_nothing_out() -> None:
    lines = printed(status_layout(present(), Choice(by_partition=True)), 250)
    assert "no room for" not in one_line(lines)
    (waits,) = (line for line in lines if line.startswith("orders:1"))
    assert waits.rstrip().endswith(WHY)


def test_a_live_view_shows_fewer_moves_where_each_takes_several_lines() -> None:
    for width in WIDTHS:
        screen = Console(width=width, height=24)
        lines = printed(fitting(screen, present(40), Choice(by_partition=True)), width)
        assert len(lines) <= 24
        assert re.search(r"and \d+ more", one_line(lines))
        assert "41 reassignments: 1 copying, 40 pending" in one_line(lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_history_folds_between_words_only(width: int) -> None:
    row = HistoryRow(
        5, 123, 1_790_000_000_000, "local", "call-accepted", "alice@example.com", "the disks of broker 1 are full",
        "expected [4,2,3], replicas [1,2,3], step 1, final yes, leader 2",
        plan="friday-night", partitions=(TopicPartition("orders", 1),),
    )  # fmt: skip
    lines = printed(
        table(history.HISTORY_COLUMNS, [history.history_cells(row)], right=("log",), fit=history.HISTORY_FIT), width
    )
    words = one_line(lines).split()
    assert {"call-accepted", "orders:1", "disks", "[4,2,3],", "replicas"} <= set(words)


def test_describe_says_what_is_wrong_with_a_partition_however_narrow_the_terminal_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = ("under-replicated: 2 of 3 replicas are in sync", "in fewer racks than possible")
    row = PartitionRow("orders", 12, (1, 2, 3), 1, (1, 2), ("rack-a", "rack-b", "rack-a"), 10**10, 55e6, notes)
    monkeypatch.setattr(describe, "console", lambda: Console(width=40))
    describe.print_rows([row])
    said = capsys.readouterr().out
    assert "\norders:12 " in said
    assert f"notes: {'; '.join(notes)}" in one_line(said.splitlines())
    assert "a wider terminal or `-o json` shows them" in one_line(said.splitlines())


def test_a_table_that_spares_no_column_folds_between_words() -> None:
    lines = printed(table(("what", "why"), [("controller-moved", "a first sentence of many words " * 3)]), 40)
    assert lines[2].startswith("controller-moved   a first sentence")
