"""`drover schema`: print the wire contract for clients in other languages."""

import click
import msgspec

from drover import __version__
from drover.cli.invocation import settings_options
from drover.cli.output import say
from drover.client.asyncapi import asyncapi
from drover.client.schema import wire_schema


@click.command()
@click.option("--asyncapi", "with_topics", is_flag=True, help="Print AsyncAPI 3 instead: the topics, too.")
@settings_options
def schema(*, with_topics: bool) -> None:
    """Print every message as JSON Schema (2020-12): commands, records of the log, samples.

    events/schema.json holds the same, and events/asyncapi.json what --asyncapi prints. The command needs no settings
    and no log.
    """
    document = asyncapi(__version__) if with_topics else wire_schema()
    say(msgspec.json.format(msgspec.json.encode(document), indent=1).decode())
