"""`drover dead-letters`: what could not be read as a command, with as much of it as can be shown."""

import asyncio
import base64
import json
from dataclasses import asdict, dataclass

import click
import msgpack

from drover.cli.invocation import Invocation, pass_invocation, settings_options
from drover.cli.output import console, output_option, print_document, say, table, timestamp
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader, LogRecord

PREVIEW_CHARACTERS = 200
_HEADERS = "__connect.errors."


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One record that was not a command, where it was, and why it was set aside.

    `content` is the payload as text if any decoder makes sense of it, else base64.
    """

    offset: int
    at_ms: int
    topic: str
    partition: int | None
    source_offset: int | None
    error: str
    size_bytes: int
    content: str


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


def dead_letter(record: LogRecord) -> DeadLetter:
    """Read one record of the dead letters' topic."""
    return DeadLetter(
        offset=record.offset,
        at_ms=record.timestamp_ms,
        topic=record.header(f"{_HEADERS}topic") or "unknown",
        partition=_number(record.header(f"{_HEADERS}partition")),
        source_offset=_number(record.header(f"{_HEADERS}offset")),
        error=record.header(f"{_HEADERS}exception.message") or "unknown",
        size_bytes=len(record.payload),
        content=shown(record.payload),
    )


def shown(payload: bytes) -> str:
    """Make a payload readable: JSON text as it is, msgpack as JSON, anything else as base64."""
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        pass
    else:
        if text.isprintable():
            return text
    try:
        return json.dumps(msgpack.unpackb(payload, strict_map_key=False), default=repr, ensure_ascii=False)
    except (ValueError, TypeError, msgpack.UnpackException):
        return base64.b64encode(payload).decode()


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _cells(letter: DeadLetter) -> tuple[str, ...]:
    content = letter.content
    return (
        timestamp(letter.at_ms),
        f"{letter.topic} {letter.partition}@{letter.source_offset}",
        letter.error,
        f"{letter.size_bytes:,}",
        content if len(content) <= PREVIEW_CHARACTERS else content[:PREVIEW_CHARACTERS] + "…",
    )
