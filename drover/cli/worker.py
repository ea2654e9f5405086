"""`drover worker`: run a worker until it is told to stop."""

from typing import Any

import click

from drover.cli.invocation import Invocation, pass_invocation, settings_options
from drover.cli.parameters import Address


@click.command()
@click.option("--name", help="The owner's name in the log.  [default: host-pid]")
@click.option("--group", help="The workers' consumer group.  [default: PREFIX-worker]")
@click.option("--instance-id", help="Static membership: unique per worker, and the same after a restart.")
@click.option(
    "--listen",
    type=Address(),
    metavar="HOST:PORT",
    help="Where to serve /livez, /readyz and /metrics; port 0 picks one.",
)
@click.option(
    "--log-format", type=click.Choice(["auto", "json", "text"]), help="How to log.  [default: JSON, text on a terminal]"
)
@settings_options
@pass_invocation
def worker(invocation: Invocation, **flags: Any) -> None:
    """Decide commands and move partitions, until SIGTERM or Ctrl-C.

    Several workers may run: each shard of the log is owned by one of them at a time.
    """
    overrides = {name: value for name, value in flags.items() if value is not None}
    settings = invocation.settings({"worker": overrides} if overrides else None)
    from drover.agents.wiring import serve  # noqa: PLC0415 - Faust is not loaded to say that a flag is wrong

    raise click.exceptions.Exit(serve(settings))
