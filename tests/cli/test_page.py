"""`drover web`: what it reads besides the log, and what it says before it serves."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from drover.cli.main import cli
from drover.cli.page import SHOWN_TABLE_ROWS, Tables
from drover.settings.settings import LogSettings, Settings, SparkSettings
from drover.spark.merge import Part, Row
from drover.spark.schema import TABLES
from drover.spark.sinks.port import Applied
from drover.spark.sinks.sqlite import SqliteSink


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


def test_of_tables_that_grow_with_time_the_latest_rows_are_shown(tmp_path: Path) -> None:
    """They have a row for each minute, for 90 days: the first hundred are of 90 days ago."""
    minutes = range(0, 60_000 * (SHOWN_TABLE_ROWS + 50), 60_000)
    of = {"requester": "ann", "code": "unknown-plan"}
    rows: dict[str, tuple[Row, ...]] = {
        "takeovers": tuple(filled("takeovers", shard=shard, window_ms=at) for shard in (0, 5) for at in minutes),
        "requests": tuple(filled("requests", cluster=one, window_ms=at, **of) for one in "ab" for at in minutes),
        "refusals": tuple(filled("refusals", cluster=one, window_ms=at, **of) for one in "ab" for at in minutes),
    }
    sink = SqliteSink(tmp_path / "tables.sqlite")
    sink.apply("it", Applied(0, Part(rows, {}, 0), 0))
    sink.close()
    newest_first = sorted(minutes, reverse=True)
    found = tables(tmp_path).read("b")
    for name in ("requests", "refusals"):
        assert [row["window_ms"] for row in found[name]] == newest_first[:SHOWN_TABLE_ROWS]
        assert {row["cluster"] for row in found[name]} == {"b"}
        assert len(tables(tmp_path).read(None)[name]) == SHOWN_TABLE_ROWS
    places = [(row["window_ms"], row["shard"]) for row in found["takeovers"]]
    assert places == [(at, shard) for at in newest_first for shard in (0, 5)][:SHOWN_TABLE_ROWS]


def filled(table: str, **fields: Any) -> Row:
    return {name: fields.get(name, 1) for name in TABLES[table].names}


@pytest.mark.parametrize("command", [["web"], ["worker"], ["zookeeper", "run"]], ids=" ".join)
def test_an_address_that_cannot_be_used_is_refused_in_words(command: list[str], tmp_path: Path) -> None:
    config = tmp_path / "drover.toml"
    config.write_text('[log]\nbootstrap = "nowhere:1"\n')
    done = CliRunner().invoke(cli, [*command, "--config", str(config), "--listen", "everywhere"])
    assert done.exit_code == 2
    assert "Invalid value for '--listen': listen must be host:port" in done.output
    assert str(config) not in done.output
