"""Which columns are drawn in terminals of 40 to 140 columns, and what becomes of the others."""

import itertools

import pytest

from drover.cli import history, status_view
from drover.cli.columns import GAP, NARROWEST_PROSE, Arrangement, Column, Fit, arrange

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
    found = arrange(STATUS, status_view.FIT, room)
    assert names(STATUS, found.left_out) == left_out
    assert total(found) <= room
    assert all(width >= STATUS[number].cell for number, width in found.widths.items() if number != WAITS)


@pytest.mark.parametrize("room", [40, 80, 100, 140, 160])
def test_why_something_waits_is_in_a_column_of_some_width_or_below_the_row(room: int) -> None:
    found = arrange(STATUS, status_view.FIT, room)
    assert (WAITS in found.below) is (WAITS not in found.widths)
    assert found.widths.get(WAITS, NARROWEST_PROSE) >= NARROWEST_PROSE


def test_with_room_for_everything_nothing_is_folded_or_moved() -> None:
    found = arrange(STATUS, status_view.FIT, 1000)
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
    found = arrange(HISTORY, history.FIT, room)
    assert (names(HISTORY, found.below), names(HISTORY, found.left_out)) == (below, left_out)
    assert total(found) <= room


def test_without_columns_to_spare_the_widest_gives_way_and_words_stay_whole_as_long_as_they_can() -> None:
    columns = [Column("a", 1, 20, 9), Column("b", 1, 10, 10), Column("c", 1, 31, 6)]
    assert arrange(columns, Fit(), 52).widths == {0: 18, 1: 10, 2: 18}
    assert arrange(columns, Fit(), 31).widths == {0: 9, 1: 10, 2: 6}
    assert arrange(columns, Fit(), 21).widths == {0: 5, 1: 5, 2: 5}


@pytest.mark.parametrize("fit", [Fit(), status_view.FIT, history.FIT], ids=["none", "status", "history"])
def test_every_column_is_drawn_once_or_named_and_none_is_too_wide(fit: Fit) -> None:
    for columns, room in itertools.product((STATUS, HISTORY), range(1, 200)):
        found = arrange(columns, fit, room)
        assert sorted((*found.widths, *found.below, *found.left_out)) == list(range(len(columns)))
        assert all(width >= 1 for width in found.widths.values())
        assert total(found) <= max(room, len(found.widths) + GAP * (len(found.widths) - 1))
