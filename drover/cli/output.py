"""How results are printed: data only on stdout; tables for people, and json, jsonl or yaml for programs."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
import msgspec

from drover.errors import ConfigurationError
from drover.events.bounds import visible
from drover.events.fields import LAST_MS
from drover.text_files import decode_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text


# The space between two columns.
GAP = 3
# In a narrower column a sentence gets a word or two to a line; it reads better below the row.
NARROWEST_PROSE = 24
FORMATS = ("table", "json", "jsonl", "yaml")


@dataclass(frozen=True, slots=True)
class Column:
    """The widths of a column in characters: its heading, its widest cell, and its longest word, heading included."""

    name: str
    heading: int
    cell: int
    word: int

    @property
    def widest(self) -> int:
        """The width at which no cell is folded."""
        return max(self.heading, self.cell)


@dataclass(frozen=True, slots=True)
class Fit:
    """How a table gets narrower, in this order.

    Columns of `prose` and `below` are folded between words. Then those of `below` move, one after the other, to a line
    of their own below each row. Then those of `spare` are left out, one after the other; `shown_by` tells the reader
    where to see them. The other columns are folded last.
    """

    prose: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    shown_by: str = "a wider terminal or `-o json` shows them"


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The widths of the columns to draw, by their number; the columns below each row, and the columns left out."""

    widths: dict[int, int]
    below: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()


def arrange(columns: Sequence[Column], fit: Fit, room: int) -> Arrangement:
    """Choose the columns for a terminal that is `room` wide."""
    for below, left_out in _sacrifices(columns, fit):
        drawn = [number for number in range(len(columns)) if number not in below and number not in left_out]
        widths = _widths(drawn, columns, [_least(columns[number], fit) for number in drawn], room)
        if widths is not None:
            return Arrangement(widths, below, left_out)
    # No column is left to move or leave out: fold between words if that is enough, else within words.
    folded = _widths(drawn, columns, [columns[number].word for number in drawn], room)
    folded = folded or _widths(drawn, columns, [1] * len(drawn), room)
    return Arrangement(folded or dict.fromkeys(drawn, 1), below, left_out)


def _sacrifices(columns: Sequence[Column], fit: Fit) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the columns to put below the rows and to leave out: none at first, then one more each time."""
    numbers = {column.name: number for number, column in enumerate(columns)}
    below = tuple(numbers[name] for name in fit.below if name in numbers)
    spare = tuple(numbers[name] for name in fit.spare if name in numbers)
    yield from ((below[:count], ()) for count in range(len(below) + 1))
    yield from ((below, spare[:count]) for count in range(1, len(spare) + 1))


def _least(column: Column, fit: Fit) -> int:
    if column.name in fit.prose or column.name in fit.below:
        return min(column.widest, NARROWEST_PROSE)
    return max(column.cell, column.word)


def _widths(drawn: Sequence[int], columns: Sequence[Column], least: Sequence[int], room: int) -> dict[int, int] | None:
    """Return the width of each column, cutting the widest ones to fit; None if even the least widths do not fit."""
    width_left = room - GAP * (len(drawn) - 1)
    if sum(least) > width_left:
        return None
    asked = [columns[number].widest for number in drawn]
    level = max(asked, default=0)
    if sum(asked) > width_left:
        level = next(width for width in range(width_left, -1, -1) if sum(_cut(asked, least, width)) <= width_left)
    widths = _cut(asked, least, level)
    # Less than one character for each column that was cut is left over: spread it.
    for index, most in enumerate(asked):
        if widths[index] == level < most and sum(widths) < width_left:
            widths[index] += 1
    return dict(zip(drawn, widths, strict=True))


def _cut(asked: Sequence[int], least: Sequence[int], level: int) -> list[int]:
    return [max(low, min(most, level)) for most, low in zip(asked, least, strict=True)]


Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def output_option(command: Decorated) -> Decorated:
    """Add `-o`."""
    return click.option(
        "-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print."
    )(command)


def print_document(document: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], output: str) -> None:
    """Print for programs: the document as json or yaml, its rows one by one as jsonl."""
    match output:
        case "json":
            click.echo(_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()))
        case "jsonl":
            for row in rows:
                print_line(row)
        case _:
            import yaml  # noqa: PLC0415 - costs start-up time, and only -o yaml needs it

            plain = msgspec.to_builtins(document, str_keys=True)
            text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
            if visible(text) != text or not _can_print(text):
                text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=False)
            click.echo(text, nl=False)


def print_line(row: Mapping[str, Any]) -> None:
    """Print one row as a line of JSON, at once."""
    click.echo(_json(msgspec.json.encode(row).decode()))


def _json(text: str) -> str:
    """Escape characters that a terminal would act on or cannot show.

    In JSON such characters stand only inside strings, so that the escaped text decodes to the same value.
    """
    if not _can_print(text):
        units = text.encode("utf-16-be", "surrogatepass")
        codes = (int.from_bytes(units[place : place + 2], "big") for place in range(0, len(units), 2))
        text = "".join(chr(code) if code < 0x80 else f"\\u{code:04x}" for code in codes)
    return (
        "".join(character if visible(character) == character else f"\\u{ord(character):04x}" for character in text)
        if visible(text) != text
        else text
    )


def _can_print(text: str) -> bool:
    """Whether the encoding of standard output can represent a text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a sentence for people; control characters in quoted text are escaped."""
    click.echo(visible(text), err=err, nl=nl)


def styled(text: str, style: str = "") -> "Text":
    """Return a text for a table or a live view; control characters and line breaks are escaped."""
    from rich.text import Text  # noqa: PLC0415 - rich costs start-up time

    return Text(visible(text).replace("\n", "\\n"), style=style)


def is_terminal() -> bool:
    """Whether standard output is a terminal; it may also be closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def console() -> "Console":
    """Return the console of stdout; rich obeys NO_COLOR and FORCE_COLOR."""
    from rich.console import Console  # noqa: PLC0415 - rich costs start-up time, and sending a command needs none of it

    # A pipe has no width, and its reader wants whole lines.
    return Console(highlight=False, soft_wrap=False, width=None if is_terminal() else 1000)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; its cells are texts or other renderables."""

    cells: Sequence["RenderableType"]
    style: str = ""


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table that chooses its columns when it is drawn, because the terminal's width is only known then."""

    columns: Sequence[str]
    rows: Sequence[Row]
    right: Sequence[str]
    fit: Fit

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["RenderableType"]:
        """Draw the table."""
        from rich.padding import Padding  # noqa: PLC0415 - rich costs start-up time

        arrangement = arrange(self._sizes(console, options), self.fit, options.max_width)
        drawn = self._part(arrangement)
        for row in self.rows:
            drawn.add_row(*(row.cells[number] for number in arrangement.widths), style=row.style)
            beneath = [number for number in arrangement.below if row.cells[number]]
            if beneath:
                # Tables of rich have no line across columns: end this one, and continue with the same widths.
                yield drawn
                for number in beneath:
                    line = styled(f"{self.columns[number]}: ").append_text(cast("Text", row.cells[number]))
                    yield Padding(line, (0, 0, 0, 2), style=row.style, expand=False)
                drawn = self._part(arrangement, show_header=False)
        if drawn.show_header or drawn.rows:
            yield drawn
        if arrangement.left_out:
            names = ", ".join(name for number, name in enumerate(self.columns) if number in arrangement.left_out)
            yield styled(f"no room for: {names}; {self.fit.shown_by}", style="dim")

    def _sizes(self, console: "Console", options: "ConsoleOptions") -> list[Column]:
        from rich.measure import Measurement  # noqa: PLC0415 - rich costs start-up time

        free = options.update(width=sys.maxsize)
        sizes = []
        for number, name in enumerate(self.columns):
            heading = Measurement.get(console, free, styled(name))
            cells = [Measurement.get(console, free, row.cells[number]) for row in self.rows]
            cell = max((measurement.maximum for measurement in cells), default=0)
            word = max((measurement.minimum for measurement in (heading, *cells)), default=0)
            sizes.append(Column(name, heading.maximum, cell, word))
        return sizes

    def _part(self, arrangement: Arrangement, *, show_header: bool = True) -> "Table":
        from rich import box  # noqa: PLC0415 - rich costs start-up time
        from rich.table import Table  # noqa: PLC0415 - rich costs start-up time

        laid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=show_header)
        for number, width in arrangement.widths.items():
            name = self.columns[number]
            laid.add_column(name, justify="right" if name in self.right else "left", overflow="fold", width=width)
        return laid


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = (), fit: Fit | None = None
) -> FittedTable:
    """Lay rows out in columns, those of `right` aligned right; `fit` says how to save room in a narrow terminal."""
    # Texts instead of markup, because names and reasons may contain brackets.
    return FittedTable(columns, [Row([styled(cell) for cell in row]) for row in rows], right, fit or Fit())


def timestamp(at_ms: int) -> str:
    """Format a time in ISO form, UTC, to the millisecond; times after the last representable date become that date."""
    at = datetime.fromtimestamp(min(at_ms, LAST_MS) / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def duration(milliseconds: float) -> str:
    """Format a duration in its two largest units."""
    seconds = max(0, round(milliseconds / 1000))
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            return f"{seconds // size}{unit}{seconds % size // part:02}{smaller}"
    return f"{seconds}s"


def amount(count: float) -> str:
    """Format bytes in decimal units, like throttles."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(count) >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def at_least(count: float, is_unknown: float) -> str:
    """Format a number of bytes; as a lower bound if part of the copies was not measured."""
    return f">= {amount(count)}" if is_unknown else amount(count)


def plural(count: int, noun: str, many: str | None = None) -> str:
    """Format a count with its noun; `many` is an irregular plural."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def read_text(file: Path, kind: str) -> str:
    """Read a file, or standard input for `-`; messages call it by its `kind`, such as `plan`.

    Raises `ConfigurationError` that names the file.
    """
    try:
        return decode_text(_read_input(kind) if str(file) == "-" else file.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"the {kind} {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the {kind} {file} is not text in UTF-8 or UTF-16: {error}") from error


def _read_input(kind: str) -> bytes:
    """Read standard input as bytes, because Python decodes invalid UTF-8 as surrogates in some locales."""
    if sys.stdin is None:
        raise ConfigurationError(f"the {kind} - cannot be read: standard input is closed")
    return sys.stdin.buffer.read()


def write_text(file: Path, text: str, kind: str) -> None:
    """Write a file, or standard output for `-`. Raises `ConfigurationError` that names the file."""
    if str(file) == "-":
        if sys.stdout is None:
            raise ConfigurationError(f"the {kind} - cannot be written: standard output is closed")
        sys.stdout.write(text)
        # Flush now, so that an error is reported here and not lost at exit.
        sys.stdout.flush()
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"the {kind} {file} cannot be written: {error.strerror}") from error


def listed(things: Iterable[object]) -> str:
    """Join several things with commas, for a sentence or a cell that may be folded."""
    return ", ".join(map(str, things))


def compact_list(replicas: Iterable[int]) -> str:
    """Join replicas without spaces, for a cell that must not be folded."""
    return ",".join(map(str, replicas))
