"""PURE: which columns of a table a terminal has room for, how wide each is, and what becomes of the others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Between two columns.
GAP = 3
# In less than this, a sentence has a word or two on each line: below the row it reads better.
NARROWEST_PROSE = 24


@dataclass(frozen=True, slots=True)
class Column:
    """The widths of a column in characters: its heading, its widest cell, and its longest word, also of the heading."""

    name: str
    heading: int
    cell: int
    word: int

    @property
    def widest(self) -> int:
        """The width at which nothing in it is folded."""
        return max(self.heading, self.cell)


@dataclass(frozen=True, slots=True)
class Fit:
    """How a table gets narrower, in this order.

    `prose` is folded between words, and `below` is prose too, which then goes on a line of its own below each row, the
    first one first. Then the columns of `spare` are left out, the first one first, and `shown_by` says where they can
    be seen. Only when all that is not enough is anything else folded.
    """

    prose: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    shown_by: str = "a wider terminal or `-o json` shows them"


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The columns that are drawn, by their number, with their widths; those below each row, and those left out."""

    widths: dict[int, int]
    below: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()


def arrange(columns: Sequence[Column], fit: Fit, room: int) -> Arrangement:
    """Choose the columns for a terminal that is `room` wide."""
    for below, left_out in _sacrifices(columns, fit):
        kept = [number for number in range(len(columns)) if number not in below and number not in left_out]
        widths = _widths(kept, columns, [_least(columns[number], fit) for number in kept], room)
        if widths is not None:
            return Arrangement(widths, below, left_out)
    # Nothing is left to give up: words stay whole if they can, and nothing is cut off even if they cannot.
    found = _widths(kept, columns, [columns[number].word for number in kept], room)
    found = found or _widths(kept, columns, [1] * len(kept), room)
    return Arrangement(found or dict.fromkeys(kept, 1), below, left_out)


def _sacrifices(columns: Sequence[Column], fit: Fit) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield ever more columns to put below the rows, then to leave out; at first none."""
    numbers = {column.name: number for number, column in enumerate(columns)}
    below = tuple(numbers[name] for name in fit.below if name in numbers)
    spare = tuple(numbers[name] for name in fit.spare if name in numbers)
    yield from ((below[:count], ()) for count in range(len(below) + 1))
    yield from ((below, spare[:count]) for count in range(1, len(spare) + 1))


def _least(column: Column, fit: Fit) -> int:
    if column.name in fit.prose or column.name in fit.below:
        return min(column.widest, NARROWEST_PROSE)
    return max(column.cell, column.word)


def _widths(kept: Sequence[int], columns: Sequence[Column], least: Sequence[int], room: int) -> dict[int, int] | None:
    """Give each column all that it asks for, or less to the widest ones; None if they need more than there is."""
    left = room - GAP * (len(kept) - 1)
    if sum(least) > left:
        return None
    asked = [columns[number].widest for number in kept]
    level = max(asked, default=0)
    if sum(asked) > left:
        level = next(one for one in range(left, -1, -1) if sum(_cut(asked, least, one)) <= left)
    widths = _cut(asked, least, level)
    # What the level leaves over is less than one for each column that it cuts.
    for index, most in enumerate(asked):
        if widths[index] == level < most and sum(widths) < left:
            widths[index] += 1
    return dict(zip(kept, widths, strict=True))


def _cut(asked: Sequence[int], least: Sequence[int], level: int) -> list[int]:
    return [max(low, min(most, level)) for most, low in zip(asked, least, strict=True)]
