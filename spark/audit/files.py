"""An audit as files: one per section, in CSV or Parquet."""

import csv
import re
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from drover.spark.audit.facts import Row
from drover.spark.audit.report import Report
from drover.spark.audit.sections import SECTIONS, Section
from drover.spark.tables.schema import Kind

_ARROW: dict[Kind, Any] = {Kind.TEXT: pa.string(), Kind.INTEGER: pa.int64(), Kind.REAL: pa.float64()}
# The texts that spreadsheets take for formulas, also after blanks, and in wide forms that some convert.
_FORMULA = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff'\"]*[=+\-@|%\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")


def csv_text(section: str, rows: Iterable[Row]) -> str:
    """Write a section as CSV with a line of names.

    A text that a spreadsheet would take for a formula gets a `'` in front, since users wrote it and others open the
    file.
    """
    names = SECTIONS[section].names
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_plain(row[name]) for name in names] for row in rows)
    return file.getvalue()


def _plain(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def write_csv(report: Report, directory: Path) -> list[Path]:
    """Write each section to `<section>.csv`; raises `OSError`."""
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for name, rows in report.sections.items():
        file = directory / f"{name}.csv"
        file.write_text(csv_text(name, rows), encoding="utf-8", newline="")
        files.append(file)
    return files


def write_parquet(report: Report, directory: Path) -> list[Path]:
    """Write each section to `<section>.parquet`; the units of its columns and the part audited are in the metadata.

    Raises `OSError`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for name, rows in report.sections.items():
        file = directory / f"{name}.parquet"
        parquet.write_table(pa.Table.from_pylist(list(rows), schema=arrow_schema(SECTIONS[name], report.offsets)), file)
        files.append(file)
    return files


def arrow_schema(section: Section, offsets: str) -> Any:
    """Return a section's schema; each column says its unit and meaning."""
    fields = [
        pa.field(column.name, _ARROW[column.kind], metadata={"unit": column.unit, "meaning": column.meaning})
        for column in section.columns
    ]
    return pa.schema(fields, metadata={"drover.offsets": offsets})
