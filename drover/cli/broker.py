"""`drover broker`: report that a broker failed or returned (KIP-46); drain its leaders for a restart; hold it."""

import time
from datetime import UTC, datetime
from typing import Any

import click

from drover.cli.exits import ExitCode
from drover.cli.invocation import Invocation, pass_invocation
from drover.cli.output import say
from drover.cli.parameters import Duration, Sighting
from drover.cli.simple import send_one
from drover.cli.submitting import connect, make_request, send, write_options
from drover.events.clusters import HoldRole
from drover.events.commands import BrokerFailed, BrokerReturned, Demote, HoldBroker, ReleaseBroker, Restore

at_option = click.option("--at", type=Sighting(), help="When: 5m for five minutes ago, or an ISO date.  [default: now]")
number_argument = click.argument("number", metavar="N", type=click.IntRange(min=0, max=2**31 - 1))


@click.group()
def broker() -> None:
    """Report that a broker failed or returned, drain its leaders, or hold it."""


@broker.command()
@number_argument
@at_option
@write_options
@pass_invocation
def failed(invocation: Invocation, number: int, at: tuple[datetime, bool] | None, **options: Any) -> None:
    """Record that broker N failed; the first time reported is kept.

    The report counts only while the broker is not seen alive, and ends once it has been for 30 s.
    """
    at_ms = _milliseconds(at, options["id_"])
    connection, cluster = connect(invocation)
    request = make_request(invocation, "broker-failed", cluster, options)
    send_one(connection, BrokerFailed(**request.envelope, broker=number, at_ms=at_ms), request)


@broker.command()
@number_argument
@at_option
@write_options
@pass_invocation
def returned(invocation: Invocation, number: int, at: tuple[datetime, bool] | None, **options: Any) -> None:
    """Record that broker N is back."""
    at_ms = _milliseconds(at, options["id_"])
    connection, cluster = connect(invocation)
    request = make_request(invocation, "broker-returned", cluster, options)
    send_one(connection, BrokerReturned(**request.envelope, broker=number, at_ms=at_ms), request)


@broker.command(name="drain-leaders")
@number_argument
@click.option("--undo", is_flag=True, help="Let it lead again what it led before.")
@click.option("--for", "for_s", type=Duration(), metavar="TIME", help="End it by itself after so long: 2h.")
@write_options
@pass_invocation
def drain_leaders(invocation: Invocation, number: int, for_s: float | None, *, undo: bool, **options: Any) -> None:
    """Move every leader off broker N before a restart, and wait until it leads nothing.

    It is on the list of brokers that should not lead until `--undo`, or until the time given with `--for` is over.
    """
    if undo and for_s is not None:
        raise click.UsageError("--for goes with a drain, not with its undo")
    connection, cluster = connect(invocation)
    request = make_request(invocation, "drain-leaders", cluster, options)
    if undo:
        command: Demote | Restore = Restore(**request.envelope, broker=number)
    else:
        for_ms = None if for_s is None else max(1, round(for_s * 1000))
        command = Demote(**request.envelope, broker=number, for_ms=for_ms)
    answers = send(connection, [command], request)
    if request.timeout_s is None:
        return
    from drover.cli.answers import exit_code, print_answers  # noqa: PLC0415 - not before the command is out
    from drover.cli.draining import wait_for_leaders  # noqa: PLC0415 - not before the command is out

    print_answers(answers, request.output)
    code = exit_code(answers)
    if code is ExitCode.DONE:
        done = wait_for_leaders(connection, cluster, number, request.timeout_s, drained=not undo)
        # Behind a document for programs, which has ended.
        say(done, err=request.output != "table")
    raise click.exceptions.Exit(code)


def _milliseconds(at: tuple[datetime, bool] | None, id_: str | None) -> int:
    """Return the moment of a report; under an id it must be the same at every try, or that is another command."""
    moment, is_fixed = at or (None, False)
    if id_ is not None and not is_fixed:
        raise click.UsageError(
            "--id makes a retry harmless only if the retry says the same: add --at with a date and a time, such as "
            f"--at {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        )
    return round((time.time() if moment is None else moment.timestamp()) * 1000)


@broker.command()
@number_argument
@click.option(
    "--as",
    "role",
    type=click.Choice([role.value for role in HoldRole]),
    default=HoldRole.BOTH.value,
    show_default=True,
    help="Spare it copies into it (destination), out of it (source), or both.",
)
@write_options
@pass_invocation
def hold(invocation: Invocation, number: int, role: str, **options: Any) -> None:
    """Begin no further copy into broker N or out of it; what runs goes on."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "hold", cluster, options)
    send_one(connection, HoldBroker(**request.envelope, broker=number, role=HoldRole(role)), request)


@broker.command()
@number_argument
@write_options
@pass_invocation
def release(invocation: Invocation, number: int, **options: Any) -> None:
    """Let copies into broker N and out of it begin again, whoever holds it."""
    connection, cluster = connect(invocation)
    request = make_request(invocation, "release", cluster, options)
    send_one(connection, ReleaseBroker(**request.envelope, broker=number), request)
