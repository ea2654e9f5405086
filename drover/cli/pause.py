"""`drover pause` and `drover resume`: begin no further step of a plan, or allow it again."""

from typing import Any

import click

from drover.cli.invocation import Invocation, pass_invocation
from drover.cli.simple import send_one
from drover.cli.submitting import connect, make_request, write_options
from drover.events.commands import PausePlan, ResumePlan


@click.command()
@click.argument("plan")
@write_options
@pass_invocation
def pause(invocation: Invocation, plan: str, **options: Any) -> None:
    """Begin no further step of PLAN; what runs goes on, and so do other plans."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "pause", cluster, options)
    send_one(connection, PausePlan(**request.envelope, plan=plan), request)


@click.command()
@click.argument("plan")
@write_options
@pass_invocation
def resume(invocation: Invocation, plan: str, **options: Any) -> None:
    """Let steps of PLAN begin again, whoever paused it."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "resume", cluster, options)
    send_one(connection, ResumePlan(**request.envelope, plan=plan), request)
