"""`drover throttle`: throttles of plans and of the cluster, and what tools have left."""

from typing import Any

import click

from drover.cli.asking import can_ask, confirmed
from drover.cli.exits import ExitCode
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import output_option, print_document, say
from drover.cli.parameters import Rate, check_rate, parse_rate
from drover.cli.simple import send_one
from drover.cli.submitting import connect, make_request, write_options
from drover.cli.throttles import look_at_throttles, show_throttles
from drover.client.views.found_throttles import FoundEntries, FoundRates
from drover.events.commands import RestoreThrottles, Throttle
from drover.events.strays import StrayEntries, StrayRates


@click.group()
def throttle() -> None:
    """Set throttles of plans and of the cluster, show them all, and delete what tools have left."""


@throttle.command(name="set")
@click.argument("words", metavar="[PLAN] RATE", nargs=-1, required=True)
@click.option(
    "--may-rise-to", type=Rate(), metavar="RATE", help="Drover may raise it so far while copies cannot keep up."
)
@click.option("--force", is_flag=True, help="Take a rate under 1 kB/s or over 100 GB/s for what is meant.")
@write_options
@pass_invocation
def set_(
    invocation: Invocation, words: tuple[str, ...], may_rise_to: int | None, *, force: bool, **options: Any
) -> None:
    """Set the throttle of PLAN or, without one, of the cluster, per broker: 10MB/s, 50MiB, or bytes per second.

    It holds at once for what is in flight. The cluster's holds for plans without one of their own. The rate none takes
    a throttle away.
    """
    *plans, text = words
    if len(plans) > 1:
        raise click.UsageError("give [PLAN] RATE")
    rate = None if text.lower() == "none" else _rate(text, force=force)
    plan = plans[0] if plans else None
    connection, cluster = connect(invocation)
    request = make_request(invocation, "throttle", cluster, options)
    try:
        command = Throttle(
            **request.envelope, plan=plan, bytes_per_second=rate, clear=rate is None, may_rise_to=may_rise_to
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    send_one(connection, command, request)


def _rate(text: str, *, force: bool) -> int:
    try:
        rate = parse_rate(text)
        check_rate(rate, force=force)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="RATE") from None
    return rate


@throttle.command()
@output_option
@common_options
@pass_invocation
def show(invocation: Invocation, output: str) -> None:
    """Show every throttle that is set in the cluster and who set it; the same as `drover throttles`."""
    show_throttles(invocation, output)


@throttle.command()
@click.option("--broker", "brokers", multiple=True, type=int, metavar="N", help="Only this; may be repeated.")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this; may be repeated.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@write_options
@pass_invocation
def restore(
    invocation: Invocation, brokers: tuple[int, ...], topics: tuple[str, ...], *, yes: bool, **options: Any
) -> None:
    """Delete strays: throttles that somebody else set and that no reassignment needs.

    Lists them and asks first. A worker reads each one again before deleting it, and leaves it alone if it has changed.
    """
    connection, cluster = connect(invocation)
    found = look_at_throttles(invocation.settings(), cluster)
    everything = not brokers and not topics
    rates = [row for row in found.rates if row.whose == "stray" and (everything or row.broker in brokers)]
    entries = [row for row in found.entries if row.whose == "stray" and (everything or row.topic in topics)]
    if not rates and not entries:
        say("There is nothing to delete: no throttle is left over.", err=True)
        if options["output"] != "table":
            print_document({"outcomes": []}, (), options["output"])
        raise click.exceptions.Exit(ExitCode.DONE)
    _ask(rates, entries, yes=yes)
    request = make_request(invocation, "restore-throttles", cluster, options)
    command = RestoreThrottles(
        **request.envelope,
        brokers=tuple(StrayRates(broker=row.broker, leader=row.leader, follower=row.follower) for row in rates),
        topics=tuple(StrayEntries(topic=row.topic, leader=row.leader, follower=row.follower) for row in entries),
    )
    send_one(connection, command, request)


def _ask(rates: list[FoundRates], entries: list[FoundEntries], *, yes: bool) -> None:
    """Show what would be deleted and ask, unless that was answered; without a terminal nobody can answer."""
    for row in rates:
        said = ", ".join(
            f"{name} {rate:,} bytes per second"
            for name, rate in (("out", row.leader), ("in", row.follower))
            if rate is not None
        )
        say(f"broker {row.broker}: {said}", err=True)
    for one in entries:
        say(f"topic {one.topic}: {len(one.leader):,} leaders and {len(one.follower):,} followers", err=True)
    if yes:
        return
    if not can_ask():
        raise click.UsageError("deleting these needs an answer: run it in a terminal, or add --yes")
    if not confirmed("Delete these?"):
        raise click.UsageError("nothing was deleted")
