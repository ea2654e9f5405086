"""`drover history`: show who asked for what, why, what happened, and where in the log it is."""

import asyncio
from datetime import datetime
from typing import Any

import click

from drover.cli import diff_view
from drover.cli.columns import Fit
from drover.cli.diff_view import diff_document
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import console, output_option, print_document, say, table, timestamp
from drover.cli.parameters import Moment, Partition
from drover.cli.past import Place, place_text
from drover.client import differences
from drover.client.history import open_log, read_log
from drover.client.time_travel import Point, travel
from drover.client.views.history_rows import HistoryRow, Selection, Wanted
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.state.cluster import ClusterState

COLUMNS = ("time", "log", "cluster", "what", "partition", "plan", "by", "reason", "detail")
FIT = Fit(below=("detail", "reason"), spare=("log", "cluster", "plan", "by", "time"))


@click.command()
@click.option("--topic", metavar="T", help="Only this topic's partitions.")
@click.option("--partition", type=Partition(), metavar="T:P", help="Only this partition.")
@click.option("--plan", metavar="NAME", help="Only this plan.")
@click.option("--id", "id_", metavar="ID", help="Only the command with this id.")
@click.option("--since", type=Moment(), help="2h for the last two hours, or an ISO date.")
@click.option(
    "--diff", nargs=2, type=Place(), metavar="A B", help="What changed from A to B; each is an offset, -2h or a time."
)
@output_option
@click.option("--by", metavar="WHO", help="Only what this person or program asked for.")
@common_options
@pass_invocation
def history(
    invocation: Invocation,
    output: str,
    since: datetime | None,
    diff: tuple[Point, Point] | None,
    id_: str | None,
    **wanted: Any,
) -> None:
    """Show every command and everything that followed from it, oldest first.

    Records without effect, because their owner had been replaced, are left out. LOG is shard@offset. With --diff, show
    what changed in one cluster between two places in its shard's log, or between two moments of the log's time.
    """
    if diff is not None and (since is not None or id_ is not None or any(wanted.values())):
        raise click.UsageError("--diff goes with --cluster and -o only")
    settings = invocation.settings()
    if diff is not None:
        _show_difference(settings.log.connection(), invocation.cluster_of(settings), diff, output)
        return
    only = Wanted(
        cluster=invocation.cluster_wanted(settings),
        id=id_,
        since_ms=None if since is None else round(since.timestamp() * 1000),
        **wanted,
    )
    rows = asyncio.run(_read(settings.log.connection(), only))
    if output != "table":
        documents = [row.document() for row in rows]
        print_document({"history": documents}, documents, output)
    elif rows:
        console().print(table(COLUMNS, map(cells_of, rows), right=("log",), fit=FIT))
    else:
        say("The log holds nothing of that kind.", err=True)


def _show_difference(connection: LogConnection, cluster: str, points: tuple[Point, Point], output: str) -> None:
    found = asyncio.run(travel(connection, cluster, points))
    before, after = (found.reached[point] for point in points)
    if before.position > after.position:
        raise click.UsageError(f"the first place is later than the second: {place_text(before)}; {place_text(after)}")
    was, now = (fold.state.clusters.get(cluster) or ClusterState(cluster) for fold in (before, after))
    changes = differences.diff(was, now, found.ended)
    if output != "table":
        document = diff_document(cluster, before, after, changes)
        print_document(document, document["changes"], output)
    elif changes:
        console().print(table(diff_view.COLUMNS, map(diff_view.cells_of, changes)))
    else:
        say(f"Nothing has changed in {cluster}.", err=True)


async def _read(connection: LogConnection, wanted: Wanted) -> list[HistoryRow]:
    selection = Selection(wanted)
    async with LogReader(connection) as reader:
        log = await open_log(reader, connection, wanted.cluster)
        async for records in read_log(reader, connection, log):
            selection.add(records)
    return selection.rows()


def cells_of(row: HistoryRow) -> tuple[str, ...]:
    """Write one row."""
    first = str(row.partitions[0]) if row.partitions else ""
    more = f" +{len(row.partitions) - 1}" if len(row.partitions) > 1 else ""
    return (
        timestamp(row.at_ms),
        f"{row.shard}@{row.offset}",
        row.cluster,
        row.what,
        first + more,
        row.plan or "",
        row.by,
        row.reason,
        f"{row.id}: {row.detail}" if row.id and row.detail else row.id or row.detail,
    )
