"""How the present is laid out for people: one line per reassignment, a bar where bytes are known, totals below."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar

from drover.cli.columns import Fit
from drover.cli.output import FittedTable, Row, amount, duration, plural, styled, table
from drover.client.transfers import FRESH_MS
from drover.client.views.plan_end import Tally
from drover.client.views.plan_rows import figures
from drover.client.views.present import clusters_of, queue_of, rows_of, unmanaged_of
from drover.client.views.shard_rows import ShardRow, contests, shard_rows
from drover.client.views.status_rows import StatusRow, UnmanagedRow, notices, totals
from drover.client.views.waiting_rows import QueueRow
from drover.client.watching import View
from drover.state.cluster import ClusterState

COLUMNS = (
    "partition", "plan", "state", "step", "replicas", "done", "of", "%", "rate", "eta", "for", "waits for",
)  # fmt: skip
FOREIGN_COLUMNS = ("moved by others", "replicas", "adding", "removing", "for", "what to do")
MOST_UNMANAGED_ROWS = 20
QUEUE_COLUMNS = ("in the queue", "id", "plan", "target", "for", "waits for")
RIGHT = ("step", "done", "of", "%", "rate", "eta", "for")
# What a narrow terminal goes without: the rows must always say what moves, in which state it is, and why it waits.
SPARE = ("step", "of", "done", "replicas", "for", "%", "plan", "eta", "rate")
SHOWN_BY = "a wider terminal or `drover status -o json` shows them"
FIT = Fit(below=("waits for",), spare=SPARE, shown_by=SHOWN_BY)
FOREIGN_FIT = Fit(below=("what to do",), spare=("for", "replicas", "removing", "adding"), shown_by=SHOWN_BY)
QUEUE_FIT = Fit(below=("waits for",), spare=("target", "for", "plan", "id"), shown_by=SHOWN_BY)
COLOURS = {"copying": "green", "queued": "dim"}


@dataclass(frozen=True, slots=True)
class Choice:
    """A filter for `drover status`: by cluster, plan, topic and state; everything by default."""

    cluster: str | None = None
    plan: str | None = None
    topic: str | None = None
    state: str | None = None

    @property
    def is_all(self) -> bool:
        """Whether nothing of the cluster is left out."""
        return self.plan is None and self.topic is None and self.state is None

    def rows(self, view: View) -> list[StatusRow]:
        """Return the reassignments that are meant."""
        return rows_of(view, self.cluster, self.plan, topic=self.topic, state=self.state)

    def queue(self, view: View) -> list[QueueRow]:
        """Return the entries of the queue that are meant; they are in no state of a reassignment."""
        return [] if self.state is not None else queue_of(view, self.cluster, self.plan, topic=self.topic)


def layout(view: View, choice: Choice, most_rows: int | None = None, *, is_live: bool = False) -> RenderableType:
    """Lay the present out; with `most_rows` only so many reassignments are listed, and of the queue what fits below."""
    rows = choice.rows(view)
    queue = choice.queue(view)
    states = [state for state, _, _ in clusters_of(view, choice.cluster)]
    parts: list[RenderableType] = [
        styled(row.sentence(view.now_ms), style=_style_of(row, view.now_ms)) for row in _shards(view, states)
    ]
    parts += [styled(line, style="yellow") for line in contests(shard_rows(view))]
    parts += [
        styled(f"{state.name}: {state.traits}", style="dim")
        for state in states
        if state.traits is not None and state.traits.is_known
    ]
    parts += [
        styled(line, style="yellow")
        for state in states
        for line in notices(state, view.projections.get(state.name), view.now_ms)
    ]
    if rows:
        parts.append(_table(rows[:most_rows], several=len(states) > 1, live=is_live))
    if most_rows is not None and len(rows) > most_rows:
        hint = "" if is_live else ": --limit, --plan, --topic and --state choose, -o json has all"
        parts.append(styled(f"and {len(rows) - most_rows:,} more{hint}", style="dim"))
    unmanaged = unmanaged_of(view, choice.cluster) if choice.is_all else []
    if unmanaged:
        parts.append(_unmanaged_table(unmanaged[:MOST_UNMANAGED_ROWS], several=len(states) > 1))
    if len(unmanaged) > MOST_UNMANAGED_ROWS:
        parts.append(styled(f"and {len(unmanaged) - MOST_UNMANAGED_ROWS:,} more moves of others", style="dim"))
    fitting = None if most_rows is None else max(1, most_rows - len(rows))
    if queue:
        parts.append(_queue_table(queue[:fitting], several=len(states) > 1))
    if fitting is not None and len(queue) > fitting:
        parts.append(styled(f"and {len(queue) - fitting:,} more in the queue", style="dim"))
    parts.append(styled(summary(rows, len(queue), end_of(view, choice))))
    return Group(*parts)


def _shards(view: View, states: Sequence[ClusterState]) -> list[ShardRow]:
    """Choose the shards to name: those with something in them, and those without an owner if there is nothing else."""
    rows = shard_rows(view)
    homes = {shard for shard, fold in view.log.folds.items() if any(fold.state.clusters.get(it.name) for it in states)}
    told = [row for row in rows if row.shard in homes or row.undecided]
    return told or [row for row in rows if not row.is_owned][:1]


def _style_of(row: ShardRow, now_ms: int) -> str:
    return "dim" if row.is_owned and row.silent_ms(now_ms) is None else "yellow"


def end_of(view: View, choice: Choice) -> Tally:
    """Return the tally of what is meant, with its end: of a plan, or of all; of a topic or a state there is no end."""
    states = [state for state, _, _ in clusters_of(view, choice.cluster)]
    if choice.topic is not None or choice.state is not None or len(states) != 1:
        return Tally()
    counted = figures(states[0], view.transfers, view.now_ms)
    return counted.total if choice.plan is None else counted.plans.get(choice.plan, Tally())


def summary(rows: Sequence[StatusRow], queued: int = 0, end: Tally | None = None) -> str:
    """Sum up in one line; `queued` is how many partitions wait in the queue, `end` says when all of them end."""
    waiting = f"; {plural(queued, 'partition')} in the queue" if queued else ""
    if not rows:
        return f"No reassignment is under way{waiting}."
    sums = totals(rows)
    states = ", ".join(f"{count:,} {state}" for state, count in sums["states"].items())
    line = f"{plural(len(rows), 'reassignment')}: {states}"
    if sums["bytes_total"]:
        line += f"; {amount(sums['bytes_done'])} of {amount(sums['bytes_total'])} copied"
        if sums["bytes_unknown"]:
            line += f" without {sums['bytes_unknown']:,} of unknown size"
    if sums["rate"] > 0:
        line += f", {amount(sums['rate'])}/s"
    return line + _ends(end) + waiting


def _ends(tally: Tally | None) -> str:
    """Say in how long all of it ends, waits included; nothing while that is not known."""
    if tally is None or tally.soonest_ms is None or tally.latest_ms is None:
        return ""
    soonest, latest = duration(tally.soonest_ms), duration(tally.latest_ms)
    return f", ends in {soonest}" if soonest == latest else f", ends in {soonest} to {latest}"


def _table(rows: Sequence[StatusRow], *, several: bool, live: bool) -> FittedTable:
    now_ms = int(time.time() * 1000)
    drawn = []
    for row in rows:
        cells: list[RenderableType] = [styled(cell) for cell in cells_of(row, now_ms, several=several)]
        if live and row.fraction is not None:
            cells[COLUMNS.index("%")] = ProgressBar(total=1.0, completed=row.fraction, width=12)
        colour = "yellow" if row.held_off else COLOURS.get(row.state, "yellow" if row.waiting else "")
        drawn.append(Row(cells, colour))
    return FittedTable(COLUMNS, drawn, RIGHT, FIT)


def _queue_table(rows: Sequence[QueueRow], *, several: bool) -> FittedTable:
    now_ms = int(time.time() * 1000)
    cells = [queue_cells(row, now_ms, several=several) for row in rows]
    return table(QUEUE_COLUMNS, cells, right=("for",), fit=QUEUE_FIT)


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


def _unmanaged_table(rows: Sequence[UnmanagedRow], *, several: bool) -> FittedTable:
    now_ms = int(time.time() * 1000)
    drawn = [
        Row(
            [styled(cell) for cell in unmanaged_cells_of(row, now_ms, several=several)],
            "yellow" if row.never_ends else "dim",
        )
        for row in rows
    ]
    return FittedTable(FOREIGN_COLUMNS, drawn, ("for",), FOREIGN_FIT)


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
        _rate(row, now_ms),
        "-" if row.eta_ms is None else duration(row.eta_ms),
        duration(now_ms - row.since_ms),
        "; ".join(part for part in (row.waiting, row.held_off) if part),
    )


def _rate(row: StatusRow, now_ms: int) -> str:
    """Write the rate; without one, since when the bytes are known only from before."""
    if row.rate is not None:
        return f"{amount(row.rate)}/s"
    if row.seen_ms is None or now_ms - row.seen_ms <= FRESH_MS:
        return "-"
    return f"last seen {duration(now_ms - row.seen_ms)} ago"


def _list(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))
