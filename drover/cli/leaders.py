"""`drover leaders`: brokers that should not lead, for how long and for what; balances; who leads what (KIP-491)."""

from typing import Any

import click

from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.log_state import state_now
from drover.cli.output import console, output_option, print_document
from drover.cli.parameters import Duration
from drover.cli.simple import send_one
from drover.cli.submitting import connect, make_request, write_options
from drover.client.views.leader_rows import leaders_document
from drover.events.commands import BalanceLeaders, Demote, Restore

number_argument = click.argument("number", metavar="N", type=click.IntRange(min=0, max=2**31 - 1))
topic_option = click.option("--topic", "topics", metavar="TOPIC", multiple=True, help="Only this; may be repeated.")


@click.group()
def leaders() -> None:
    """Move leaders off brokers and back, balance and show them."""


@leaders.command()
@number_argument
@topic_option
@click.option("--for", "for_s", type=Duration(), metavar="TIME", help="End it by itself after so long: 2h.")
@click.option("--until-in-sync", is_flag=True, help="End it by itself once the broker's replicas are in sync.")
@write_options
@pass_invocation
def demote(
    invocation: Invocation,
    number: int,
    topics: tuple[str, ...],
    for_s: float | None,
    *,
    until_in_sync: bool,
    **options: Any,
) -> None:
    """Put broker N on the list of those that should not lead; the others stay on it."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "demote", cluster, options)
    command = Demote(
        **request.envelope,
        broker=number,
        topics=topics or None,
        for_ms=None if for_s is None else max(1, round(for_s * 1000)),
        until_in_sync=until_in_sync,
    )
    send_one(connection, command, request)


@leaders.command()
@number_argument
@topic_option
@write_options
@pass_invocation
def restore(invocation: Invocation, number: int, topics: tuple[str, ...], **options: Any) -> None:
    """Take broker N from the list; the order that each list had before comes back."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "restore", cluster, options)
    send_one(connection, Restore(**request.envelope, broker=number, topics=topics or None), request)


@leaders.command()
@topic_option
@write_options
@pass_invocation
def balance(invocation: Invocation, topics: tuple[str, ...], **options: Any) -> None:
    """Let the first replica of every list lead where it can, listed brokers last."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "balance", cluster, options)
    send_one(connection, BalanceLeaders(**request.envelope, topics=topics or None), request)


@leaders.command()
@output_option
@common_options
@pass_invocation
def show(invocation: Invocation, output: str) -> None:
    """Show who leads how much, which brokers should not, and what waits."""
    connection, cluster = connect(invocation)
    document = leaders_document(state_now(connection, cluster))
    if output == "table":
        from drover.cli.leaders_view import layout  # noqa: PLC0415 - rich costs start-up time

        console().print(layout(document))
    else:
        print_document(document, document["brokers"], output)
