"""`drover state`: show a cluster's state now, or at any place or moment of the log."""

import asyncio
from typing import Any

import click

from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import console, print_document
from drover.cli.past import Place, place_document, place_text
from drover.cli.state_view import layout, state_document
from drover.client.time_travel import Point, travel
from drover.fold.log import ShardFold
from drover.state.cluster import ClusterState


@click.command()
@click.option("--at", "point", type=Place(), help="An offset, -2h, or a moment such as 2026-11-20T15:04Z.  [now]")
@click.option("--shard", type=click.IntRange(min=0), help="Every cluster of this shard, instead of one cluster.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True,
    help="How to print.",
)  # fmt: skip
@common_options
@pass_invocation
def state(invocation: Invocation, point: Point | None, shard: int | None, output: str) -> None:
    """Show a cluster's whole state, as the log has it.

    Plans, reassignments with step and block, the queue, the throttle ledger, freeze, limits and brokers, as they were
    right after the record at an offset of the cluster's shard, or at a moment of the log's own time.
    """
    if shard is not None and invocation.cluster is not None:
        raise click.UsageError("say either --shard or --cluster")
    settings = invocation.settings()
    where = invocation.cluster_of(settings) if shard is None else shard
    wanted = point or Point()
    fold = asyncio.run(travel(settings.log.connection(), where, (wanted,))).reached[wanted]
    states = states_of(fold, where)
    if output == "table":
        console().print(layout(place_text(fold), states))
    else:
        print_document(past_document(fold, states), (), output)


def states_of(fold: ShardFold, where: int | str) -> list[ClusterState]:
    """Return the clusters to show, by name; one that the log had not named yet is empty."""
    if isinstance(where, str):
        return [fold.state.clusters.get(where) or ClusterState(where)]
    return [fold.state.clusters[name] for name in sorted(fold.state.clusters)]


def past_document(fold: ShardFold, states: list[ClusterState]) -> dict[str, Any]:
    """Return everything for programs; fields may be added and never changed."""
    return {"log": place_document(fold), "clusters": [state_document(one) for one in states]}
