"""`drover status`: what is moving, how far it is and why it waits; read from the log, no worker is asked."""

import asyncio
from typing import Any

import click

from drover.cli.following import follow_status
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import FORMATS, console, print_document, say
from drover.cli.plan_file import stock_json
from drover.cli.status_view import Choice, end_of, layout
from drover.client.views.present import clusters_of, unmanaged_of
from drover.client.views.shard_rows import shard_rows
from drover.client.views.status_rows import cluster_document, totals
from drover.client.watching import View, look
from drover.state.phase import Phase

STOCK = "stock"


@click.command()
@click.option(
    "--follow",
    is_flag=True,
    help="Keep showing until Ctrl-C, with --plan until that ends: live in a terminal, else a line per change.",
)
@click.option("--plan", metavar="NAME", help="Only this plan.")
@click.option("--topic", metavar="T", help="Only this topic's partitions.")
@click.option("--state", type=click.Choice([phase.value for phase in Phase]), help="Only what is in this state.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many rows of the table to draw."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice((*FORMATS, STOCK)),
    default="table",
    show_default=True,
    help="How to print; stock is the file of kafka-reassign-partitions with the targets under way.",
)
@common_options
@pass_invocation
def status(invocation: Invocation, output: str, *, follow: bool, limit: int, **chosen: str | None) -> None:
    """Show every reassignment under way, and what waits in the queue.

    Per partition: state, step, bytes done of total, rate, time to go, since when, and why it waits.
    Rates are those of the last few seconds; where nothing was heard of for longer, it says since when.
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
    if output == STOCK:
        _print_stock(view, choice)
        return
    if output == "table":
        console().print(layout(view, choice, most_rows=limit))
    else:
        rows = [row.document() for row in choice.rows(view)]
        print_document(status_document(view, choice), rows, output)


def _print_stock(view: View, choice: Choice) -> None:
    """Print the targets of what moves, or waits for a slot, and of the moves of others if nothing is left out."""
    states = [state for state, _, _ in clusters_of(view, choice.cluster)]
    if len(states) > 1:
        raise click.UsageError("the stock format names no cluster: choose one with --cluster")
    lists = [(row.topic, row.partition, row.destination) for row in choice.rows(view)]
    others = unmanaged_of(view, choice.cluster) if choice.is_all else []
    lists += [(row.topic, row.partition, row.target) for row in others]
    say(stock_json(lists), nl=False)


def status_document(view: View, choice: Choice) -> dict[str, Any]:
    """Return everything that is meant for programs; fields may be added and never changed."""
    rows, cluster, end = choice.rows(view), choice.cluster, end_of(view, choice)
    return {
        "clusters": [
            cluster_document(state, owner, epoch, view.projections.get(state.name))
            for state, owner, epoch in clusters_of(view, cluster)
        ],
        "reassignments": [row.document() for row in rows],
        "foreign": [row.document() for row in unmanaged_of(view, cluster)],
        "queue": [row.document() for row in choice.queue(view)],
        "shards": [row.document() for row in shard_rows(view)],
        "totals": {**totals(rows), "soonest_ms": end.soonest_ms, "latest_ms": end.latest_ms},
        "positions": {str(shard): position for shard, position in view.log.positions.items()},
    }
