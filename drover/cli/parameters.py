"""PURE: parsers of parameters that operators type: rates, durations, partitions, times."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from drover import windows
from drover.cli.help import completing
from drover.events.partitions import TopicPartition
from drover.settings.addresses import parse_address

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(i?)(B?)(?:/s|ps)?")
_BITS = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)i?(?:b|bits?)(?:/s|ps)?")
# Below the first rate no copy ever catches up; no broker's network reaches the second.
SLOWEST_LIKELY_RATE = 1_000
FASTEST_LIKELY_RATE = 100_000_000_000
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)", re.IGNORECASE)
# Keeps milliseconds finite; the reader of a message has narrower bounds.
LONGEST_S = 1e300
# Kafka's ids are 32 bits wide.
MAX_BROKER = 2**31 - 1
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_rate(text: str) -> int:
    """Parse `10MB/s` (decimal), `50MiB` (binary) or plain bytes per second; refuse bits. Raises `ValueError`."""
    bits = _BITS.fullmatch(text.strip())
    if bits is not None:
        count, scale = bits.groups()
        raise ValueError(
            f"{text!r} counts bits, and throttles count bytes: write {float(count) / 8:g}{scale}B/s if bits are meant, "
            f"{count}{scale}B/s if not"
        )
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a rate: write 10MB/s, 50MiB or a number of bytes per second")
    amount, scale, binary, _ = match.groups()
    base = 1024 if binary else 1000
    rate = _whole(text, float(amount) * base ** (" kmgt".index(scale.lower() or " ")))
    if rate < 1:
        raise ValueError(f"{text!r} would stop all copying: give at least 1 byte per second")
    return rate


def check_rate(rate: int, *, force: bool) -> None:
    """Refuse a rate that looks like a mistake of units, unless `force` is set. Raises `ValueError`."""
    if force or SLOWEST_LIKELY_RATE <= rate <= FASTEST_LIKELY_RATE:
        return
    why = "copies would never catch up" if rate < SLOWEST_LIKELY_RATE else "no network is that fast"
    raise ValueError(f"{rate:,} bytes per second is an unlikely throttle ({why}): write 10MB/s, or add --force")


def parse_size(text: str) -> int:
    """Parse `500GB` (decimal), `2TiB` (binary) or plain bytes. Raises `ValueError`."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size: write 500GB, 2TiB or a number of bytes")
    amount, scale, binary = match.groups()
    return _whole(text, float(amount) * (1024 if binary else 1000) ** (" kmgt".index(scale.lower() or " ")))


def _whole(text: str, amount: float) -> int:
    if math.isinf(amount):
        raise ValueError(f"{text!r} is too large")
    return int(amount)


def parse_share(text: str) -> float:
    """Parse `85%` as 0.85. Raises `ValueError`."""
    match = _SHARE.fullmatch(text.strip())
    share = None if match is None else float(match.group(1)) / 100
    if share is None or not 0 < share <= 1:
        raise ValueError(f"{text!r} is not a share of a disk: write a percentage up to 100%, such as 85%")
    return share


def parse_names(text: str) -> tuple[str, ...]:
    """Parse `a,b`. Raises `ValueError`."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError(f"{text!r} has an empty name: write one,two,three")
    return names


def parse_brokers(text: str) -> tuple[int, ...]:
    """Parse `3,4` as broker ids. Raises `ValueError`."""
    names = parse_names(text)
    if not all(name.isdecimal() and len(name) <= len(str(MAX_BROKER)) and int(name) <= MAX_BROKER for name in names):
        raise ValueError(f"{text!r} is not a list of broker ids: write 3,4")
    return tuple(map(int, names))


def parse_broker(text: str) -> int:
    """Parse a broker id. Raises `ValueError`."""
    try:
        (broker,) = parse_brokers(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a broker id: write a number, such as 3") from None
    return broker


def parse_duration(text: str) -> float:
    """Parse `500ms`, `30s`, `5m`, `2h` or `1d` as seconds; a bare number is seconds. Raises `ValueError`."""
    text = text.strip()
    match = _DURATION.fullmatch(text + "s" if text.replace(".", "", 1).isdecimal() else text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration: write 500ms, 30s, 5m, 2h or 1d")
    seconds = float(match.group(1)) * _SECONDS[match.group(2).lower()]
    if seconds > LONGEST_S:
        raise ValueError(f"{text[:40]!r} is too long for a duration")
    return seconds


def parse_partition(text: str) -> TopicPartition:
    """Parse `topic:partition`. Raises `ValueError`."""
    topic, colon, partition = text.rpartition(":")
    if not (topic and colon and partition.isdecimal()):
        raise ValueError(f"{text!r} is not a partition: write TOPIC:PARTITION, such as orders:3")
    return TopicPartition(topic, int(partition))


def parse_timestamp(text: str, now: datetime) -> datetime:
    """Parse `2h` (an age), `2026-10-01` (the beginning of that day in UTC) or `2026-10-01T15:04Z`.

    Raises `ValueError`, also for a time without its zone.
    """
    text = text.strip()
    try:
        return now - timedelta(seconds=parse_duration(text))
    except OverflowError:
        raise ValueError(f"{text!r} is before the first representable date") from None
    except ValueError:
        return parse_date(
            text, "a time: write 2h for two hours ago, 2026-10-01 for the beginning of that day in UTC, or"
        )


def parse_date(text: str, advice: str) -> datetime:
    """Parse a day, in UTC, or a time with its zone. Raises `ValueError` with `advice`, completed by an example."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not {advice} 2026-10-01T15:04Z") from None
    if "T" in text or " " in text:
        raise ValueError(f"{text!r} has no time zone: write {text}Z for UTC, or {text}+01:00")
    return moment.replace(tzinfo=UTC)


class Parsed(click.ParamType):
    """A parameter that a function parses; its `ValueError` becomes a usage error."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the text; a default may be a parsed value already."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class NamedPath(click.Path):  # noqa: TID251 - the replacement that the ban names
    """A non-empty path, as `pathlib.Path`; the empty path of an unset variable would mean the working directory."""

    def __init__(self, **allowed: bool) -> None:
        super().__init__(path_type=Path, **allowed)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse the empty path, then check as click does."""
        if value == "":
            self.fail("the path is empty: check that the shell variable is set", param, ctx)
        return super().convert(value, param, ctx)


def _checked_address(text: str) -> str:
    parse_address(text)
    return text


def _checked_windows(text: str) -> str:
    if text:
        windows.parse(text)
    return text


def _parse_sighting(text: str) -> tuple[int, bool]:
    at_ms = _parse_ms(text)
    try:
        parse_duration(text)
    except ValueError:
        return at_ms, True
    return at_ms, False


def _parse_ms(text: str) -> int:
    return round(parse_timestamp(text, datetime.now(UTC)).timestamp() * 1000)


RATE = Parsed("rate", parse_rate)
# Checked, but kept as text; an empty text is no window.
WINDOWS = Parsed("windows", _checked_windows)
SIZE = Parsed("size", parse_size)
SHARE = Parsed("share", parse_share)
NAMES = Parsed("names", parse_names)
BROKERS = Parsed("brokers", parse_brokers)
DURATION = Parsed("duration", parse_duration)
PARTITION = Parsed("topic:partition", parse_partition)
# Checked, but kept as text, because settings hold addresses as text.
ADDRESS = Parsed("address", _checked_address)
# A time in ms since the epoch.
MOMENT = Parsed("when", _parse_ms)
# A time in ms since the epoch, and whether it is absolute, so that a retry means the same time.
SIGHTING = Parsed("when", _parse_sighting)
BROKER = Parsed("broker", parse_broker)
broker_argument = click.argument("number", metavar="N", type=BROKER, shell_complete=completing("brokers"))


def brokers_argument(metavar: str) -> Callable[[Decorated], Decorated]:
    """Add the argument `brokers`: ids as people write them, `1 4`, `1,4` or `1, 4`."""
    listed = Parsed("brokers", lambda text: parse_brokers(text.removesuffix(",")))
    return click.argument(
        "brokers",
        type=listed,
        nargs=-1,
        required=True,
        metavar=metavar,
        shell_complete=completing("brokers"),
        callback=_flattened,
    )


def _flattened(_: click.Context, __: click.Parameter, value: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    return tuple(broker for brokers in value for broker in brokers)
