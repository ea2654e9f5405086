"""Tables of rows: on the terminal, and in docs/performance.md between the markers of each benchmark."""

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.results import Benchmark, BenchmarkError, Row, number
from tests.memory import memory_directory

DOCUMENT = Path(__file__).parents[1] / "docs" / "performance.md"
HEADINGS = ("what", "figure", "baseline", "ratio", "gate", "goal")


def table(rows: Sequence[Row]) -> str:
    """Write rows as a Markdown table."""
    lines = [f"| {' | '.join(HEADINGS)} |", "| --- | ---: | ---: | ---: | --- | --- |"]
    return "\n".join([*lines, *(f"| {' | '.join(_cells(row))} |" for row in rows)])


def section(benchmark: Benchmark, rows: Sequence[Row]) -> str:
    """Write what docs/performance.md says of one benchmark."""
    said = f"`python -m bench {benchmark.name}`, {datetime.now(UTC):%Y-%m-%d}, {machine()}."
    return f"{said}\n\n{benchmark.method}\n\n{table(rows)}"


def write(benchmark: Benchmark, rows: Sequence[Row]) -> None:
    """Replace the benchmark's generated part of docs/performance.md; what is written around it stays."""
    begin, end = f"<!-- begin: {benchmark.name} -->", f"<!-- end: {benchmark.name} -->"
    text = DOCUMENT.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", flags=re.DOTALL)
    generated = f"{begin}\n{section(benchmark, rows)}\n{end}"
    written, count = pattern.subn(lambda _: generated, text)
    if count != 1:
        raise BenchmarkError(f"{DOCUMENT.name} must have the lines {begin} and {end} once, in this order")
    DOCUMENT.write_text(written, encoding="utf-8")


def machine() -> str:
    """Describe what the figures were taken on."""
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
    found = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    return found[1] if found else "unknown processor"


def _cells(row: Row) -> tuple[str, ...]:
    ratio = row.ratio
    return (
        row.name,
        f"{number(row.figure)} {row.unit}",
        "" if row.baseline is None else f"{number(row.baseline)} {row.unit}",
        "" if ratio is None else f"{ratio:.2f}",
        "" if row.gate is None else f"{row.gate}: {'passed' if row.passed else '**failed**'}",
        "" if row.goal is None else f"{row.goal}: {'met' if row.met else '**missed**'}",
    )
