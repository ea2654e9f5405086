"""`drover freeze` and `drover unfreeze`: the switch that lets nothing new start."""

from typing import Any

import click

from drover.cli.invocation import Invocation, pass_invocation
from drover.cli.simple import send_one
from drover.cli.submitting import connect, make_request, write_options
from events.commands import Freeze, Unfreeze


@click.command()
@write_options
@pass_invocation
def freeze(invocation: Invocation, **options: Any) -> None:
    """Let nothing new start on the cluster; what is copying goes on."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "freeze", cluster, options)
    send_one(connection, Freeze(**request.envelope), request)


@click.command()
@write_options
@pass_invocation
def unfreeze(invocation: Invocation, **options: Any) -> None:
    """Let work start again."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "unfreeze", cluster, options)
    send_one(connection, Unfreeze(**request.envelope), request)
