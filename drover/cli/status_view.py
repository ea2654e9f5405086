"""How the present is laid out for people: one line per reassignment, a bar where bytes are known, totals below."""

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from drover.cli.output import amount, duration, plural, table
from drover.client.views.present import clusters_of, queue_of, rows_of, unmanaged_of
from drover.client.views.status_rows import StatusRow, UnmanagedRow, notices, totals
from drover.client.views.waiting_rows import HeldRow, QueueRow, held_rows
from drover.client.watching import View

COLUMNS = (
    "partition", "plan", "state", "step", "replicas", "done", "of", "%", "rate", "eta", "for", "waits for",
)  # fmt: skip
FOREIGN_COLUMNS = ("moved by others", "replicas", "adding", "removing", "for", "what to do")
MOST_UNMANAGED_ROWS = 20
QUEUE_COLUMNS = ("in the queue", "id", "plan", "target", "for", "waits for")
RIGHT = ("step", "done", "of", "%", "rate", "eta", "for")
COLOURS = {"copying": "green", "queued": "dim"}


def layout(view: View, cluster: str | None, plan: str | None = None, most_rows: int | None = None) -> RenderableType:
    """Lay the present out; with `most_rows` only so many reassignments are listed, and of the queue what fits below."""
    rows = rows_of(view, cluster, plan)
    queue = queue_of(view, cluster, plan)
    states = [state for state, _, _ in clusters_of(view, cluster)]
    parts: list[RenderableType] = [
        Text(line, style="yellow") for state in states for line in notices(state, view.projections.get(state.name))
    ]
    if rows:
        parts.append(_table(rows[:most_rows], several=len(states) > 1, live=most_rows is not None))
    if most_rows is not None and len(rows) > most_rows:
        parts.append(Text(f"and {len(rows) - most_rows:,} more", style="dim"))
    unmanaged = unmanaged_of(view, cluster) if plan is None else []
    if unmanaged:
        parts.append(_unmanaged_table(unmanaged[:MOST_UNMANAGED_ROWS], several=len(states) > 1))
    if len(unmanaged) > MOST_UNMANAGED_ROWS:
        parts.append(Text(f"and {len(unmanaged) - MOST_UNMANAGED_ROWS:,} more moves of others", style="dim"))
    fitting = None if most_rows is None else max(1, most_rows - len(rows))
    if queue:
        parts.append(_queue_table(queue[:fitting], several=len(states) > 1))
    if fitting is not None and len(queue) > fitting:
        parts.append(Text(f"and {len(queue) - fitting:,} more in the queue", style="dim"))
    parts += [Text(held_line(row), style="yellow") for state in states for row in held_rows(state)]
    parts.append(Text(summary(rows, len(queue))))
    return Group(*parts)


def held_line(row: HeldRow) -> str:
    """Say in one line what a command waits for."""
    waited = duration(int(time.time() * 1000) - row.since_ms)
    return f"{row.cluster}: {row.type} {row.id} by {row.by} has waited {waited} for {', '.join(row.after)}"


def summary(rows: Sequence[StatusRow], queued: int = 0) -> str:
    """Sum up in one line; `queued` is how many partitions wait in the queue."""
    waiting = f"; {plural(queued, 'partition')} in the queue" if queued else ""
    if not rows:
        return f"No reassignment is under way{waiting}."
    sums = totals(rows)
    states = ", ".join(f"{count:,} {state}" for state, count in sums["states"].items())
    line = f"{plural(len(rows), 'reassignment')}: {states}"
    if sums["bytes_total"]:
        line += f"; {amount(sums['bytes_done'])} of {amount(sums['bytes_total'])} copied"
    if sums["rate"] > 0:
        line += f", {amount(sums['rate'])}/s"
    return line + waiting


def _table(rows: Sequence[StatusRow], *, several: bool, live: bool) -> Table:
    from rich import box  # noqa: PLC0415 - beside its only use

    laid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in COLUMNS:
        laid.add_column(column, justify="right" if column in RIGHT else "left", no_wrap=column != "waits for")
    now_ms = int(time.time() * 1000)
    for row in rows:
        cells: list[Any] = [Text(cell) for cell in cells_of(row, now_ms, several=several)]
        if live and row.fraction is not None:
            cells[COLUMNS.index("%")] = ProgressBar(total=1.0, completed=row.fraction, width=12)
        laid.add_row(
            *cells, style="yellow" if row.held_off else COLOURS.get(row.state, "yellow" if row.waiting else None)
        )
    return laid


def _queue_table(rows: Sequence[QueueRow], *, several: bool) -> Table:
    now_ms = int(time.time() * 1000)
    return table(QUEUE_COLUMNS, [queue_cells(row, now_ms, several=several) for row in rows], right=("for",))


def queue_cells(row: QueueRow, now_ms: int, *, several: bool) -> tuple[str, ...]:
    """Write one entry of the queue; with `several` clusters each partition says which it is in."""
    name = f"{row.topic}:{row.partition}"
    return (
        f"{row.cluster}/{name}" if several else name,
        row.id,
        row.plan,
        _list(row.target),
        duration(now_ms - row.since_ms),
        row.waiting,
    )


def _unmanaged_table(rows: Sequence[UnmanagedRow], *, several: bool) -> Table:
    from rich import box  # noqa: PLC0415 - beside its only use

    laid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in FOREIGN_COLUMNS:
        laid.add_column(column, justify="right" if column == "for" else "left", no_wrap=column != "what to do")
    now_ms = int(time.time() * 1000)
    for row in rows:
        cells = [Text(cell) for cell in unmanaged_cells_of(row, now_ms, several=several)]
        laid.add_row(*cells, style="yellow" if row.never_ends else "dim")
    return laid


def unmanaged_cells_of(row: UnmanagedRow, now_ms: int, *, several: bool) -> tuple[str, ...]:
    """Write one move that is not Drover's; with `several` clusters each partition says which it is in."""
    name = f"{row.topic}:{row.partition}"
    return (
        f"{row.cluster}/{name}" if several else name,
        _list(row.replicas),
        _list(row.adding),
        _list(row.removing),
        duration(now_ms - row.since_ms),
        row.remedy,
    )


def cells_of(row: StatusRow, now_ms: int, *, several: bool) -> tuple[str, ...]:
    """Write one row; with `several` clusters each partition says which it is in."""
    name = f"{row.topic}:{row.partition}"
    fraction = row.fraction
    return (
        f"{row.cluster}/{name}" if several else name,
        row.plan,
        row.state,
        str(row.step or "-"),
        f"{_list(row.original)} → {_list(row.target)}"
        + ("" if row.next_target is None else f", then {_list(row.next_target)} in {row.next_plan}"),
        "-" if row.bytes_done is None else amount(row.bytes_done),
        "-" if row.bytes_total is None else amount(row.bytes_total),
        "-" if fraction is None else f"{fraction * 100:.0f}",
        "-" if row.rate is None else f"{amount(row.rate)}/s",
        "-" if row.eta_ms is None else duration(row.eta_ms),
        duration(now_ms - row.since_ms),
        "; ".join(part for part in (row.waiting, row.held_off) if part),
    )


def _list(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))
