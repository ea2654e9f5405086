"""PURE: what could not be read as a command, as rows with as much of it as can be shown."""

import base64
import json
from dataclasses import dataclass

import msgpack

from drover.journal.reader import LogRecord

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
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        return base64.b64encode(payload).decode()


def _number(text: str | None) -> int | None:
    # `int` takes no text of thousands of digits; no offset has more than 19.
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else None
