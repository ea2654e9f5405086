"""`drover schema`: print the wire contract for clients in other languages."""

import click
import msgspec

from drover.cli.invocation import settings_options
from drover.cli.output import say
from drover.client.schema import wire_schema


@click.command()
@settings_options
def schema() -> None:
    """Print every message as JSON Schema (2020-12): commands, records of the log, samples.

    events/schema.json holds the same. The command needs no settings and no log.
    """
    say(msgspec.json.format(msgspec.json.encode(wire_schema()), indent=1).decode())
