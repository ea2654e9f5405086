"""How results are printed: data on stdout and nothing else; tables for people, json, jsonl, yaml for programs."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
import msgspec

from drover.cli.columns import Arrangement, Column, Fit, arrange
from drover.events.bounds import visible
from drover.events.fields import LAST_MS

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
FORMATS = ("table", "json", "jsonl", "yaml")


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
            import yaml  # noqa: PLC0415 - few ask for it

            plain = msgspec.to_builtins(document, str_keys=True)
            said = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
            if visible(said) != said or not _can_print(said):
                said = yaml.safe_dump(plain, sort_keys=False, allow_unicode=False)
            click.echo(said, nl=False)


def print_line(row: Mapping[str, Any]) -> None:
    """Print one row as a line of JSON, at once."""
    click.echo(_json(msgspec.json.encode(row).decode()))


def _json(text: str) -> str:
    """Escape what a terminal would act on, and what it cannot show.

    In JSON that stands inside strings only, and reads back as the same.
    """
    if not _can_print(text):
        units = text.encode("utf-16-be", "surrogatepass")
        codes = (int.from_bytes(units[place : place + 2], "big") for place in range(0, len(units), 2))
        text = "".join(chr(code) if code < 0x80 else f"\\u{code:04x}" for code in codes)
    return (
        "".join(one if visible(one) == one else f"\\u{ord(one):04x}" for one in text) if visible(text) != text else text
    )


def _can_print(text: str) -> bool:
    """Whether the encoding of standard output has every character of a text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a sentence for a person; what it quotes cannot act on the terminal."""
    click.echo(visible(text), err=err, nl=nl)


def styled(text: str, style: str = "") -> "Text":
    """Return a text for a table or a live view; what it quotes can neither act on the terminal nor break the line."""
    from rich.text import Text  # noqa: PLC0415 - rich costs start-up time

    return Text(visible(text).replace("\n", "\\n"), style=style)


def is_terminal() -> bool:
    """Whether what is printed goes to a terminal; standard output may also be closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def console() -> "Console":
    """Return the console of stdout; rich obeys NO_COLOR and FORCE_COLOR."""
    from rich.console import Console  # noqa: PLC0415 - rich costs start-up time, and sending a command needs none of it

    # A pipe has no width: whatever reads it wants whole lines.
    return Console(highlight=False, soft_wrap=False, width=None if is_terminal() else 1000)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: its cells are texts, or what else can be drawn."""

    cells: Sequence["RenderableType"]
    style: str = ""


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table that chooses its columns only when it is drawn: before that, nobody knows how wide the terminal is."""

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
            told = [number for number in arrangement.below if row.cells[number]]
            if told:
                # A table has no line across its columns: it ends here, and another one goes on with the same widths.
                yield drawn
                for number in told:
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
            cell = max((one.maximum for one in cells), default=0)
            word = max((one.minimum for one in (heading, *cells)), default=0)
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
    """Lay rows out in columns; those named in `right` are numbers. `fit` says what a narrow terminal goes without."""
    # Text and not markup: a topic's name may hold brackets.
    return FittedTable(columns, [Row([styled(cell) for cell in row]) for row in rows], right, fit or Fit())


def timestamp(at_ms: int) -> str:
    """Write a moment in ISO form, UTC, to the millisecond; a later one than dates reach as the last of them."""
    at = datetime.fromtimestamp(min(at_ms, LAST_MS) / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def duration(milliseconds: float) -> str:
    """Write how long something takes in the two largest units."""
    seconds = max(0, round(milliseconds / 1000))
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            return f"{seconds // size}{unit}{seconds % size // part:02}{smaller}"
    return f"{seconds}s"


def amount(count: float) -> str:
    """Write bytes in decimal units, as the throttles are given."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(count) >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def at_least(count: float, is_unknown: float) -> str:
    """Write a number of bytes, as a lower bound if more may have been copied than anybody measured."""
    return f">= {amount(count)}" if is_unknown else amount(count)


def plural(count: int, noun: str, many: str | None = None) -> str:
    """Write a number of things; `many` is the plural where an `s` does not make it."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"
