"""`drover topics`: create and check Drover's own topics."""

import asyncio
from dataclasses import asdict

import click

from drover.cli.exits import ExitCode
from drover.cli.invocation import Invocation, pass_invocation, settings_options
from drover.cli.output import output_option, print_document, say
from drover.events.topics import DEFAULT_SHARDS
from drover.journal import topics as own_topics


@click.group()
def topics() -> None:
    """Create and check Drover's own topics."""


@topics.command()
@click.option(
    "--shards",
    type=click.IntRange(min=1, max=1000),
    default=DEFAULT_SHARDS,
    show_default=True,
    help="How many; fixed for ever once the log has begun.",
)
@settings_options
@pass_invocation
def init(invocation: Invocation, shards: int) -> None:
    """Create missing topics and begin every shard of the log; harmless when repeated."""
    log = invocation.settings().log
    created = asyncio.run(own_topics.init(log.connection(), shards))
    say(f"Created {', '.join(created)}." if created else "Every topic already exists.")


@topics.command()
@output_option
@settings_options
@pass_invocation
def check(invocation: Invocation, output: str) -> None:
    """Compare every topic with what Drover needs; for a difference, print a remedy and end with exit code 1."""
    log = invocation.settings().log
    findings = asyncio.run(own_topics.check(log.connection()))
    if output != "table":
        rows = [asdict(finding) for finding in findings]
        print_document({"findings": rows}, rows, output)
    else:
        for finding in findings:
            say(str(finding))
        if not findings:
            say("Every topic is configured as Drover needs it.")
    raise click.exceptions.Exit(ExitCode.FAILED if findings else ExitCode.DONE)
