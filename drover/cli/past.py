"""Places in the log: how people type them, and how they are shown."""

from datetime import UTC, datetime

import click

from drover.cli.output import timestamp
from drover.cli.parameters import parse_duration
from drover.client.time_travel import Point
from drover.fold.log import ShardFold


def parse_point(text: str, now: datetime) -> Point:
    """Read an offset (`120`), a moment with its zone (`2026-11-20T15:04Z`) or how long ago (`-2h`).

    Raises `ValueError`.
    """
    text = text.strip()
    if text.isdecimal():
        return Point(offset=int(text))
    if text.startswith("-"):
        return Point(at_ms=_milliseconds(now) - round(parse_duration(text[1:]) * 1000))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a place in the log: write an offset, -2h for two hours ago, or 2026-11-20T15:04Z"
        ) from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone: write {text}Z for UTC, or {text}+01:00")
    if moment > now:
        raise ValueError(f"{text!r} is in the future")
    return Point(at_ms=_milliseconds(moment))


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


class Place(click.ParamType):
    """A place in the log."""

    name = "offset|time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Point:
        """Read what was typed; a default is a point already."""
        if isinstance(value, Point):
            return value
        try:
            return parse_point(str(value), datetime.now(UTC))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def place_document(fold: ShardFold) -> dict[str, object]:
    """Return the place of a fold in the log for programs; fields may be added and never changed."""
    return {
        "shard": fold.shard,
        "offset": fold.position - 1,
        "batch_offset": None if fold.chain_offset < 0 else fold.chain_offset,
        "at_ms": fold.at_ms or None,
        "owner": fold.owner,
        "epoch": fold.epoch,
        "state_hash": fold.state.hash().hex(),
    }


def place_text(fold: ShardFold) -> str:
    """Describe the place of a fold in the log."""
    if fold.chain_offset < 0:
        return f"shard {fold.shard}, before its first decision"
    return f"shard {fold.shard} after offset {fold.position - 1}, decided until {timestamp(fold.at_ms)}"
