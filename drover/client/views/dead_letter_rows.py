"""PURE: records that could not be read as commands, as rows with their readable content."""

import base64
import json
from dataclasses import dataclass

import msgpack

from drover.journal.reader import LogRecord

_HEADERS = "__connect.errors."


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was not a command, its place, and the reason why it was set aside.

    `content` is the payload as text if a decoder can read it, else in base64.
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
    """Decode a record of the topic of dead letters."""
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
    """Return a payload as readable text: JSON as it is, msgpack as JSON, anything else in base64."""
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
    # `int` refuses thousands of digits; an offset has at most 19.
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else None
