"""The documentation of the tables is that of the code: every column, with its unit."""

import re
from pathlib import Path

import pytest

from drover.cli.spark import TABLES as SHOWN
from drover.fold.log import Rule
from drover.spark.audit.sections import SECTIONS
from drover.spark.schema import TABLES
from drover.spark.tables.schema import Merge

README = (Path(__file__).parents[2] / "spark" / "README.md").read_text(encoding="utf-8")


def section(name: str) -> str:
    parts = re.split(r"^### (.*)$", README, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[f"`{name}`"]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_documented_column_by_column_with_its_units(name: str) -> None:
    table = TABLES[name]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+?) \| (\w+) \| (.+?) \|$", section(name), flags=re.MULTILINE)
    assert rows == [(one.name, one.kind, one.unit, one.merge, one.meaning) for one in table.columns]
    assert f"{table.meaning} Rows: {table.bounded_by}." in section(name)


@pytest.mark.parametrize("name", TABLES)
def test_every_column_has_a_unit_and_every_table_a_key(name: str) -> None:
    table = TABLES[name]
    assert table.keys
    assert [column.merge for column in table.columns[: len(table.keys)]] == [Merge.KEY] * len(table.keys)
    assert all(column.unit and column.meaning for column in table.columns)


def test_the_command_line_shows_every_table_that_sqlite_keeps() -> None:
    assert set(SHOWN) == {name for name, table in TABLES.items() if not table.is_history}


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_of_an_audit_is_documented_column_by_column_with_its_units(name: str) -> None:
    parts = re.split(r"^### (.*)$", README.split("\n## Tables\n", maxsplit=1)[0], flags=re.MULTILINE)
    text = dict(zip(parts[1::2], parts[2::2], strict=True))[f"`{name}`"]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+?) \| (.+?) \|$", text, flags=re.MULTILINE)
    assert rows == [(one.name, one.kind, one.unit, one.meaning) for one in SECTIONS[name].columns]
    assert SECTIONS[name].meaning in text


def test_every_rule_that_an_inspection_knows_is_documented() -> None:
    assert re.findall(r"^\| `([a-z-]+)` \| [^|]+ \|$", README, flags=re.MULTILINE) == [rule.value for rule in Rule]
