"""PURE: maintenance windows, such as `mon-fri 22:00-05:00 Europe/Berlin`: when steps may start.

A text names windows separated by `;`. Each has days (`mon-fri`, `sat,sun`; every day if there are none), a time of day
from and to, and a time zone of the IANA database (UTC if there is none). A window whose end is not after its start ends
on the next day. Times of day are those of the clock on the wall: where that jumps, a window is longer or shorter.

The zone database is the only thing from outside that this module reads.
"""

import re
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WINDOW = re.compile(
    r"(?:(?P<days>[a-z]{3}(?:\s*[-,]\s*[a-z]{3})*)\s+)?"
    r"(?P<start>\d{2}:\d{2})\s*-\s*(?P<end>\d{2}:\d{2})(?:\s+(?P<zone>[\w+/-]+))?",
    re.IGNORECASE,
)
_EXAMPLE = "mon-fri 22:00-05:00 Europe/Berlin"
_MINUTE_MS = 60_000
_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class Window:
    """The days of the week (0 is Monday) on which a window begins, and its minutes of the day there.

    `end` is not after `start` where the window ends on the next day.
    """

    days: frozenset[int]
    start: int
    end: int
    zone: zoneinfo.ZoneInfo

    def is_open(self, at_ms: int) -> bool:
        """Whether a moment (ms since epoch) lies in the window."""
        local = _local(at_ms, self.zone)
        day, minute = local.weekday(), local.hour * 60 + local.minute
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        is_evening = day in self.days and minute >= self.start
        return is_evening or ((day - 1) % 7 in self.days and minute < self.end)

    def opens_ms(self, at_ms: int) -> int:
        """Return when the window opens next, as ms since epoch; `at_ms` itself while it is open."""
        if self.is_open(at_ms):
            return at_ms
        today = _local(at_ms, self.zone).date()
        opening = min(
            start_ms
            for days in range(9)
            if (start_ms := _start_ms(today + timedelta(days), self.start, self.zone)) > at_ms
            and (today + timedelta(days)).weekday() in self.days
        )
        # A start that the clock on the wall skips is where it goes on.
        while opening - _MINUTE_MS > at_ms and self.is_open(opening - _MINUTE_MS):
            opening -= _MINUTE_MS
        return opening


def is_open(windows: str | None, at_ms: int) -> bool:
    """Whether a moment (ms since epoch) lies in one of some windows; always where there are none."""
    return windows is None or any(window.is_open(at_ms) for window in parse(windows))


def opens_ms(windows: str | None, at_ms: int) -> int:
    """Return when one of some windows opens next, as ms since epoch; `at_ms` itself while one is open."""
    return at_ms if windows is None else min(window.opens_ms(at_ms) for window in parse(windows))


def in_words(at_ms: int) -> str:
    """Write when a window opens (ms since epoch), in UTC."""
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%dT%H:%MZ}"


@lru_cache(maxsize=256)
def parse(text: str) -> tuple[Window, ...]:
    """Read windows. Raises `ValueError`, which says what is wrong and how to write it."""
    return tuple(_window(part.strip()) for part in text.split(";"))


def _window(text: str) -> Window:
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no window: write one like {_EXAMPLE!r}, and ; between several")
    start, end = _minute(match["start"], is_end=False), _minute(match["end"], is_end=True)
    if start == end:
        raise ValueError(f"the window {text!r} ends as it begins: write 00:00-24:00 for a whole day")
    days = frozenset(_named_days(match["days"])) if match["days"] else frozenset(range(7))
    return Window(days, start, end, _zone(match["zone"] or "UTC"))


def _minute(text: str, *, is_end: bool) -> int:
    hours, minutes = map(int, text.split(":"))
    minute = hours * 60 + minutes
    if minutes >= 60 or minute > (_DAY_MINUTES if is_end else _DAY_MINUTES - 1):
        raise ValueError(f"{text} is no time of day: write one from 00:00 to 23:59, and 24:00 for the end of a day")
    return minute


def _named_days(text: str) -> Iterator[int]:
    for part in text.lower().split(","):
        first, _, last = (name.strip() for name in part.partition("-"))
        for name in (first, last or first):
            if name not in _DAYS:
                raise ValueError(f"{name!r} is no day: write {', '.join(_DAYS)}")
        begin, end = _DAYS.index(first), _DAYS.index(last or first)
        yield from (day % 7 for day in range(begin, end + 1 if end >= begin else end + 8))


@lru_cache(maxsize=64)
def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name!r} is no time zone that is known here: write one like Europe/Berlin, or UTC") from None


def _local(at_ms: int, zone: zoneinfo.ZoneInfo) -> datetime:
    return datetime.fromtimestamp(at_ms // 1000, UTC).astimezone(zone)


def _start_ms(day: date, minute: int, zone: zoneinfo.ZoneInfo) -> int:
    start = datetime.combine(day, time(minute // 60, minute % 60), zone)
    return round(start.timestamp() * 1000)
