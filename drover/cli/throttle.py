"""`drover throttle`: throttles of plans and of the cluster, and those that tools have left."""

import asyncio
from dataclasses import dataclass
from typing import Any

import click
import msgspec

from drover.cli.exits import ExitCode
from drover.cli.help import BROKERS, TOPICS, drover_group
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.model import open_driver
from drover.cli.output import amount, console, output_option, plural, print_document, say, table, timestamp
from drover.cli.parameters import RATE, check_rate, parse_rate
from drover.cli.submission import Envelope, can_ask, confirmed, send_one, write_options
from drover.client.history import fold_cluster
from drover.client.views.found_throttles import FoundEntries, FoundRates, found_entries, found_rates
from drover.events.commands import RestoreThrottles, Throttle
from drover.events.leftover_throttles import LeftoverEntries, LeftoverRates
from drover.settings.settings import Settings
from drover.state.plans import ClusterThrottle

LOOK_TIMEOUT_MS = 10_000
_SHOWN_ENTRIES = 6


@dataclass(frozen=True, slots=True)
class Throttles:
    """The throttles of a cluster; `of_cluster` is the throttle for plans without one of their own, if it is set."""

    of_cluster: ClusterThrottle | None
    rates: tuple[FoundRates, ...]
    entries: tuple[FoundEntries, ...]


def look_at_throttles(settings: Settings, cluster: str) -> Throttles:
    """Read the log and the cluster; raises `ClusterError` or `ConfigurationError`."""
    return asyncio.run(find_throttles(settings, cluster))


async def find_throttles(settings: Settings, cluster: str) -> Throttles:
    """Read the cluster and then the log; raises `ClusterError`, `LogUnavailableError` or `ConfigurationError`."""
    async with open_driver(settings, cluster, LOOK_TIMEOUT_MS) as driver:
        survey = await driver.survey()
        rates = await driver.broker_rates(survey.live_brokers)
        lists = await driver.throttled_replicas({key.topic for key in survey.partitions})
        moves = (await driver.list_moves()).moves
    # The log is read last, so that it has every throttle of Drover that the configs show.
    state = await fold_cluster(settings.log.connection(), cluster)
    return Throttles(
        state.cluster_throttle,
        tuple(found_rates(state, rates, moves)),
        tuple(found_entries(state, lists, moves)),
    )


def _rate_cell(rate: int | None) -> str:
    return "-" if rate is None else f"{amount(rate)}/s"


def _first_entries(entries: tuple[str, ...]) -> str:
    more = len(entries) - _SHOWN_ENTRIES
    return " ".join(entries[:_SHOWN_ENTRIES]) + (f" and {more:,} more" if more > 0 else "")


@drover_group()
def throttle() -> None:
    """Set throttles of plans and of the cluster, show all throttles, and delete leftover throttles."""


@throttle.command(
    name="set",
    example="drover throttle set friday 80MB/s --reason 'the night is quiet'\n"
    "drover throttle set none --reason 'no throttle for plans without one'",
)
@click.argument("words", metavar="[PLAN] RATE", nargs=-1, required=True)
@click.option(
    "--may-rise-to",
    type=RATE,
    metavar="RATE",
    help="Drover may raise the throttle up to this rate while copies cannot keep up.",
)
@click.option("--force", is_flag=True, help="Accept a throttle below 1 kB/s or above 100 GB/s.")
@write_options
@pass_invocation
def set_(
    invocation: Invocation, words: tuple[str, ...], may_rise_to: int | None, *, force: bool, **options: Any
) -> None:
    """Set the throttle of PLAN or, without PLAN, of the cluster, per broker: 10MB/s, 50MiB, or bytes per second.

    It applies at once, also to running copies. The cluster's throttle applies to plans without one of their own. The
    rate `none` removes a throttle.
    """
    *plans, text = words
    if len(plans) > 1:
        raise click.UsageError("give [PLAN] RATE")
    rate = None if text.lower() == "none" else _checked_rate(text, force=force)
    plan = plans[0] if plans else None

    def command_of(envelope: Envelope) -> Throttle:
        try:
            return Throttle(**envelope, plan=plan, bytes_per_second=rate, clear=rate is None, may_rise_to=may_rise_to)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    send_one(invocation, "throttle", options, command_of)


def _checked_rate(text: str, *, force: bool) -> int:
    try:
        rate = parse_rate(text)
        check_rate(rate, force=force)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="RATE") from None
    return rate


@throttle.command(example="drover throttle show")
@output_option
@common_options
@pass_invocation
def show(invocation: Invocation, output: str) -> None:
    """Show every throttle that is set in the cluster: Drover's, those of others, and those that a tool left behind.

    Rates are read from the brokers' configs, and throttled replicas from the topics' configs. The log and the running
    reassignments show who set them.
    """
    settings = invocation.settings()
    cluster = invocation.cluster_of(settings)
    throttles = look_at_throttles(settings, cluster)
    if output != "table":
        rows = [row.document() for row in throttles.rates]
        document = {
            "cluster": cluster,
            "throttle": None if throttles.of_cluster is None else msgspec.to_builtins(throttles.of_cluster),
            "brokers": rows,
            "topics": [row.document() for row in throttles.entries],
        }
        print_document(document, rows, output)
        return
    if throttles.of_cluster is not None:
        default = throttles.of_cluster
        say(
            f"Plans without a throttle of their own: {amount(default.bytes_per_second)}/s per broker, set by "
            f"{default.by}, {timestamp(default.since_ms)}: {default.reason}"
        )
    if throttles.rates:
        cells = [
            (str(row.broker), _rate_cell(row.leader), _rate_cell(row.follower), row.whose, row.says)
            for row in throttles.rates
        ]
        console().print(table(("broker", "out", "in", "whose", ""), cells, right=("broker", "out", "in")))
    if throttles.entries:
        lists = [
            (row.topic, _first_entries(row.leader), _first_entries(row.follower), row.whose, row.says)
            for row in throttles.entries
        ]
        console().print(table(("topic", "leaders", "followers", "whose", ""), lists))
    if not throttles.rates and not throttles.entries:
        say("No broker has a throttle, and no topic has throttled replicas.")
    leftovers = sum(row.whose == "leftover" for row in throttles.rates) + sum(
        row.whose == "leftover" for row in throttles.entries
    )
    if leftovers:
        say(f"{plural(leftovers, 'leftover throttle')}: `drover throttle clean` deletes them.", err=True)


@throttle.command(example="drover throttle clean --topic orders --reason 'left by the stock tool'")
@click.option(
    "--broker",
    "brokers",
    shell_complete=BROKERS,
    multiple=True,
    type=int,
    metavar="N",
    help="Only this broker; may be repeated.",
)
@click.option(
    "--topic", "topics", shell_complete=TOPICS, multiple=True, metavar="TOPIC", help="Only this topic; may be repeated."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@write_options
@pass_invocation
def clean(
    invocation: Invocation, brokers: tuple[int, ...], topics: tuple[str, ...], *, yes: bool, **options: Any
) -> None:
    """Delete leftover throttles: throttles that somebody else set and that no reassignment needs.

    Lists them and asks first. A worker reads each throttle again before deleting it, and leaves it alone if it has
    changed.
    """
    settings = invocation.settings()
    throttles = look_at_throttles(settings, invocation.cluster_of(settings))
    everything = not brokers and not topics
    rates = [row for row in throttles.rates if row.whose == "leftover" and (everything or row.broker in brokers)]
    entries = [row for row in throttles.entries if row.whose == "leftover" and (everything or row.topic in topics)]
    if not rates and not entries:
        say("There is nothing to delete: no throttle is left over.", err=True)
        if options["output"] != "table":
            print_document({"outcomes": []}, (), options["output"])
        raise click.exceptions.Exit(ExitCode.DONE)
    _ask_restore(rates, entries, yes=yes)
    send_one(
        invocation,
        "restore-throttles",
        options,
        lambda envelope: RestoreThrottles(
            **envelope,
            brokers=tuple(LeftoverRates(broker=row.broker, leader=row.leader, follower=row.follower) for row in rates),
            topics=tuple(LeftoverEntries(topic=row.topic, leader=row.leader, follower=row.follower) for row in entries),
        ),
    )


def _ask_restore(rates: list[FoundRates], entries: list[FoundEntries], *, yes: bool) -> None:
    """Show the throttles to delete and ask, unless `--yes` was given; without a terminal, refuse."""
    for row in rates:
        rates_text = ", ".join(
            f"{name} {rate:,} bytes per second"
            for name, rate in (("out", row.leader), ("in", row.follower))
            if rate is not None
        )
        say(f"broker {row.broker}: {rates_text}", err=True)
    for entry in entries:
        say(f"topic {entry.topic}: {len(entry.leader):,} leaders and {len(entry.follower):,} followers", err=True)
    if yes:
        return
    if not can_ask():
        raise click.UsageError("there is no terminal to ask on: add --yes to delete these")
    if not confirmed("Delete these?"):
        raise click.UsageError("nothing was deleted")
