"""`drover broker`: report that a broker failed or returned (KIP-46)."""

import time
from datetime import datetime
from typing import Any

import click

from drover.cli.invocation import Invocation, pass_invocation
from drover.cli.parameters import Moment
from drover.cli.simple import send_one
from drover.cli.submitting import connect, make_request, write_options
from events.commands import BrokerFailed, BrokerReturned

at_option = click.option("--at", type=Moment(), help="When: 5m for five minutes ago, or an ISO date.  [default: now]")
number_argument = click.argument("number", metavar="N", type=click.IntRange(min=0, max=2**31 - 1))


@click.group()
def broker() -> None:
    """Report that a broker failed or returned."""


@broker.command()
@number_argument
@at_option
@write_options
@pass_invocation
def failed(invocation: Invocation, number: int, at: datetime | None, **options: Any) -> None:
    """Record that broker N failed; the first time reported is kept."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "broker-failed", cluster, options)
    send_one(connection, BrokerFailed(**request.envelope, broker=number, at_ms=_milliseconds(at)), request)


@broker.command()
@number_argument
@at_option
@write_options
@pass_invocation
def returned(invocation: Invocation, number: int, at: datetime | None, **options: Any) -> None:
    """Record that broker N is back."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "broker-returned", cluster, options)
    send_one(connection, BrokerReturned(**request.envelope, broker=number, at_ms=_milliseconds(at)), request)


def _milliseconds(at: datetime | None) -> int:
    return round((time.time() if at is None else at.timestamp()) * 1000)
