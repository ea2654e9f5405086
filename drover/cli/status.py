"""`drover status`: what is moving, how far it is and why it waits; read from the log, no worker is asked."""

import asyncio
from typing import Any

import click

from drover.cli.following import follow_status
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import console, output_option, print_document
from drover.cli.status_view import Choice, layout
from drover.client.views.present import clusters_of, unmanaged_of
from drover.client.views.shard_rows import shard_rows
from drover.client.views.status_rows import cluster_document, totals
from drover.client.views.waiting_rows import held_rows
from drover.client.watching import View, look
from drover.reassignment.phase import Phase


@click.command()
@click.option("--follow", is_flag=True, help="Keep showing until Ctrl-C: live in a terminal, else a line per change.")
@click.option("--plan", metavar="NAME", help="Only this plan.")
@click.option("--topic", metavar="T", help="Only this topic's partitions.")
@click.option("--state", type=click.Choice([phase.value for phase in Phase]), help="Only what is in this state.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many rows of the table to draw."
)
@output_option
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
    if output == "table":
        console().print(layout(view, choice, most_rows=limit))
    else:
        rows = [row.document() for row in choice.rows(view)]
        print_document(status_document(view, choice), rows, output)


def status_document(view: View, choice: Choice) -> dict[str, Any]:
    """Return everything that is meant for programs; fields may be added and never changed."""
    rows, cluster = choice.rows(view), choice.cluster
    return {
        "clusters": [
            cluster_document(state, owner, epoch, view.projections.get(state.name))
            for state, owner, epoch in clusters_of(view, cluster)
        ],
        "reassignments": [row.document() for row in rows],
        "foreign": [row.document() for row in unmanaged_of(view, cluster)],
        "queue": [row.document() for row in choice.queue(view)],
        "held": [row.document() for state, _, _ in clusters_of(view, cluster) for row in held_rows(state)],
        "shards": [row.document() for row in shard_rows(view)],
        "totals": totals(rows),
        "positions": {str(shard): position for shard, position in view.log.positions.items()},
    }
