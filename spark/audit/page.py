"""An audit as one HTML file: its plots, totals and sections; opens without network and runs no script.

Every value is escaped by the template's engine, since users wrote some of them; only the plots are put in as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from drover.events.fields import LAST_MS
from drover.spark.audit import plots
from drover.spark.audit.cells import Cell, cell, copied, span
from drover.spark.audit.facts import Row
from drover.spark.audit.report import Report
from drover.spark.audit.sections import SECTIONS

# A browser takes seconds for more. The other forms have all rows.
MAX_ROWS = 5000
# The totals in groups, each with its title; those in the second list stand out when they are not 0.
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Asked": ("commands", "accepted_commands", "refused_commands", "repeated_commands", "refusals"),
    "Done": ("plans", "reassignments", "completed", "rolled_back", "stopped", "failed", "under_way"),
    "Copied": ("bytes_copied", "cancels_asked_for"),
    "Durations of completed moves": ("completed_p50_ms", "completed_p95_ms", "completed_longest_ms"),
}
_ALERTS = frozenset({"refused_commands", "refusals", "rolled_back", "failed"})
_TITLES = {"completed_p50_ms": "median", "completed_p95_ms": "95th percentile", "completed_longest_ms": "longest"}


@dataclass(frozen=True, slots=True)
class Made:
    """The origin of the page: the log, Drover's version, the time when it was made, and the filters in words.

    `since_ms` and `end_ms` bound the part: None for the log's beginning, and for an end that only its records show.
    """

    log: str
    version: str
    made_ms: int
    end_ms: int | None
    since_ms: int | None = None
    asked: Mapping[str, str] = field(default_factory=dict)


def page(report: Report, made: Made) -> str:
    """Return the page of an audit."""
    environment = Environment(
        loader=PackageLoader("drover.spark.audit"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    reassignments = report.sections["reassignments"]
    end_ms = _last_ms(report) if made.end_ms is None else made.end_ms
    drawn = {
        "Moves per broker": plots.moves_per_broker(reassignments, end_ms),
        "Bytes copied, summed up": plots.bytes_over_time(reassignments),
    }
    places = _Places(report)
    return environment.get_template("audit.html").render(
        report=report,
        made=made,
        clusters=sorted({row["cluster"] for rows in report.sections.values() for row in rows if "cluster" in row}),
        # Safe, because they are made from numbers and fixed words.
        plots={title: Markup(svg) for title, svg in drawn.items() if svg},  # noqa: S704
        groups=_groups(report.totals),
        sections=[SECTIONS[name] for name in report.sections],
        max_rows=MAX_ROWS,
        moment=_moment,
        places=places,
        cell=partial(cell, moment=_moment),
    )


def _last_ms(report: Report) -> int | None:
    """Return the last time in any row, up to which the state of moves under way is known."""
    columns = {"reassignments": ("began_ms", "started_ms", "ended_ms"), "commands": ("at_ms",)}
    moments = (row[column] for name, ones in columns.items() for row in report.sections[name] for column in ones)
    return max((moment for moment in moments if moment is not None), default=None)


def _groups(totals: Mapping[str, int | None]) -> dict[str, dict[str, Cell]]:
    """Return the totals that there are, by group and name."""
    groups = {}
    for title, names in _GROUPS.items():
        cells = {
            _TITLES.get(name, name.replace("_", " ")): _total(name, value, totals)
            for name in names
            if (value := totals.get(name)) is not None
        }
        if cells:
            groups[title] = cells
    return groups


def _total(name: str, value: int, totals: Mapping[str, int | None]) -> Cell:
    if name == "bytes_copied":
        return copied(value, totals.get("bytes_unknown") or 0)
    if name.endswith("_ms"):
        return Cell(span(value), f"{value:,} ms")
    return Cell(f"{value:,}", kind="alert" if value and name in _ALERTS else None)


class _Places:
    """The rows that others refer to: each plan, each requester, and the first reassignment of a plan."""

    def __init__(self, report: Report) -> None:
        self._ids: dict[int, str] = {}
        self._plans: dict[Any, str] = {}
        self._moves: dict[Any, str] = {}
        self._people: dict[Any, str] = {}
        sections = report.sections
        for number, row in enumerate(sections["plans"][:MAX_ROWS]):
            self._plans[row["cluster"], row["plan"]] = self._ids[id(row)] = f"plans-{number}"
        for number, row in enumerate(sections["requesters"][:MAX_ROWS]):
            self._people[row["requester"]] = self._ids[id(row)] = f"requesters-{number}"
        for number, row in enumerate(sections["reassignments"][:MAX_ROWS]):
            name = (row["cluster"], row["plan"])
            if name not in self._moves:
                self._moves[name] = self._ids[id(row)] = f"reassignments-{number}"

    def id_of(self, row: Row) -> str | None:
        """Return the id of a row that others refer to."""
        return self._ids.get(id(row))

    def link(self, section: str, column: str, row: Row) -> str | None:
        """Return the id of the row that a value refers to: from a plan to its moves, from a move to its plan."""
        if column == "plan":
            return (self._moves if section == "plans" else self._plans).get((row["cluster"], row["plan"]))
        if column in {"requester", "by", "cancelled_by"} and section != "requesters":
            return self._people.get(row[column])
        return None


def _moment(at_ms: int) -> str:
    return (
        datetime.fromtimestamp(min(at_ms, LAST_MS) / 1000, UTC)
        .isoformat(sep=" ", timespec="milliseconds")
        .replace("+00:00", "Z")
    )
