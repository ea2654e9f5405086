"""`drover status`: what is moving, its progress, and why it waits; reads only the log and asks no worker."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from drover.cli.exits import ExitCode, Failure
from drover.cli.help import PLANS, TOPICS, did_you_mean, drover_command
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import (
    FORMATS,
    Fit,
    FittedTable,
    Row,
    amount,
    compact_list,
    console,
    duration,
    is_terminal,
    plural,
    print_document,
    print_line,
    say,
    styled,
    table,
    timestamp,
)
from drover.cli.plan_file import stock_json
from drover.cli.plans import ends_in, plans_under_way
from drover.client.ends import APPEARS_WITHIN_S, PlanEnd
from drover.client.live_view import View, look, watch
from drover.client.transfers import FRESH_MS
from drover.client.views.plan_end import Tally
from drover.client.views.plan_rows import PlanRow, figures, plan_row, plan_rows
from drover.client.views.present import clusters_of, queue_of, rows_of, unmanaged_of
from drover.client.views.shard_rows import ShardRow, ownership_conflicts, shard_rows
from drover.client.views.status_rows import StatusRow, UnmanagedRow, cluster_document, notices, totals
from drover.client.views.wait_groups import wait_groups
from drover.client.views.waiting_rows import QueueRow
from drover.journal.connection import LogConnection
from drover.state.cluster import ClusterState
from drover.state.phase import Phase

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

COLUMNS = (
    "partition", "plan", "state", "step", "replicas", "done", "of", "%", "rate", "eta", "for", "waits for",
)  # fmt: skip
UNMANAGED_COLUMNS = ("moved by others", "replicas", "adding", "removing", "for", "what to do")
MOST_UNMANAGED_ROWS = 20
QUEUE_COLUMNS = ("in the queue", "id", "plan", "target", "for", "waits for")
RIGHT = ("step", "done", "of", "%", "rate", "eta", "for")
# How a narrow terminal saves room: the rows always show the partition, its state, and why it waits.
SPARE = ("step", "of", "done", "replicas", "for", "%", "plan", "eta", "rate")
SHOWN_BY = "a wider terminal or `drover status -o json` shows them"
FIT = Fit(below=("waits for",), spare=SPARE, shown_by=SHOWN_BY)
UNMANAGED_FIT = Fit(below=("what to do",), spare=("for", "replicas", "removing", "adding"), shown_by=SHOWN_BY)
QUEUE_FIT = Fit(below=("waits for",), spare=("target", "for", "plan", "id"), shown_by=SHOWN_BY)
COLOURS = {"copying": "green", "pending": "dim"}
PAUSE_S = 0.5
# Lines of a live view outside the table: headings, notices, totals.
OTHER_LINES = 8
STOCK = "stock"


@dataclass(frozen=True, slots=True)
class Choice:
    """A filter for `drover status`: by cluster, plan, topic and state; everything by default."""

    cluster: str | None = None
    plan: str | None = None
    topic: str | None = None
    state: str | None = None
    by_partition: bool = False

    @property
    def is_all(self) -> bool:
        """Whether the filter lets everything pass."""
        return self.plan is None and self.topic is None and self.state is None

    @property
    def shows_partitions(self) -> bool:
        """Whether there is a row for each partition, and not one for each plan: a plan is of several topics."""
        return self.by_partition or self.topic is not None or self.state is not None

    def plans(self, view: View) -> list[PlanRow]:
        """Return the plans under way, or the one that was asked for, even if it has ended."""
        counted = [
            (state, figures(state, view.transfers, view.now_ms)) for state, _, _ in clusters_of(view, self.cluster)
        ]
        if self.plan is None:
            rows = [row for state, tallies in counted for row in plan_rows(state, tallies)]
            return [row for row in rows if row.tally.under_way or row.queued]
        named = [plan_row(state, self.plan, tallies) for state, tallies in counted]
        return [row for row in named if row is not None]

    def rows(self, view: View) -> list[StatusRow]:
        """Return the reassignments that match."""
        return rows_of(view, self.cluster, self.plan, topic=self.topic, state=self.state)

    def queue(self, view: View) -> list[QueueRow]:
        """Return the entries of the queue that match; a filter by state leaves out all of them."""
        return [] if self.state is not None else queue_of(view, self.cluster, self.plan, topic=self.topic)


def status_layout(
    view: View, choice: Choice, most_rows: int | None = None, *, is_live: bool = False
) -> "RenderableType":
    """Lay out the current state; `most_rows` limits the reassignments, and the queue gets the rows that are left."""
    from rich.console import Group  # noqa: PLC0415 - rich costs start-up time

    rows = choice.rows(view)
    queue = choice.queue(view)
    states = [state for state, _, _ in clusters_of(view, choice.cluster)]
    several, now_ms = len(states) > 1, int(time.time() * 1000)
    parts: list[RenderableType] = [
        styled(row.sentence(view.now_ms), style=_style_of(row, view.now_ms)) for row in _shards(view, states)
    ]
    parts += [styled(line, style="yellow") for line in ownership_conflicts(shard_rows(view))]
    parts += [
        styled(line, style="yellow")
        for state in states
        for line in notices(state, view.projections.get(state.name), view.now_ms)
    ]
    if choice.shows_partitions and rows:
        parts.append(_moves_table(rows[:most_rows], now_ms, several=several, live=is_live))
    if choice.shows_partitions and most_rows is not None and len(rows) > most_rows:
        hint = "" if is_live else ": use --limit, --plan, --topic or --state to choose, or -o json to see all"
        parts.append(styled(f"and {len(rows) - most_rows:,} more{hint}", style="dim"))
    if not choice.shows_partitions:
        parts += _plans_and_waits(choice.plans(view), rows, most_rows, several=several)
    unmanaged = unmanaged_of(view, choice.cluster) if choice.is_all else []
    if unmanaged:
        drawn = [
            Row(
                [styled(cell) for cell in unmanaged_cells(row, now_ms, several=several)],
                "yellow" if row.never_ends else "dim",
            )
            for row in unmanaged[:MOST_UNMANAGED_ROWS]
        ]
        parts.append(FittedTable(UNMANAGED_COLUMNS, drawn, ("for",), UNMANAGED_FIT))
    if len(unmanaged) > MOST_UNMANAGED_ROWS:
        parts.append(styled(f"and {len(unmanaged) - MOST_UNMANAGED_ROWS:,} more moves of others", style="dim"))
    fitting = None if most_rows is None else max(1, most_rows - len(rows))
    if choice.shows_partitions and queue:
        cells = [queue_cells(row, now_ms, several=several) for row in queue[:fitting]]
        parts.append(table(QUEUE_COLUMNS, cells, right=("for",), fit=QUEUE_FIT))
    if choice.shows_partitions and fitting is not None and len(queue) > fitting:
        parts.append(styled(f"and {len(queue) - fitting:,} more in the queue", style="dim"))
    parts.append(styled(summary(rows, len(queue), end_of(view, choice))))
    return Group(*parts)


def _plans_and_waits(
    plans: Sequence[PlanRow], rows: Sequence[StatusRow], most_rows: int | None, *, several: bool
) -> "list[RenderableType]":
    """Lay out a line for each plan, and how many partitions wait for what; `most_rows` limits either."""
    parts: list[RenderableType] = []
    if plans:
        parts.append(plans_under_way(plans[:most_rows], several=several))
    if most_rows is not None and len(plans) > most_rows:
        parts.append(styled(f"and {len(plans) - most_rows:,} more plans", style="dim"))
    groups = wait_groups(rows)
    parts += [
        styled(f"{group.cluster}: {group.sentence}" if several else group.sentence) for group in groups[:most_rows]
    ]
    if most_rows is not None and len(groups) > most_rows:
        parts.append(styled(f"and {len(groups) - most_rows:,} more reasons to wait", style="dim"))
    if rows:
        parts.append(styled("`drover status --partitions` shows each partition.", style="dim"))
    return parts


def _shards(view: View, states: Sequence[ClusterState]) -> list[ShardRow]:
    """Return the shards to show: those with clusters or, if there are none, those without an owner."""
    rows = shard_rows(view)
    homes = {shard for shard, fold in view.log.folds.items() if any(fold.state.clusters.get(it.name) for it in states)}
    named = [row for row in rows if row.shard in homes or row.undecided]
    return named or [row for row in rows if not row.is_owned][:1]


def _style_of(row: ShardRow, now_ms: int) -> str:
    return "dim" if row.is_owned and row.silent_ms(now_ms) is None else "yellow"


def end_of(view: View, choice: Choice) -> Tally:
    """Return the tally, with the estimated end, of a plan or of everything; of a topic or state, without an end."""
    states = [state for state, _, _ in clusters_of(view, choice.cluster)]
    if choice.topic is not None or choice.state is not None or len(states) != 1:
        return Tally()
    counted = figures(states[0], view.transfers, view.now_ms)
    return counted.total if choice.plan is None else counted.plans.get(choice.plan, Tally())


def summary(rows: Sequence[StatusRow], queued: int = 0, end: Tally | None = None) -> str:
    """Sum up in one line; `queued` counts the partitions in the queue, `end` has the time at which all of it ends."""
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
    ends = "" if end is None else ends_in(end)
    return line + (f", ends in {ends}" if ends else "") + waiting


def _moves_table(rows: Sequence[StatusRow], now_ms: int, *, several: bool, live: bool) -> FittedTable:
    from rich.progress_bar import ProgressBar  # noqa: PLC0415 - rich costs start-up time

    drawn = []
    for row in rows:
        cells: list[RenderableType] = [styled(cell) for cell in status_cells(row, now_ms, several=several)]
        if live and row.fraction is not None:
            cells[COLUMNS.index("%")] = ProgressBar(total=1.0, completed=row.fraction, width=12)
        colour = "yellow" if row.deferred else COLOURS.get(row.state, "yellow" if row.waiting else "")
        drawn.append(Row(cells, colour))
    return FittedTable(COLUMNS, drawn, RIGHT, FIT)


def queue_cells(row: QueueRow, now_ms: int, *, several: bool) -> tuple[str, ...]:
    """Format an entry of the queue; with `several` clusters, its name includes the cluster."""
    return (
        _name(row, several=several),
        row.id,
        row.plan,
        compact_list(row.target),
        duration(now_ms - row.since_ms),
        row.waiting,
    )


def unmanaged_cells(row: UnmanagedRow, now_ms: int, *, several: bool) -> tuple[str, ...]:
    """Format a move that is not Drover's; with `several` clusters, its name includes the cluster."""
    return (
        _name(row, several=several),
        compact_list(row.replicas),
        compact_list(row.adding),
        compact_list(row.removing),
        duration(now_ms - row.since_ms),
        row.remedy,
    )


def status_cells(row: StatusRow, now_ms: int, *, several: bool) -> tuple[str, ...]:
    """Format a reassignment; with `several` clusters, its name includes the cluster."""
    fraction = row.fraction
    return (
        _name(row, several=several),
        row.plan,
        row.state,
        str(row.step or "-"),
        f"{compact_list(row.original)} → {compact_list(row.target)}"
        + ("" if row.next_target is None else f", then {compact_list(row.next_target)} in {row.next_plan}"),
        "-" if row.bytes_done is None else amount(row.bytes_done),
        "-" if row.bytes_total is None else amount(row.bytes_total),
        "-" if fraction is None else f"{fraction * 100:.0f}",
        _rate(row, now_ms),
        "-" if row.eta_ms is None else duration(row.eta_ms),
        duration(now_ms - row.since_ms),
        "; ".join(part for part in (row.waiting, row.deferred) if part),
    )


def _name(row: StatusRow | QueueRow | UnmanagedRow, *, several: bool) -> str:
    name = f"{row.topic}:{row.partition}"
    return f"{row.cluster}/{name}" if several else name


def _rate(row: StatusRow, now_ms: int) -> str:
    """Format the rate; without a recent sample, the age of the last one."""
    if row.rate is not None:
        return f"{amount(row.rate)}/s"
    if row.seen_ms is None or now_ms - row.seen_ms <= FRESH_MS:
        return "-"
    return f"last seen {duration(now_ms - row.seen_ms)} ago"


def follow_status(connection: LogConnection, choice: Choice, output: str) -> None:
    """Show what was chosen until it has ended; Ctrl-C ends it, too.

    Raises `Failure` for a plan that the state does not have.
    """
    if choice.plan is None:
        asyncio.run(
            _show(watch(connection, choice.cluster, PAUSE_S), choice, output, lambda view: is_idle(view, choice))
        )
        return
    end = _end_of(choice.plan)
    ended = _by_views(end, choice.cluster)
    asyncio.run(_show(watch(connection, choice.cluster, PAUSE_S), choice, output, ended))
    if not end.last:
        raise no_such_plan(choice.plan, choice.cluster, end.names)


def is_idle(view: View, choice: Choice) -> bool:
    """Whether nothing that was chosen is under way or queued, and no command or part of a plan is still to come."""
    if choice.rows(view) or choice.queue(view) or any(view.undecided.values()):
        return False
    return not any(plan.more for state, _, _ in clusters_of(view, choice.cluster) for plan in state.plans.values())


def no_such_plan(plan: str, cluster: str | None, names: Iterable[str]) -> Failure:
    """Return the failure for a plan that the state does not have, with the names that are like it."""
    where = "" if cluster is None else f" in {cluster}"
    near = did_you_mean(plan, names)
    remedy = f" {near}" if near else " `drover plans` lists them, and `drover history` also has those of long ago."
    return Failure(f"there is no plan {plan}{where}.{remedy}")


def follow_plan(connection: LogConnection, cluster: str, plan: str, output: str) -> ExitCode:
    """Show a plan until it has ended and return its exit code: done if all of it completed, else failed.

    Ctrl-C detaches. Raises `Failure` for a plan that ended so long ago that the state no longer has it.
    """
    end = _end_of(plan)
    try:
        asyncio.run(_show(watch(connection, cluster, PAUSE_S), Choice(cluster, plan), output, _by_views(end, cluster)))
    except KeyboardInterrupt:
        say(
            f"Detached; plan {plan} goes on. "
            f"Look again with: drover status --cluster {cluster} --plan {plan} --follow, "
            f"or drover history --cluster {cluster} --plan {plan}",
            err=True,
        )
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
    if not end.last:
        raise Failure(
            f"plan {plan} ended long ago, and the state no longer has it; to see how it ended, run: "
            f"drover history --cluster {cluster} --plan {plan}"
        )
    (ended,) = end.last
    say(
        f"Plan {plan} has ended: {plural(ended.completed, 'partition')} completed, {ended.rolled_back} rolled back, "
        f"{ended.stopped} stopped, {ended.failed} failed, {ended.withdrawn} withdrawn.",
        err=True,
    )
    if not (ended.rolled_back or ended.stopped or ended.failed or ended.withdrawn):
        return ExitCode.DONE
    say(f"To see why partitions were not completed, run: drover history --cluster {cluster} --plan {plan}", err=True)
    return ExitCode.FAILED


def _end_of(plan: str) -> PlanEnd:
    return PlanEnd(plan, time.monotonic() + APPEARS_WITHIN_S)


def _by_views(end: PlanEnd, cluster: str | None) -> Callable[[View], bool]:
    """Return a function that says whether the plan has ended by a view, in this cluster or in all that have it."""
    return lambda view: end.see((state for state, _, _ in clusters_of(view, cluster)), time.monotonic())


async def _show(views: AsyncGenerator[View, None], choice: Choice, output: str, ended: Callable[[View], bool]) -> None:
    async with aclosing(views) as watching:
        if output == "table" and is_terminal():
            await _show_live(watching, choice, ended)
        else:
            await _show_lines(watching, choice, output, ended)


async def _show_live(views: AsyncGenerator[View, None], choice: Choice, ended: Callable[[View], bool]) -> None:
    from rich.live import Live  # noqa: PLC0415 - rich costs start-up time

    screen = console()
    with Live(console=screen, auto_refresh=False, vertical_overflow="crop") as live:
        async for view in views:
            live.update(fitting(screen, view, choice), refresh=True)
            if ended(view):
                return


def fitting(screen: "Console", view: View, choice: Choice) -> "RenderableType":
    """Lay out as many rows as fit the screen; in a narrow one a row may take several lines."""
    rows = max(1, screen.height - OTHER_LINES)
    while True:
        laid = status_layout(view, choice, most_rows=rows, is_live=True)
        excess = len(screen.render_lines(laid, pad=False)) - screen.height
        if excess <= 0 or rows == 1:
            return laid
        # Rows differ in height: remove a third of the excess at a time, so that the last step does not remove too many.
        rows = max(1, rows - max(1, excess // 3))


async def _show_lines(
    views: AsyncGenerator[View, None], choice: Choice, output: str, ended: Callable[[View], bool]
) -> None:
    """Print a line for each change; on stderr if stdout holds a document for programs, which must stay intact."""
    shown: dict[tuple[str, str, int], StatusRow] = {}
    counted: tuple[list[tuple[str, str, int]], int] | None = None
    unowned: dict[int, str] = {}
    is_for_people, beside = output != "jsonl", output not in {"table", "jsonl"}
    async for view in views:
        if is_for_people:
            unowned = _print_ownership(view, unowned, beside=beside)
        rows = {(row.cluster, row.topic, row.partition): row for row in choice.rows(view)}
        for key, row in rows.items():
            if shown.get(key) != row:
                _print_row(row, shown.get(key), output, beside=beside)
        for key in shown.keys() - rows.keys():
            _print_gone(shown[key], output, beside=beside)
        queued = len(choice.queue(view))
        if is_for_people and counted != (list(rows), queued):
            counted = (list(rows), queued)
            say(summary(list(rows.values()), queued), err=beside)
        shown = rows
        if ended(view):
            return


def _print_ownership(view: View, unowned: dict[int, str], *, beside: bool) -> dict[int, str]:
    """Print each loss and return of a shard's owner once; return the shards without an owner."""
    now = {row.shard: row for row in shard_rows(view)}
    for shard, row in now.items():
        if row.is_owned == (shard in unowned):
            say(row.sentence(view.now_ms), err=beside)
    return {shard: row.owner for shard, row in now.items() if not row.is_owned}


def _print_row(row: StatusRow, before: StatusRow | None, output: str, *, beside: bool) -> None:
    if output == "jsonl":
        print_line(row.document())
    elif before is None or (before.state, before.step, before.waiting) != (row.state, row.step, row.waiting):
        waits = f", waits for {row.waiting}" if row.waiting else ""
        step = f" step {row.step}" if row.step else ""
        line = f"{timestamp(row.since_ms)} {row.cluster} {row.topic}:{row.partition} {row.state}{step}{waits}"
        say(line, err=beside)


def _print_gone(row: StatusRow, output: str, *, beside: bool) -> None:
    if output == "jsonl":
        print_line({**row.document(), "state": "ended"})
    else:
        say(f"{row.cluster} {row.topic}:{row.partition} ended", err=beside)


@drover_command(example="drover status --plan friday --follow")
@click.option(
    "--follow",
    is_flag=True,
    help="Keep showing until nothing of it is under way: live in a terminal, else a line per change.",
)
@click.option("--plan", shell_complete=PLANS, metavar="NAME", help="Only this plan.")
@click.option("--topic", shell_complete=TOPICS, metavar="T", help="Only this topic's partitions.")
@click.option("--partitions", "by_partition", is_flag=True, help="A row for each partition, and for each in the queue.")
@click.option("--state", type=click.Choice([phase.value for phase in Phase]), help="Only reassignments in this state.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The most rows of the table.")
@click.option(
    "-o",
    "--output",
    type=click.Choice((*FORMATS, STOCK)),
    default="table",
    show_default=True,
    help="How to print; stock is a file for kafka-reassign-partitions with the current targets.",
)
@common_options
@pass_invocation
def status(invocation: Invocation, output: str, *, follow: bool, limit: int, **chosen: Any) -> None:
    """Show the plans under way, how many partitions wait for what, and what needs attention.

    With --partitions, --topic or --state: for each partition its state, step, bytes done of total, rate, time to go,
    time since the last change, and why it waits. Rates are those of the last few seconds; without a recent sample, the
    age of the last one is shown.
    """
    settings = invocation.settings()
    choice = Choice(invocation.cluster_wanted(settings), **chosen)
    connection = settings.log.connection()
    if follow:
        if output not in {"table", "jsonl"}:
            raise click.UsageError(f"--follow goes with -o table or jsonl, not {output}")
        follow_status(connection, choice, output)
        return
    view = asyncio.run(look(connection, choice.cluster))
    if choice.plan is not None and not choice.plans(view):
        names = (name for state, _, _ in clusters_of(view, choice.cluster) for name in state.plans)
        raise no_such_plan(choice.plan, choice.cluster, names)
    if output == STOCK:
        _print_stock(view, choice)
        return
    if output == "table":
        console().print(status_layout(view, choice, most_rows=limit))
    else:
        rows = [row.document() for row in choice.rows(view)]
        print_document(status_document(view, choice), rows, output)


def _print_stock(view: View, choice: Choice) -> None:
    """Print the targets of reassignments, running or waiting, and without a filter those of the moves of others."""
    states = [state for state, _, _ in clusters_of(view, choice.cluster)]
    if len(states) > 1:
        raise click.UsageError("the stock format cannot name a cluster: choose one with --cluster")
    lists = [(row.topic, row.partition, row.destination) for row in choice.rows(view)]
    others = unmanaged_of(view, choice.cluster) if choice.is_all else []
    lists += [(row.topic, row.partition, row.target) for row in others]
    say(stock_json(lists), nl=False)


def status_document(view: View, choice: Choice) -> dict[str, Any]:
    """Return everything that matches, for programs; fields may be added and never changed."""
    rows, cluster, end = choice.rows(view), choice.cluster, end_of(view, choice)
    return {
        "clusters": [
            cluster_document(state, owner, epoch, view.projections.get(state.name))
            for state, owner, epoch in clusters_of(view, cluster)
        ],
        "plans": [row.document() for row in choice.plans(view)],
        "waits": [group.document() for group in wait_groups(rows)],
        "reassignments": [row.document() for row in rows],
        "unmanaged": [row.document() for row in unmanaged_of(view, cluster)],
        "queue": [row.document() for row in choice.queue(view)],
        "shards": [row.document() for row in shard_rows(view)],
        "totals": {**totals(rows), "soonest_ms": end.soonest_ms, "latest_ms": end.latest_ms},
        "positions": {str(shard): position for shard, position in view.log.positions.items()},
    }
