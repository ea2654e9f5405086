"""`drover freeze` and `drover unfreeze`: start nothing new on a cluster, or allow it again."""

from typing import Any

import click

from drover.cli.invocation import Invocation, pass_invocation
from drover.cli.simple import send_one
from drover.cli.submitting import connect, make_request, write_options
from drover.events.commands import Freeze, Unfreeze


@click.command()
@write_options
@pass_invocation
def freeze(invocation: Invocation, **options: Any) -> None:
    """Start nothing new on the cluster; copies under way continue."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "freeze", cluster, options)
    send_one(connection, Freeze(**request.envelope), request)


@click.command()
@click.option("--all", "everything", is_flag=True, help="End the freezes of everyone, not only your own.")
@write_options
@pass_invocation
def unfreeze(invocation: Invocation, *, everything: bool, **options: Any) -> None:
    """End your freeze of the cluster; new work starts again when nobody's is left."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "unfreeze", cluster, options)
    send_one(connection, Unfreeze(**request.envelope, all=everything), request)
