"""A benchmark, the rows that it returns, and the table of docs/performance.md."""

import math
import os
import platform
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.memory import memory_directory

DOCUMENT = Path(__file__).parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- begin: figures -->", "<!-- end: figures -->"
HEAD = "| measured by | what | goal | now |\n| --- | --- | ---: | ---: |"


@dataclass(frozen=True, slots=True)
class AtMost:
    """A figure or ratio should not be larger."""

    value: float
    sign = "≤"

    def holds(self, figure: float) -> bool:
        return figure <= self.value


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A figure should not be smaller."""

    value: float
    sign = "≥"

    def holds(self, figure: float) -> bool:
        return figure >= self.value


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    With a `baseline`, which is in the same unit, the goal is about the ratio of the two; without, about the figure.
    A row without a goal is recorded only.
    """

    name: str
    figure: float
    unit: str
    baseline: float | None = None
    goal: AtMost | AtLeast | None = None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without one."""
        if self.goal is None:
            return None
        return self.goal.holds(self.figure if self.baseline is None else self.figure / self.baseline)

    @property
    def cells(self) -> tuple[str, str, str]:
        """The row's name, goal and figure as the table shows them."""
        figure = f"{number(self.figure)} {self.unit}".strip()
        if self.baseline is not None:
            figure = f"{figure} / {number(self.baseline)} {self.unit} = {self.figure / self.baseline:.2f}"
        unit = self.unit if self.baseline is None else ""
        goal = "" if self.goal is None else f"{self.goal.sign} {number(self.goal.value)} {unit}".strip()
        return self.name, goal, figure if self.met is not False else f"**{figure}**"


class Run(Protocol):
    """Measures and cleans up after itself, also when it is cancelled; `quick` uses small sizes."""

    def __call__(self, *, quick: bool) -> Awaitable[tuple[Row, ...]]: ...


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A measurement by name; its module's docstring says how it measures."""

    name: str
    run: Run


class BenchmarkError(Exception):
    """The work that was to be timed failed, so there is no figure."""


def check(holds: object, message: Callable[[], str] | str) -> None:
    """Raise `BenchmarkError` with the message unless `holds`: a wrong result has no speed."""
    if not holds:
        raise BenchmarkError(message if isinstance(message, str) else message())


def percentile(figures: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile."""
    check(figures, "nothing was measured")
    return sorted(figures)[max(0, math.ceil(len(figures) * percent / 100) - 1)]


def number(value: float) -> str:
    """Write a number with three significant digits, or whole with separators from 100 on."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def say(text: str) -> None:
    """Print progress to stderr."""
    print(f"  {text}", file=sys.stderr, flush=True)


def table(results: Mapping[str, Sequence[Row]]) -> str:
    """Write the rows of each benchmark as one Markdown table."""
    lines = [f"| {' | '.join((f'`{name}`', *row.cells))} |" for name, rows in results.items() for row in rows]
    return "\n".join((HEAD, *lines))


def write(results: Mapping[str, Sequence[Row]]) -> None:
    """Replace the table of docs/performance.md and the machine that it names; the text around it stays."""
    text = DOCUMENT.read_text(encoding="utf-8")
    generated = f"{BEGIN}\n{machine()}.\n\n{table(results)}\n{END}"
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", flags=re.DOTALL)
    written, count = pattern.subn(lambda _: generated, text)
    check(count == 1, f"{DOCUMENT.name} must have the lines {BEGIN} and {END} once, in this order")
    DOCUMENT.write_text(written, encoding="utf-8")


def machine() -> str:
    """Describe the machine on which the figures were taken."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    data = "on a disk" if memory_directory() is None else "in memory"
    return (
        f"{os.cpu_count()} cores ({_processor()}), {memory_gib:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, brokers' data {data}"
    )


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except FileNotFoundError:
        return platform.processor() or "unknown processor"
    model = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    return model[1] if model else "unknown processor"
