"""`drover status`: what is moving, how far it is and why it waits; read from the log, no worker is asked."""

import asyncio
from typing import Any

import click

from drover.cli.following import follow_status
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import console, output_option, print_document
from drover.cli.status_view import layout
from drover.client.views.present import clusters_of, queue_of, rows_of, unmanaged_of
from drover.client.views.status_rows import cluster_document, totals
from drover.client.views.waiting_rows import held_rows
from drover.client.watching import View, look


@click.command()
@click.option("--follow", is_flag=True, help="Keep showing until Ctrl-C: live in a terminal, else a line per change.")
@output_option
@common_options
@pass_invocation
def status(invocation: Invocation, output: str, *, follow: bool) -> None:
    """Show every reassignment under way, and what waits in the queue.

    Per partition: state, step, bytes done of total, rate, time to go, since when, and why it waits.
    """
    settings = invocation.settings()
    cluster = invocation.cluster_wanted(settings)
    connection = settings.log.connection()
    if follow:
        if output not in {"table", "jsonl"}:
            raise click.UsageError(f"--follow goes with -o table or jsonl, not {output}")
        follow_status(connection, cluster, output)
        return
    view = asyncio.run(look(connection, cluster))
    if output == "table":
        console().print(layout(view, cluster))
    else:
        rows = [row.document() for row in rows_of(view, cluster)]
        print_document(status_document(view, cluster), rows, output)


def status_document(view: View, cluster: str | None) -> dict[str, Any]:
    """Return everything for programs; fields may be added and never changed."""
    rows = rows_of(view, cluster)
    return {
        "clusters": [
            cluster_document(state, owner, epoch, view.projections.get(state.name))
            for state, owner, epoch in clusters_of(view, cluster)
        ],
        "reassignments": [row.document() for row in rows],
        "foreign": [row.document() for row in unmanaged_of(view, cluster)],
        "queue": [row.document() for row in queue_of(view, cluster)],
        "held": [row.document() for state, _, _ in clusters_of(view, cluster) for row in held_rows(state)],
        "totals": totals(rows),
        "positions": {str(shard): position for shard, position in view.log.positions.items()},
    }
