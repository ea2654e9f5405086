"""The plots of an audit, as SVG for a page without external resources.

They draw no text of users, only states, names of clusters, broker ids, times and bytes.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib import dates
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter

from drover.spark.audit.facts import Row

# Up to this many lines are drawn as lines; more of them as one picture, so that a browser can open the page.
MAX_LINES = 2000
# In inches: the page is about 14 wide.
WIDTH = 13
# No line is shorter than this part of the plot.
LEAST_SHARE = 0.002
_COLOURS = {
    "completed": "#1b7f4d",
    "rolled-back": "#c77700",
    "stopped": "#7a5fb5",
    "failed": "#c0392b",
    "under way": "#2f6fab",
}
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "drover", "font.family": "sans-serif", "font.size": 9}
# matplotlib's stubs lack its types.
_dates: Any = dates
_UNSAID = ("Creator", "Date", "Format", "Type")


def moves_per_broker(reassignments: Iterable[Row], end_ms: int | None) -> str:
    """Draw for every broker a line from the first step to the end of each move that copied to it.

    Moves that had not ended are drawn to `end_ms`. Empty if there were no copies.
    """
    lanes: dict[tuple[str, int], list[tuple[float, float, str]]] = {}
    for row in reassignments:
        if row["started_ms"] is None:
            continue
        until_ms = max(row["ended_ms"] or end_ms or row["started_ms"], row["started_ms"])
        state = row["state"] if row["state"] in _COLOURS else "under way"
        span = (_day(row["started_ms"]), _day(until_ms), _COLOURS[state])
        for broker in _added(row):
            lanes.setdefault((row["cluster"], broker), []).append(span)
    if not lanes:
        return ""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(WIDTH, 1.2 + 0.6 * len(lanes)), layout="constrained")
        axes = figure.add_subplot()
        span_days = max(last for lane in lanes.values() for _, last, _ in lane) - min(
            first for lane in lanes.values() for first, _, _ in lane
        )
        lines, colours = [], []
        for number, lane in enumerate(sorted(lanes)):
            for place, (first, last, colour) in enumerate(sorted(lanes[lane])):
                # Side by side, so that concurrent moves can be told apart.
                height = number + 0.35 * ((place % 9) / 4 - 1)
                # Long enough to be visible.
                lines.append([(first, height), (max(last, first + span_days * LEAST_SHARE), height)])
                colours.append(colour)
        axes.add_collection(
            LineCollection(lines, colors=colours, linewidths=2, capstyle="round", rasterized=len(lines) > MAX_LINES)
        )
        axes.set_yticks(range(len(lanes)), [_lane(lane, lanes) for lane in sorted(lanes)])
        axes.set_ylim(len(lanes) - 0.5, -0.5)
        for number in range(1, len(lanes)):
            axes.axhline(number - 0.5, color="#bbbbbb", linewidth=0.8)
        axes.autoscale_view(scaley=False)
        _in_time(axes)
        shown = [
            Line2D([], [], color=colour, linewidth=2, label=state)
            for state, colour in _COLOURS.items()
            if colour in colours
        ]
        figure.legend(handles=shown, loc="outside upper center", ncols=len(shown), frameon=False)
        return _svg(figure)


def bytes_over_time(reassignments: Iterable[Row]) -> str:
    """Draw the sum of the bytes copied by ended moves over time; empty if there are none."""
    ends = sorted((row["ended_ms"], row["bytes_copied"] or 0) for row in reassignments if row["ended_ms"] is not None)
    if not any(copied for _, copied in ends):
        return ""
    days, sums, total = [], [], 0
    for at_ms, copied in ends:
        total += copied
        days.append(_day(at_ms))
        sums.append(total)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
        axes = figure.add_subplot()
        axes.step(days, sums, where="post", color="#2f6fab", linewidth=1.5, rasterized=len(days) > MAX_LINES)
        axes.plot(days, sums, ".", color="#2f6fab", markersize=4, rasterized=len(days) > MAX_LINES)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(EngFormatter(unit="B"))
        _in_time(axes)
        return _svg(figure)


def _added(row: Row) -> list[int]:
    before = set(_brokers(row["original"]))
    return [broker for broker in _brokers(row["target"]) if broker not in before]


def _brokers(text: str | None) -> list[int]:
    return [int(broker) for broker in (text or "").split(",") if broker]


def _lane(lane: tuple[str, int], lanes: Iterable[tuple[str, int]]) -> str:
    cluster, broker = lane
    return f"broker {broker}" if len({name for name, _ in lanes}) == 1 else f"{cluster} broker {broker}"


def _day(at_ms: int) -> float:
    return float(_dates.date2num(datetime.fromtimestamp(at_ms / 1000, UTC)))


def _in_time(axes: Any) -> None:
    locator = _dates.AutoDateLocator(tz=UTC, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(_dates.ConciseDateFormatter(locator, tz=UTC))
    axes.set_xlabel("UTC")
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _svg(figure: Figure) -> str:
    """Return the SVG element without the prologue of a file, which refers to an external document type."""
    file = StringIO()
    figure.savefig(file, format="svg", metadata=dict.fromkeys(_UNSAID))
    text = file.getvalue()
    return text[text.index("<svg") :]
