"""Maintenance windows: when they are open, when they open next, and which texts name none."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drover.windows import is_open, opens_ms, parse

NIGHTS = "mon-fri 22:00-05:00 Europe/Berlin"
MINUTE_MS = 60_000


def at(text: str, zone: str = "Europe/Berlin") -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2026-03-02T21:59", False),  # a Monday
        ("2026-03-02T22:00", True),
        ("2026-03-03T04:59", True),
        ("2026-03-03T05:00", False),
        ("2026-03-07T04:59", True),  # the night from Friday to Saturday
        ("2026-03-07T22:30", False),
        ("2026-03-02T04:59", False),  # the night from Sunday to Monday
    ],
)
def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins(moment: str, expected: bool) -> None:
    assert is_open(NIGHTS, at(moment)) is expected


@pytest.mark.parametrize(
    ("windows", "moment", "expected"),
    [
        (NIGHTS, "2026-03-02T12:00", "2026-03-02T22:00"),
        (NIGHTS, "2026-03-07T05:00", "2026-03-09T22:00"),
        (NIGHTS, "2026-03-02T23:00", "2026-03-02T23:00"),
        ("sat,sun 00:00-24:00 Europe/Berlin", "2026-03-08T23:59", "2026-03-08T23:59"),
        ("sat,sun 00:00-24:00 Europe/Berlin", "2026-03-09T00:00", "2026-03-14T00:00"),
        ("wed 10:00-11:00 Europe/Berlin; tue 09:00-10:00 Europe/Berlin", "2026-03-02T12:00", "2026-03-03T09:00"),
        ("fri-mon 10:00-11:00 Europe/Berlin", "2026-03-02T11:00", "2026-03-06T10:00"),
        # Half past two does not exist on this day.
        ("02:30-04:00 Europe/Berlin", "2026-03-29T01:00", "2026-03-29T03:00"),
        # It comes twice on this one.
        ("02:30-04:00 Europe/Berlin", "2026-10-25T01:00", "2026-10-25T02:30"),
    ],
)
def test_the_next_opening_is_the_first_moment_in_a_window(windows: str, moment: str, expected: str) -> None:
    assert opens_ms(windows, at(moment)) == at(expected)


def test_without_a_zone_times_are_in_utc_and_without_windows_all_is_open() -> None:
    assert opens_ms("22:00-05:00", at("2026-03-02T12:00", "UTC")) == at("2026-03-02T22:00", "UTC")
    assert is_open(None, 0)
    assert opens_ms(None, 7) == 7


@given(st.integers(at("2026-01-01T00:00"), at("2027-01-01T00:00")), st.integers(0, 1439), st.integers(1, 1439))
def test_nothing_is_open_between_a_moment_and_the_next_opening(moment: int, start: int, length: int) -> None:
    end = (start + length) % 1440
    windows = f"mon-thu,sat {start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02} Europe/Berlin"
    moment -= moment % MINUTE_MS
    opening = opens_ms(windows, moment)
    assert is_open(windows, opening)
    assert not any(is_open(windows, between) for between in range(moment, opening, MINUTE_MS))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no window"),
        ("at night", "is no window"),
        ("mon 22:00", "is no window"),
        ("mon-fry 22:00-05:00", "'fry' is no day"),
        ("22:00-25:00", "25:00 is no time of day"),
        ("24:00-05:00", "24:00 is no time of day"),
        ("05:60-06:00", "05:60 is no time of day"),
        ("05:00-05:00", "ends as it begins"),
        ("22:00-05:00 Europe/Berlinn", "is no time zone"),
        ("22:00-05:00 ../../etc/passwd", "is no window"),
        ("22:00-05:00; ", "is no window"),
    ],
)
def test_a_text_that_names_no_window_is_refused_with_what_to_write(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse(text)
