"""`drover throttle`: give a plan that is running another throttle."""

from typing import Any

import click

from drover.cli.invocation import Invocation, pass_invocation
from drover.cli.parameters import Rate, check_rate
from drover.cli.simple import send_one
from drover.cli.submitting import connect, make_request, write_options
from events.commands import Throttle


@click.group()
def throttle() -> None:
    """Give a plan that is running another throttle."""


@throttle.command(name="set")
@click.argument("plan")
@click.argument("rate", type=Rate())
@click.option("--force", is_flag=True, help="Take a rate under 1 kB/s or over 100 GB/s for what is meant.")
@write_options
@pass_invocation
def set_(invocation: Invocation, plan: str, rate: int, *, force: bool, **options: Any) -> None:
    """Set the throttle of PLAN to RATE, per broker: 10MB/s, 50MiB, or bytes per second.

    It holds at once for what the plan has in flight.
    """
    try:
        check_rate(rate, force=force)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="RATE") from None
    connection, cluster = connect(invocation)
    request = make_request(invocation, "throttle", cluster, options)
    send_one(connection, Throttle(**request.envelope, plan=plan, bytes_per_second=rate), request)
