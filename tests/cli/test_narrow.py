"""Tables stay readable in terminals of 40 to 140 columns."""

import re

import pytest
from rich.console import Console, RenderableType

from drover.cli import describe_view, history
from drover.cli.following import fitting
from drover.cli.output import table
from drover.cli.status_view import Choice, layout
from drover.client.history import FoldedLog
from drover.client.transfers import Transfers
from drover.client.views.describe_rows import PartitionRow
from drover.client.views.history_rows import HistoryRow
from drover.client.watching import View
from drover.events.partitions import TopicPartition
from drover.events.progress import Progress
from drover.fold.log import ShardFold
from drover.state.phase import Phase
from drover.state.plans import Plan
from drover.state.reassignment import Reassignment, Step
from drover.state.scheduling import Freeze

WHY = "withheld, frozen by ann (the disks of rack b are being replaced until noon): `drover unfreeze`"
WIDTHS = (40, 80, 100, 140)


def move(partition: int, phase: Phase, step: Step | None = None) -> Reassignment:
    return Reassignment(
        key=TopicPartition("orders", partition), topic_id="id", plan="friday-night", number=partition,
        original=(4, 2, 3), target=(1, 2, 3), queued_ms=0, phase=phase, since_ms=1000, current=(4, 2, 3), step=step,
    )  # fmt: skip


def present(waiting: int = 1) -> View:
    """One partition is copied, the others wait for the end of a freeze."""
    fold = ShardFold(0, 1)
    state = fold.state.cluster("prod")
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
    lines = printed(layout(present(), Choice()), width)
    assert any(re.match(r"orders:0 .*copying .*686\.0 MB/s", line) for line in lines)
    assert any(re.match(r"orders:1 .*queued ", line) for line in lines)
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
        printed(layout(present(), Choice()), width)
    )


def test_a_wide_terminal_shows_one_line_for_each_move_and_leaves_nothing_out() -> None:
    lines = printed(layout(present(), Choice()), 250)
    assert "no room for" not in one_line(lines)
    (waits,) = (line for line in lines if line.startswith("orders:1"))
    assert waits.rstrip().endswith(WHY)


def test_a_live_view_shows_fewer_moves_where_each_takes_several_lines() -> None:
    for width in WIDTHS:
        screen = Console(width=width, height=24)
        lines = printed(fitting(screen, present(40), Choice()), width)
        assert len(lines) <= 24
        assert re.search(r"and \d+ more", one_line(lines))
        assert "41 reassignments: 1 copying, 40 queued" in one_line(lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_history_folds_between_words_only(width: int) -> None:
    row = HistoryRow(
        5, 123, 1_790_000_000_000, "local", "call-accepted", "alice@example.com", "the disks of broker 1 are full",
        "expected [4,2,3], replicas [1,2,3], step 1, final yes, leader 2",
        plan="friday-night", partitions=(TopicPartition("orders", 1),),
    )  # fmt: skip
    lines = printed(table(history.COLUMNS, [history.cells_of(row)], right=("log",), fit=history.FIT), width)
    words = one_line(lines).split()
    assert {"call-accepted", "orders:1", "disks", "[4,2,3],", "replicas"} <= set(words)


def test_describe_says_what_is_wrong_with_a_partition_however_narrow_the_terminal_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = ("under-replicated: 2 of 3 replicas are in sync", "in fewer racks than possible")
    row = PartitionRow("orders", 12, (1, 2, 3), 1, (1, 2), ("rack-a", "rack-b", "rack-a"), 10**10, 55e6, notes)
    monkeypatch.setattr(describe_view, "console", lambda: Console(width=40))
    describe_view.print_rows([row])
    said = capsys.readouterr().out
    assert "\norders:12 " in said
    assert f"notes: {'; '.join(notes)}" in one_line(said.splitlines())
    assert "a wider terminal or `-o json` shows them" in one_line(said.splitlines())


def test_a_table_that_spares_no_column_folds_between_words() -> None:
    lines = printed(table(("what", "why"), [("controller-moved", "a first sentence of many words " * 3)]), 40)
    assert lines[2].startswith("controller-moved   a first sentence")
