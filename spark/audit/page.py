"""An audit as one HTML file: its plots, totals and sections; opens without network and runs no script.

Every value is escaped by the template's engine, since users wrote some of them; only the plots are put in as they are.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from spark.audit import plots
from spark.audit.report import Report
from spark.audit.sections import SECTIONS

# A browser takes seconds for more; the other forms have all rows.
MAX_ROWS = 5000


def page(report: Report, *, log: str, asked: Mapping[str, str], end_ms: int) -> str:
    """Return the page; `log` names the log, `asked` holds the filters in words, `end_ms` is when the part ends."""
    environment = Environment(
        loader=PackageLoader("spark.audit"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    reassignments = report.sections["reassignments"]
    drawn = {
        "Moves per broker": plots.moves_per_broker(reassignments, end_ms),
        "Bytes copied, summed up": plots.bytes_over_time(reassignments),
    }
    return environment.get_template("audit.html").render(
        report=report,
        log=log,
        asked=asked,
        # Made here from numbers and fixed words.
        plots={title: Markup(svg) for title, svg in drawn.items() if svg},  # noqa: S704
        totals={name: _cell(name, value) for name, value in report.totals.items()},
        sections=[SECTIONS[name] for name in report.sections],
        max_rows=MAX_ROWS,
        cell=_cell,
    )


def _cell(name: str, value: Any) -> str:
    """Write a value as people read it: moments in UTC, durations in seconds, bytes in groups of three digits."""
    if value is None:
        return "-"
    if name.endswith("_ms"):
        is_span = name == "duration_ms" or name.startswith("completed_")
        return f"{value / 1000:,.1f} s" if is_span else _moment(value)
    return (
        f"{value:,}" if isinstance(value, int) and name not in {"offset", "began_offset", "partition"} else str(value)
    )


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
