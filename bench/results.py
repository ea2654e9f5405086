"""What a benchmark is and what it returns: rows whose gates and goals are judged in one place."""

import math
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class AtMost:
    """A figure or ratio must not be larger."""

    value: float

    def holds(self, figure: float) -> bool:
        return figure <= self.value

    def __str__(self) -> str:
        return f"≤ {number(self.value)}"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A figure or ratio must not be smaller."""

    value: float

    def holds(self, figure: float) -> bool:
        return figure >= self.value

    def __str__(self) -> str:
        return f"≥ {number(self.value)}"


Limit = AtMost | AtLeast


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    With a `baseline`, which is in the same unit, gate and goal are about the ratio of the two; without, about the
    figure. A gate that fails makes the run fail, a goal is recorded.
    """

    name: str
    figure: float
    unit: str
    baseline: float | None = None
    gate: Limit | None = None
    goal: Limit | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.baseline is None else self.figure / self.baseline

    @property
    def passed(self) -> bool | None:
        """Whether the gate holds; None without one."""
        return self._judge(self.gate)

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        return self._judge(self.goal)

    def _judge(self, limit: Limit | None) -> bool | None:
        if limit is None:
            return None
        ratio = self.ratio
        return limit.holds(self.figure if ratio is None else ratio)


class Run(Protocol):
    """Measures and cleans up after itself, also when it is cancelled; `quick` is for trying it out."""

    def __call__(self, *, quick: bool) -> Awaitable[tuple[Row, ...]]: ...


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A measurement by name; `method` says in Markdown how it is done, and what `baseline` means."""

    name: str
    title: str
    method: str
    run: Run


class BenchmarkError(Exception):
    """What was measured did not do what it was measured at, so there is no figure."""


def check(holds: object, what: Callable[[], str] | str) -> None:
    """Raise `BenchmarkError` with `what` unless it holds: a wrong result has no speed."""
    if not holds:
        raise BenchmarkError(what if isinstance(what, str) else what())


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
    """Tell whoever waits what is going on."""
    print(f"  {text}", file=sys.stderr, flush=True)
