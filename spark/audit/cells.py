"""Values of an audit as the page shows them: in words, exactly, and with their meaning as a class. Pure."""

from collections.abc import Callable
from typing import NamedTuple

from drover.spark.audit.facts import Row

_SIZES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_SPANS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))
# Numbers that are names, not amounts.
_PLAIN = frozenset({"offset", "began_offset", "partition", "shard"})
_STATES = frozenset({"completed", "rolled-back", "stopped", "failed"})
_VERDICTS = frozenset({"accepted", "refused", "duplicate"})


class Cell(NamedTuple):
    """One value of the page; `exact` is shown on hover and in print, `kind` is a class of the style sheet."""

    text: str
    exact: str | None = None
    kind: str | None = None


def size(count: int) -> str:
    """Write a number of bytes in decimal units."""
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def span(ms: int) -> str:
    """Write a duration in the largest fitting unit."""
    for unit, name in _SPANS:
        if ms >= unit:
            return f"{ms / unit:.1f} {name}"
    return f"{ms / 1000:,.1f} s"


def copied(count: int, unknown: int) -> Cell:
    """Write the bytes copied, with >= where some were not measured."""
    least = ">= " if unknown else ""
    return Cell(f"{least}{size(count)}", f"{least}{count:,} B")


def cell(name: str, row: Row, moment: Callable[[int], str]) -> Cell:
    """Write one value of a row."""
    value = row[name]
    if value is None:
        return Cell("-", kind="nothing")
    if name == "bytes_copied":
        return copied(value, row.get("bytes_unknown") or 0)
    if name == "throttle":
        return Cell(f"{size(value)}/s", f"{value:,} B/s")
    if name == "duration_ms":
        return Cell(span(value), f"{value:,} ms")
    if name.endswith("_ms"):
        return Cell(moment(value))
    if name == "state":
        return Cell(value, kind=value if value in _STATES else "under-way")
    if name == "verdict":
        return Cell(value, kind=value if value in _VERDICTS else None)
    if name in {"failed", "rolled_back", "refused", "refusals", "refused_commands"} and value:
        return Cell(f"{value:,}", kind="alert")
    return Cell(f"{value:,}" if isinstance(value, int) and name not in _PLAIN else str(value))
