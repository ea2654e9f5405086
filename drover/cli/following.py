"""Showing the present state until all is done or Ctrl-C: live in a terminal, a line per change elsewhere."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import click
from rich.console import Console, RenderableType
from rich.live import Live

from drover.cli.exits import ExitCode, Failure
from drover.cli.output import console, is_terminal, plural, print_line, say, timestamp
from drover.cli.status_view import Choice, layout, summary
from drover.client.views.present import clusters_of
from drover.client.views.shard_rows import shard_rows
from drover.client.views.status_rows import StatusRow
from drover.client.watching import View, watch
from drover.journal.connection import LogConnection
from drover.state.plans import Plan

PAUSE_S = 0.5
# A plan that was accepted is in the log by then, even where a broker of the log lags.
FOUND_WITHIN_S = 10.0
# Lines of a live view that are not the table's: headings, notices, totals.
OTHER_LINES = 8


def follow_status(connection: LogConnection, choice: Choice, output: str) -> None:
    """Show the chosen reassignments until Ctrl-C, or those of a plan until it has ended."""
    ended = (lambda _: False) if choice.plan is None else PlanEnd(choice.cluster, choice.plan)
    asyncio.run(_show(watch(connection, choice.cluster, PAUSE_S), choice, output, ended))


def follow_plan(connection: LogConnection, cluster: str, plan: str, output: str) -> ExitCode:
    """Show a plan until it has ended: done if all of it completed, failed otherwise; Ctrl-C detaches.

    Raises `Failure` for one whose end is forgotten, as of a command that repeats an old one.
    """
    end = PlanEnd(cluster, plan)
    try:
        asyncio.run(_show(watch(connection, cluster, PAUSE_S), Choice(cluster, plan), output, end))
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
            f"plan {plan} ended long ago, and Drover no longer keeps it; to see how it ended, run: "
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
    say(f"What was not completed, and why: drover history --cluster {cluster} --plan {plan}", err=True)
    return ExitCode.FAILED


class PlanEnd:
    """Tells from one view after another whether a plan has ended, in one cluster or in all that have it.

    `last` holds the plan as it was seen last, once for each cluster. A plan that is in no view has ended long ago,
    since only plans that have ended are forgotten; it gets `FOUND_WITHIN_S` to appear, because a broker may lag.
    """

    def __init__(self, cluster: str | None, plan: str) -> None:
        self.last: list[Plan] = []
        self._cluster = cluster
        self._plan = plan
        self._deadline_s = time.monotonic() + FOUND_WITHIN_S

    def __call__(self, view: View) -> bool:
        """Whether the plan has ended by this view."""
        plans = self._plans(view)
        if not plans:
            return bool(self.last) or time.monotonic() > self._deadline_s
        self.last = plans
        return all(plan.is_idle and not plan.more for plan in plans)

    def _plans(self, view: View) -> list[Plan]:
        return [
            state.plans[self._plan] for state, _, _ in clusters_of(view, self._cluster) if self._plan in state.plans
        ]


async def _show(views: AsyncGenerator[View, None], choice: Choice, output: str, ended: Callable[[View], bool]) -> None:
    async with aclosing(views) as watching:
        if output == "table" and is_terminal():
            await _show_live(watching, choice, ended)
        else:
            await _show_lines(watching, choice, output, ended)


async def _show_live(views: AsyncGenerator[View, None], choice: Choice, ended: Callable[[View], bool]) -> None:
    screen = console()
    with Live(console=screen, auto_refresh=False, vertical_overflow="crop") as live:
        async for view in views:
            live.update(fitting(screen, view, choice), refresh=True)
            if ended(view):
                return


def fitting(screen: Console, view: View, choice: Choice) -> RenderableType:
    """Lay out as many rows as the screen has lines for; in a narrow one a row may take several."""
    rows = max(1, screen.height - OTHER_LINES)
    while True:
        laid = layout(view, choice, most_rows=rows, is_live=True)
        excess = len(screen.render_lines(laid, pad=False)) - screen.height
        if excess <= 0 or rows == 1:
            return laid
        # The lines that go with a row are unknown; with a third of what is too much, the last step is a small one.
        rows = max(1, rows - max(1, excess // 3))


async def _show_lines(
    views: AsyncGenerator[View, None], choice: Choice, output: str, ended: Callable[[View], bool]
) -> None:
    """Print a line for each change; behind a document for programs, which ends with its last line, on stderr."""
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
    """Print once that a shard has lost its owner, and that it has one again; returns those without."""
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
