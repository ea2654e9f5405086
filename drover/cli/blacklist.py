"""`drover blacklist`: the brokers of a cluster that should not lead (KIP-491)."""

from typing import Any

import click

from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.log_state import state_now
from drover.cli.output import output_option, print_document, say
from drover.cli.parameters import brokers_argument
from drover.cli.simple import send_one
from drover.cli.submitting import connect, make_request, write_options
from drover.errors import ConfigurationError
from drover.events.commands import Blacklist


@click.group()
def blacklist() -> None:
    """Set, clear or show the list of brokers that should not lead."""


@blacklist.command(name="set")
@brokers_argument("N...")
@write_options
@pass_invocation
def set_(invocation: Invocation, brokers: tuple[int, ...], **options: Any) -> None:
    """Make these brokers the complete list."""
    _send(invocation, brokers, options)


@blacklist.command()
@write_options
@pass_invocation
def clear(invocation: Invocation, **options: Any) -> None:
    """Take every broker off the list."""
    _send(invocation, (), options)


def _send(invocation: Invocation, brokers: tuple[int, ...], options: dict[str, Any]) -> None:
    if len(set(brokers)) != len(brokers):
        raise ConfigurationError("a broker is named twice")
    connection, cluster = connect(invocation)
    request = make_request(invocation, "blacklist", cluster, options)
    send_one(connection, Blacklist(**request.envelope, brokers=brokers), request)


@blacklist.command()
@output_option
@common_options
@pass_invocation
def show(invocation: Invocation, output: str) -> None:
    """Show the list that the log holds."""
    connection, cluster = connect(invocation)
    brokers = state_now(connection, cluster).blacklist
    if output != "table":
        row = {"cluster": cluster, "brokers": list(brokers)}
        print_document(row, [row], output)
    else:
        say(", ".join(map(str, brokers)) if brokers else f"No broker of {cluster} is on the list.")
