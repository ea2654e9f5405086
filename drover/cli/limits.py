"""`drover limits`: show and change, while moves run, how much may move at a time."""

from typing import Any

import click

from drover.cli.help import PLANS, drover_group
from drover.cli.invocation import Invocation, common_options, pass_invocation, state_now
from drover.cli.output import Fit, console, output_option, print_document, table, timestamp
from drover.cli.parameters import Parsed, parse_duration, parse_rate, parse_size
from drover.cli.submission import connect, send_one, write_options
from drover.client.views.limit_rows import limit_rows
from drover.events.clusters import LimitValue
from drover.events.commands import ChangeLimits
from drover.state.limit_names import KnownLimit, Unit, find, in_words, nearest


def known_limit(name: str) -> KnownLimit:
    """Find a limit by any of its names. Raises `ValueError`."""
    limit = find(name)
    if limit is None:
        near = nearest(name)
        raise ValueError(
            f"no limit is called {name!r}: " + ("`drover limits show` lists them" if near is None else f"is it {near}?")
        )
    return limit


def parse_value(limit: KnownLimit, text: str) -> LimitValue:
    """Parse `10`, `500GB`, `10MB/s`, `15m`, `true`, `swap` or `none` in the limit's unit. Raises `ValueError`."""
    if text.lower() == "none":
        return None
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if text.lstrip("-").isdecimal():
        return int(text)
    match limit.unit:
        case Unit.MS:
            return round(parse_duration(text) * 1000)
        case Unit.BYTES:
            return parse_size(text)
        case Unit.RATE:
            return parse_rate(text)
        case _:
            return text


def parse_assignment(text: str) -> tuple[str, LimitValue]:
    """Parse a limit and its value: `max_moves_per_broker=10`. Raises `ValueError`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not NAME=VALUE, such as max_moves_per_broker=10")
    limit = known_limit(name.strip())
    return limit.name, limit.read(parse_value(limit, value.strip()))


ASSIGNMENT = Parsed("name=value", parse_assignment)


@drover_group()
def limits() -> None:
    """Show and change how much may move at a time."""


@limits.command(example="drover limits show")
@output_option
@common_options
@pass_invocation
def show(invocation: Invocation, output: str) -> None:
    """Show every limit in force, and whether it comes from the settings or a command; reads the log."""
    connection, cluster = connect(invocation)
    rows = limit_rows(state_now(connection, cluster))
    if output != "table":
        documents = [row.document() for row in rows]
        print_document({"cluster": cluster, "limits": documents}, documents, output)
        return
    cells = [
        (
            row.name,
            in_words(row.value),
            "the settings" if row.by is None else f"{row.by}, {timestamp(row.since_ms or 0)}: {row.reason}",
            "" if row.by is None else in_words(row.settings_value),
        )
        for row in rows
    ]
    fit = Fit(prose=("set by",), spare=("settings", "set by"))
    console().print(table(("limit", "in force", "set by", "settings"), cells, right=("in force", "settings"), fit=fit))


@limits.command(name="set", example="drover limits set max_moves_per_broker=10 --reason 'new disks'")
@click.argument("values", metavar="NAME=VALUE...", nargs=-1, required=True, type=ASSIGNMENT)
@click.option(
    "--plan",
    shell_complete=PLANS,
    metavar="NAME",
    help='The plan whose windows are set, and nothing else; windows="" for none.',
)
@write_options
@pass_invocation
def set_(
    invocation: Invocation, values: tuple[tuple[str, LimitValue], ...], *, plan: str | None, **options: Any
) -> None:
    """Set limits from the next step on, overriding the settings; running copies go on.

    VALUE is a number, 500GB, 10MB/s, 15m, true, or none for no bound. NAME may be KIP-435's or Cruise Control's.
    """
    given = dict(values)
    if len(given) != len(values):
        raise click.UsageError("a limit is named twice: give each limit one value")
    if plan is not None and given.keys() != {"windows"}:
        raise click.UsageError("a plan has only windows of its own: set other limits without --plan")
    send_one(invocation, "limits", options, lambda envelope: ChangeLimits(**envelope, values=given, plan=plan))


@limits.command(example="drover limits reset max_moves_per_broker --reason 'as before'")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every limit that a command has set.")
@write_options
@pass_invocation
def reset(invocation: Invocation, names: tuple[str, ...], *, everything: bool, **options: Any) -> None:
    """Let limits follow the settings again."""
    if bool(names) is everything:
        raise click.UsageError("name the limits, or give --all")
    try:
        limits_to_reset = tuple(dict.fromkeys(known_limit(name).name for name in names))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="NAME") from None
    send_one(
        invocation,
        "limits",
        options,
        lambda envelope: ChangeLimits(**envelope, reset=limits_to_reset, reset_all=everything),
    )
