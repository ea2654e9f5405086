"""`drover plans`, and plans as rows of a table: how far each is, and when it is expected to end."""

import asyncio
from collections.abc import Iterable, Sequence

import click

from drover.cli.help import drover_command
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import (
    Fit,
    FittedTable,
    amount,
    at_least,
    console,
    duration,
    output_option,
    print_document,
    say,
    table,
    timestamp,
)
from drover.cli.parameters import MOMENT
from drover.client.live_view import View, look
from drover.client.past_plans import read_past_plans
from drover.client.views.plan_end import Tally
from drover.client.views.plan_rows import PlanRow, every_plan_row, figures
from drover.client.views.present import clusters_of

UNDER_WAY_COLUMNS = ("plan", "by", "done", "%", "moving", "waiting", "blocked", "rate", "ends in", "reason")
COLUMNS = (
    "plan", "by", "state", "opened", "done", "%", "not done", "copied", "takes", "ends in", "reason",
)  # fmt: skip
RIGHT = ("done", "%", "moving", "waiting", "blocked", "rate", "copied", "takes", "ends in")
UNDER_WAY_FIT = Fit(prose=("reason",), spare=("reason", "by", "blocked", "rate", "moving", "waiting"))
FIT = Fit(prose=("reason",), spare=("reason", "copied", "not done", "by", "takes", "opened"))


@drover_command(example="drover plans --since 7d --by ana")
@click.option(
    "--since",
    "since_ms",
    type=MOMENT,
    help="Also plans that ended since: 7d, 2026-10-01 or 2026-10-01T15:04Z.",
)
@click.option("--by", metavar="WHO", help="Only plans of this person or program.")
@output_option
@common_options
@pass_invocation
def plans(invocation: Invocation, output: str, since_ms: int | None, by: str | None) -> None:
    """List plans, open and finished, the newest first: how far each is, and when it is expected to end.

    Without --since, of the plans that have ended only those of the last day. With it, the whole log is read.
    """
    settings = invocation.settings()
    connection, cluster = settings.log.connection(), invocation.cluster_wanted(settings)
    rows = rows_of_plans(asyncio.run(look(connection, cluster)), cluster)
    if since_ms is not None:
        rows = since(since_ms, rows, asyncio.run(read_past_plans(connection, cluster)))
    rows = [row for row in rows if by in {None, row.by}]
    if output != "table":
        documents = [row.document() for row in rows]
        print_document({"plans": documents}, documents, output)
    elif rows:
        several = len({row.cluster for row in rows}) > 1
        cells = [_cells(row, several=several) for row in rows]
        console().print(table(COLUMNS, cells, right=RIGHT, fit=FIT))
    else:
        say("There are no such plans." if since_ms is not None or by is not None else "There are no plans.", err=True)


def rows_of_plans(view: View, cluster: str | None) -> list[PlanRow]:
    """Return every plan that the state of the clusters has, by cluster, the newest first."""
    return [
        row
        for state, _, _ in clusters_of(view, cluster)
        for row in every_plan_row(state, figures(state, view.transfers, view.now_ms))
    ]


def since(since_ms: int, rows: Iterable[PlanRow], past: Iterable[PlanRow]) -> list[PlanRow]:
    """Return the plans that have not ended, and those of the past that ended since, by cluster, the newest first."""
    every = {(row.cluster, row.plan, row.opened_ms): row for row in (*past, *rows)}
    chosen = (row for row in every.values() if row.took_ms is None or row.opened_ms + row.took_ms >= since_ms)
    return sorted(chosen, key=lambda row: (row.cluster, -row.opened_ms, row.plan))


def plans_under_way(rows: Sequence[PlanRow], *, several: bool) -> FittedTable:
    """Lay out a line for each plan; with `several` clusters, its name includes the cluster."""
    return table(
        UNDER_WAY_COLUMNS,
        [
            (
                name_of_plan(row, several=several),
                row.by,
                _done(row),
                _percent(row),
                f"{row.tally.moving + row.tally.returning:,}",
                f"{row.tally.waiting + row.queued:,}",
                f"{row.tally.blocked:,}",
                f"{amount(row.tally.rate)}/s" if row.tally.rate > 0 else "-",
                ends_in(row.tally) or "-",
                row.reason,
            )
            for row in rows
        ],
        right=RIGHT,
        fit=UNDER_WAY_FIT,
    )


def name_of_plan(row: PlanRow, *, several: bool) -> str:
    """Return a plan's name; with `several` clusters, it includes the cluster."""
    return f"{row.cluster}/{row.plan}" if several else row.plan


def ends_in(tally: Tally) -> str:
    """Say in how much time all of it ends, waits included; empty while that is unknown."""
    if tally.soonest_ms is None or tally.latest_ms is None:
        return ""
    soonest, latest = duration(tally.soonest_ms), duration(tally.latest_ms)
    return soonest if soonest == latest else f"{soonest} to {latest}"


def _cells(row: PlanRow, *, several: bool) -> tuple[str, ...]:
    return (
        name_of_plan(row, several=several),
        row.by,
        row.status,
        timestamp(row.opened_ms),
        _done(row),
        _percent(row),
        _not_done(row),
        at_least(row.copied_bytes, row.unmeasured),
        "-" if row.took_ms is None else duration(row.took_ms),
        ends_in(row.tally) or "-",
        row.reason,
    )


def _done(row: PlanRow) -> str:
    return f"{row.completed:,} of {row.accepted:,}"


def _percent(row: PlanRow) -> str:
    return "-" if row.fraction is None else f"{int(row.fraction * 100)}"


def _not_done(row: PlanRow) -> str:
    counts = {
        "rolled back": row.rolled_back,
        "stopped": row.stopped,
        "failed": row.failed,
        "withdrawn": row.withdrawn,
    }
    return ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
