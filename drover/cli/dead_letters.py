"""`drover dead-letters`: what could not be read as a command, with as much of it as can be shown."""

import asyncio
from dataclasses import asdict

import click

from drover.cli.invocation import Invocation, pass_invocation, settings_options
from drover.cli.output import console, output_option, print_document, say, table, timestamp
from drover.client.views.dead_letter_rows import DeadLetter, dead_letter
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader

PREVIEW_CHARACTERS = 200


@click.group()
def dead_letters() -> None:
    """Show what could not be read as a command."""


@dead_letters.command(name="list")
@output_option
@settings_options
@pass_invocation
def list_(invocation: Invocation, output: str) -> None:
    """List every dead letter, oldest first."""
    letters = asyncio.run(_read(invocation.settings().log.connection()))
    if output != "table":
        documents = [asdict(letter) for letter in letters]
        print_document({"dead_letters": documents}, documents, output)
    elif letters:
        console().print(table(("time", "from", "why", "bytes", "content"), map(_cells, letters), right=("bytes",)))
    else:
        say("There are no dead letters.", err=True)


async def _read(connection: LogConnection) -> list[DeadLetter]:
    topic = connection.topics.dead_letters
    found: list[DeadLetter] = []
    async with LogReader(connection) as reader:
        start = await reader.start_offsets(topic, range(await reader.partitions(topic)))
        async for records in reader.read(topic, start):
            found += map(dead_letter, records)
    return sorted(found, key=lambda letter: (letter.at_ms, letter.offset))


def _cells(letter: DeadLetter) -> tuple[str, ...]:
    content = letter.content
    return (
        timestamp(letter.at_ms),
        f"{letter.topic} {letter.partition}@{letter.source_offset}",
        letter.error,
        f"{letter.size_bytes:,}",
        content if len(content) <= PREVIEW_CHARACTERS else content[:PREVIEW_CHARACTERS] + "…",
    )
