"""`drover web`: what it reads besides the log, and what it says before it serves."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from drover.cli.main import cli
from drover.cli.web import Tables
from drover.runtime.section_settings import SparkSettings
from drover.runtime.settings import LogSettings, Settings
from spark.sinks.sqlite import SqliteSink


def tables(directory: Path) -> Tables:
    return Tables(Settings(LogSettings("nowhere:1"), spark=SparkSettings(directory=str(directory))))


def test_without_tables_the_page_is_told_how_to_get_them(tmp_path: Path) -> None:
    found = tables(tmp_path).read("prod")
    assert "drover spark run" in found["missing"]


def test_empty_tables_have_an_age_and_every_part(tmp_path: Path) -> None:
    SqliteSink(tmp_path / "tables.sqlite")
    found = tables(tmp_path).read(None)
    assert found == {
        "job": None, "newest_record_ms": None, "applied_ms": None, "refusals": [],
        "requests": [], "takeovers": [], "durations": [],
    }  # fmt: skip


@pytest.mark.parametrize("command", ["web", "worker", "project"])
def test_an_address_that_cannot_be_used_is_refused_in_words(command: str, tmp_path: Path) -> None:
    config = tmp_path / "drover.toml"
    config.write_text('[log]\nbootstrap = "nowhere:1"\n')
    done = CliRunner().invoke(cli, [command, "--config", str(config), "--listen", "everywhere"])
    assert done.exit_code == 2
    assert "Invalid value for '--listen': listen must be host:port" in done.output
    assert str(config) not in done.output
