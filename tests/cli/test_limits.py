"""`drover limits` without a Kafka: what is refused before anything is sent."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from drover.cli.exits import ExitCode
from drover.cli.limits import known_limit, parse_value
from drover.cli.main import cli

# Nothing listens there.
CONFIG = '[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n'


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("DROVER_CONFIG", raising=False)
    Path("drover.toml").write_text(CONFIG)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["max_moves_per_broker"], "is not NAME=VALUE"),
        (["max_moves_per_broker=0"], "must be at least 1, and is 0"),
        (["max_moves_per_broker=many"], "must be a whole number"),
        (["max_move_per_broker=3"], "is it max_moves_per_broker?"),
        (["zzz=3"], "`drover limits show` lists them"),
        (["heal.alarm_ms=soon"], "is not a duration"),
        (["stepping=jump"], "must be grow, swap or single"),
        (["max_moves_per_broker=3", "max_moves_per_broker=4"], "is named twice"),
        (["--plan", "friday", "windows=at night"], "is no window"),
        (["--plan", "friday", "max_moves_per_broker=3"], "a plan has only windows of its own"),
        (["--plan", "friday", "windows=", "max_moves_per_broker=3"], "a plan has only windows of its own"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_before_it_is_sent(given: list[str], said: str) -> None:
    result = run("limits", "set", *given, "--reason", "r")
    assert result.exit_code == ExitCode.USAGE
    assert said in " ".join(result.stderr.split())


def test_a_reset_names_limits_or_says_all() -> None:
    for given in ([], ["stepping", "--all"], ["steping"]):
        result = run("limits", "reset", *given, "--reason", "r")
        assert result.exit_code == ExitCode.USAGE, result.stderr


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("max_moves_per_broker", "10", 10),
        ("heal.alarm_ms", "15m", 900_000),
        ("heal.failure_interval_ms", "-1", -1),
        ("heal.max_bytes_per_day", "500GB", 500_000_000_000),
        ("heal.throttle_bytes_per_second", "10MB/s", 10_000_000),
        ("heal.throttle_bytes_per_second", "none", None),
        ("lazy_leadership", "true", True),
        ("stepping", "swap", "swap"),
        ("windows", "22:00-05:00", "22:00-05:00"),
        ("windows", "", None),
    ],
)
def test_a_limit_is_written_in_its_units(name: str, text: str, value: object) -> None:
    known = known_limit(name)
    assert known.read(parse_value(known, text)) == value
