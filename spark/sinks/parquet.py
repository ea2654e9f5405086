"""The history in Parquet files: every contribution is kept as it is, and compaction joins them.

A manifest, replaced atomically, names the current files. Files that no manifest names are of an unfinished batch, which
is repeated and writes them again under the same names.
"""

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct, json, msgpack

from drover.spark.merge import Row, merge
from drover.spark.schema import SCHEMA_VERSION, TABLES
from drover.spark.sinks.port import BEGINNING, Applied, Position, Standing, check_follows
from drover.spark.tables.row_buffer import Key
from drover.spark.tables.schema import Kind, Table

# This many files of one level become one of the next, so that rewrites grow only with the logarithm of the history.
FILES_PER_LEVEL = 16
_ARROW = {Kind.TEXT: pa.string(), Kind.INTEGER: pa.int64(), Kind.REAL: pa.float64()}
_MANIFEST = "manifest.json"


class HistoryFile(Struct, frozen=True):
    """One file of a table; older ones have a higher level, or an earlier place in the manifest."""

    name: str
    level: int


class Manifest(Struct, frozen=True):
    """The current files, and the batch after which they are current."""

    version: int
    checkpoint: str
    batch: int
    newest_ms: int
    applied_ms: int
    carry: str
    files: dict[str, tuple[HistoryFile, ...]]


class ParquetSink:
    """Tables in a directory, one folder each. It keeps the history."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for name in TABLES:
            (directory / name).mkdir(parents=True, exist_ok=True)
        self._manifest = read_manifest(directory)

    @property
    def name(self) -> str:
        """The sink's name."""
        return "parquet"

    @property
    def keeps_history(self) -> bool:
        """Whether it keeps the tables that grow with the log."""
        return True

    def position(self, checkpoint: str) -> Position | None:
        """Return the progress of this checkpoint."""
        manifest = self._manifest
        if manifest is None or manifest.checkpoint != checkpoint:
            return None
        carry = msgpack.decode((self._directory / manifest.carry).read_bytes(), type=dict[str, bytes])
        return Position(manifest.batch, carry)

    def apply(self, checkpoint: str, applied: Applied) -> bool:
        """Write a batch's files, then the manifest that makes them current, and remove outdated files."""
        before = self.position(checkpoint)
        if before is not None and applied.batch <= before.batch:
            return False
        check_follows(self.name, self._directory, None if before is None else before.batch, applied.batch)
        earlier = before or BEGINNING
        carry = f"carry-{checkpoint}-{applied.batch:09d}.msgpack"
        _write(self._directory / carry, msgpack.encode({**earlier.carry, **applied.part.carried}))
        files_before = {} if self._manifest is None or before is None else self._manifest.files
        files = {name: self._grown(TABLES[name], files_before.get(name, ()), checkpoint, applied) for name in TABLES}
        manifest = Manifest(
            version=SCHEMA_VERSION,
            checkpoint=checkpoint,
            batch=applied.batch,
            newest_ms=applied.part.newest_ms,
            applied_ms=applied.applied_ms,
            carry=carry,
            files=files,
        )
        _write(self._directory / _MANIFEST, json.encode(manifest))
        self._manifest = manifest
        self._remove_outdated(manifest)
        return True

    def rows(self, table: str) -> tuple[Row, ...]:
        """Read a table, every contribution joined."""
        return () if self._manifest is None else read_history(self._directory, self._manifest, table)

    def standing(self) -> Standing | None:
        """Return the progress of the tables."""
        manifest = self._manifest
        return None if manifest is None else Standing(manifest.batch, manifest.newest_ms, manifest.applied_ms)

    def close(self) -> None:
        """Do nothing: no file is open between two batches."""

    def _grown(
        self, table: Table, files: tuple[HistoryFile, ...], checkpoint: str, applied: Applied
    ) -> tuple[HistoryFile, ...]:
        """Add a batch's file, and join the newest ones where there are many."""
        rows = applied.part.rows.get(table.name, ())
        if not rows:
            return files
        added = HistoryFile(f"{checkpoint}-{applied.batch:09d}.parquet", 0)
        _write_rows(table, self._directory / table.name / added.name, rows)
        files = (*files, added)
        while (run := _newest_run(files)) is not None:
            joined = HistoryFile(f"{checkpoint}-{applied.batch:09d}-level{run[0].level + 1}.parquet", run[0].level + 1)
            merged = _merged(table, [self._directory / table.name / file.name for file in run])
            _write_rows(table, self._directory / table.name / joined.name, tuple(merged.values()))
            files = (*files[: -len(run)], joined)
        return files

    def _remove_outdated(self, manifest: Manifest) -> None:
        for name, files in manifest.files.items():
            current = {file.name for file in files}
            for file in (self._directory / name).iterdir():
                if file.name not in current:
                    file.unlink()
        for file in self._directory.glob("carry-*"):
            if file.name != manifest.carry:
                file.unlink()


def read_manifest(directory: Path) -> Manifest | None:
    """Read the manifest; None for a directory without tables, or with those of another version."""
    try:
        text = (directory / _MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    manifest = json.decode(text, type=Manifest)
    return manifest if manifest.version == SCHEMA_VERSION else None


def read_history(directory: Path, manifest: Manifest, table: str) -> tuple[Row, ...]:
    """Read one table as of a manifest."""
    files = [directory / table / file.name for file in manifest.files.get(table, ())]
    return tuple(_merged(TABLES[table], files).values())


def _newest_run(files: Sequence[HistoryFile]) -> tuple[HistoryFile, ...] | None:
    """Return the newest files of one level, when there are enough of them to be joined."""
    run = tuple(takewhile(lambda file: file.level == files[-1].level, reversed(files)))
    return tuple(reversed(run)) if len(run) >= FILES_PER_LEVEL else None


def _merged(table: Table, files: Sequence[Path]) -> dict[Key, Row]:
    rows: dict[Key, Row] = {}
    for file in files:
        merge(table, rows, pq.read_table(file).to_pylist())
    return rows


def _write_rows(table: Table, file: Path, rows: Sequence[Row]) -> None:
    schema = pa.schema([(column.name, _ARROW[column.kind]) for column in table.columns])
    partial = file.with_suffix(".part")
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), partial)
    partial.replace(file)


def _write(file: Path, content: bytes) -> None:
    partial = file.with_name(f"{file.name}.part")
    partial.write_bytes(content)
    partial.replace(file)
