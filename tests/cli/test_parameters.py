"""What operators type."""

import re
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from drover.cli.main import cli
from drover.cli.output import amount, duration, plural, timestamp
from drover.cli.parameters import check_rate, parse_duration, parse_partition, parse_rate, parse_size, parse_timestamp
from drover.events.partitions import TopicPartition


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1000", 1000), ("10MB/s", 10_000_000), ("50MiB", 52_428_800), ("1.5 kB/s", 1500), ("2g", 2_000_000_000),
        ("64KiB/s", 65_536), ("7B", 7), ("2MBps", 2_000_000),
    ],
)  # fmt: skip
def test_rates_are_decimal_or_binary_as_written(text: str, rate: int) -> None:
    assert parse_rate(text) == rate


def test_what_is_beyond_all_numbers_is_refused() -> None:
    for parse in (parse_rate, parse_size):
        with pytest.raises(ValueError, match="is too large"):
            parse("9" * 400)


@pytest.mark.parametrize(
    ("text", "hint"), [("10Mbps", "1.25MB/s"), ("1Gb/s", "0.125GB/s"), ("8kbit/s", "1kB/s"), ("100 mbits", "12.5mB/s")]
)
def test_bits_are_refused_with_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=f"counts bits.*write {re.escape(hint)}"):
        parse_rate(text)


@pytest.mark.parametrize("rate", [1, 999, 100_000_000_001])
def test_an_unlikely_rate_must_be_meant(rate: int) -> None:
    with pytest.raises(ValueError, match="--force"):
        check_rate(rate, force=False)
    check_rate(rate, force=True)


@pytest.mark.parametrize("text", ["", "fast", "10 apples", "-5MB", "0", "10MB/h"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a rate|at least 1"):
        parse_rate(text)


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("500ms", 0.5), ("2m", 120), ("1.5h", 5400), ("7", 7)])
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "1y", "1h30m", "-1s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


def test_a_partition_is_split_at_its_last_colon() -> None:
    assert parse_partition("a.b:c:12") == TopicPartition("a.b:c", 12)
    for text in ("topic", ":1", "topic:", "topic:x", "topic:-1"):
        with pytest.raises(ValueError, match="not a partition"):
            parse_partition(text)


def test_a_moment_is_so_long_ago_or_a_date() -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert parse_timestamp("2h", now) == datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert parse_timestamp("2026-11-20T15:04+00:00", now) == datetime(2026, 11, 20, 15, 4, tzinfo=UTC)
    assert parse_timestamp("2026-11-20", now) == datetime(2026, 11, 20, tzinfo=UTC)
    with pytest.raises(ValueError, match="has no time zone: write 2026-11-20T15:04Z for UTC"):
        parse_timestamp("2026-11-20T15:04", now)
    with pytest.raises(ValueError, match="not a time"):
        parse_timestamp("yesterday", now)


@pytest.mark.parametrize("text", ["9" * 400 + "d", "9" * 300 + "d"])
def test_a_duration_without_end_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="too long for a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text", ["9" * 400 + "d", "99999999999999999d", "999999999d", "9999-12-31T23:59:59-10:00", "0001-01-01T00:00+10:00"]
)
def test_a_moment_that_no_date_reaches_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a time|before the first representable date"):
        parse_timestamp(text, datetime(2026, 11, 21, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    "arguments",
    [
        ("history", "--since", "999999999d"),
        ("audit", "--since", "999999999d"),
        ("audit", "--until", "9" * 300 + "d"),
        ("broker", "failed", "4", "--reason", "x", "--at", "9999-12-31T23:59:59-10:00"),
        ("leaders", "demote", "4", "--reason", "x", "--for", "9" * 400 + "d"),
        ("limits", "set", "heal.flapping_window_ms=" + "9" * 400 + "m", "--reason", "x"),
    ],
)
def test_a_time_without_end_is_wrong_usage(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2


def test_numbers_are_written_for_people() -> None:
    assert [duration(ms) for ms in (0, 59_400, 61_000, 3_660_000, 90_000_000)] == [
        "0s",
        "59s",
        "1m01s",
        "1h01m",
        "1d01h",
    ]
    assert [amount(count) for count in (0, 999, 1500, 2_500_000, 3e9, 4e12)] == [
        "0 B", "999 B", "1.5 kB", "2.5 MB", "3.0 GB", "4.0 TB",
    ]  # fmt: skip
    assert [plural(count, "move") for count in (0, 1, 1200)] == ["0 moves", "1 move", "1,200 moves"]
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"


def test_a_moment_after_the_last_that_can_be_written_is_written_as_the_last() -> None:
    """A broker may be listed until then, and an outage be healed then: a command's moments go up to 2^53 ms."""
    assert timestamp(2**53).startswith("9999-12-31T23:59:59.")
