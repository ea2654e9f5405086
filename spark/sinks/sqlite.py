"""The tables in one SQLite file: written by the job, readable meanwhile (WAL); the sink by default."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from drover.spark.merge import Row
from drover.spark.schema import BOUNDED, SCHEMA_VERSION, TABLES
from drover.spark.sinks.port import Applied, Position, Standing, check_follows
from drover.spark.tables.row_buffer import MOST
from drover.spark.tables.schema import Column, Merge, Table

BUSY_S = 30.0
EXPIRY_EVERY_MS = 3_600_000
_KEPT = {
    "fence": (
        "query text, checkpoint text, batch integer not null, newest_ms integer not null, "
        "applied_ms integer not null, primary key (query, checkpoint)"
    ),
    "carry": "key text primary key, value blob not null",
}
# The conditions of open rows, which have indexes: readers ask for these among the ended rows of months.
UNDER_WAY, OPEN = "ended_ms is null", "finished_ms is null"
_OPEN_ROWS = {"reassignments": UNDER_WAY, "plans": OPEN}
# The join of the present and the new value, as SQL.
_JOIN = {
    # SQLite adds integers as numbers with a point where their sum has no room: see `row_buffer.MOST`.
    Merge.SUM: f"min(coalesce(old.{{0}}, 0) + coalesce(excluded.{{0}}, 0), {MOST})",
    Merge.MAX: "max(coalesce(old.{0}, excluded.{0}), coalesce(excluded.{0}, old.{0}))",
    Merge.KEEP: "coalesce(excluded.{0}, old.{0})",
    Merge.REPLACE: "excluded.{0}",
}


class SqliteSink:
    """Tables in one file; `query` tells the fences of several jobs apart. It keeps no history.

    Ended rows are kept for `keeps_ms` before the log's newest record (None: for ever), and removed once an hour.
    """

    def __init__(self, file: Path, query: str = "tables", keeps_ms: int | None = None) -> None:
        self._file = file
        self._keeps_ms = keeps_ms
        self._query = query
        self._tables = tuple(BOUNDED.values())
        file.parent.mkdir(parents=True, exist_ok=True)
        # Spark calls from its own threads, one at a time.
        self._connection = sqlite3.connect(file, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = normal")
        self._make()
        standing = self.standing()
        # A restarted job removes no rows before the next hour.
        self._expired_ms = 0 if standing is None else min(standing.newest_ms, standing.applied_ms)

    @property
    def name(self) -> str:
        """The sink's name."""
        return "sqlite"

    @property
    def keeps_history(self) -> bool:
        """Whether it keeps the tables that grow with the log."""
        return False

    def position(self, checkpoint: str) -> Position | None:
        """Return the progress of this checkpoint."""
        last = self._last(checkpoint)
        if last is None:
            return None
        return Position(last, dict(self._connection.execute("select key, value from carry")))

    def apply(self, checkpoint: str, applied: Applied) -> bool:
        """Apply a batch in one transaction, with its number."""
        with self._transaction():
            last = self._last(checkpoint)
            if self._is_applied(last, applied.batch):
                return False
            self._check_follows(last, applied.batch)
            if last is None:
                self._empty()
            for name, rows in applied.part.rows.items():
                if name in BOUNDED:
                    self._connection.executemany(_upsert(TABLES[name]), map(_values, rows))
            self._carry_on(applied)
            # Brokers set the times of the log, but senders may set those of samples, which therefore expire no rows.
            self._expire(min(applied.part.logged_ms, applied.applied_ms))
            self._connection.execute(
                "insert or replace into fence values (?, ?, ?, ?, ?)",
                (self._query, checkpoint, applied.batch, applied.part.newest_ms, applied.applied_ms),
            )
        return True

    def rows(self, table: str) -> tuple[Row, ...]:
        """Read a table."""
        return tuple(read_rows(self._connection, table))

    def standing(self) -> Standing | None:
        """Return the progress of the tables."""
        return read_standing(self._connection, self._query)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _is_applied(self, last: int | None, batch: int) -> bool:
        return last is not None and batch <= last

    def _check_follows(self, last: int | None, batch: int) -> None:
        check_follows(self.name, self._file, last, batch)

    def _last(self, checkpoint: str) -> int | None:
        row = self._connection.execute(
            "select batch from fence where query = ? and checkpoint = ?", (self._query, checkpoint)
        ).fetchone()
        return None if row is None else int(row[0])

    def _carry_on(self, applied: Applied) -> None:
        carried = applied.part.carried.items()
        self._connection.executemany("insert or replace into carry values (?, ?)", carried)

    def _expire(self, now_ms: int) -> None:
        """Remove rows that have grown old, once in an hour of the log."""
        if self._keeps_ms is None or now_ms // EXPIRY_EVERY_MS <= self._expired_ms // EXPIRY_EVERY_MS:
            return
        self._expired_ms = now_ms
        for table in self._tables:
            if table.expires_by is not None:
                old = f'delete from "{table.name}" where "{table.expires_by}" < ?'  # noqa: S608 - as above
                self._connection.execute(old, (now_ms - self._keeps_ms,))

    def _make(self) -> None:
        """Create missing tables; those of another version are dropped with their fences, and rebuilt."""
        with self._transaction():
            (version,) = self._connection.execute("pragma user_version").fetchone()
            if version not in {0, SCHEMA_VERSION}:
                for (name,) in self._connection.execute(
                    "select name from sqlite_master where type = 'table'"
                ).fetchall():
                    self._connection.execute(f'drop table "{name}"')
            for name, columns in _KEPT.items():
                self._connection.execute(f"create table if not exists {name} ({columns}) without rowid")
            for table in self._tables:
                self._connection.execute(_create(table))
            for name, condition in _OPEN_ROWS.items():
                keys = ", ".join(f'"{key}"' for key in TABLES[name].keys)
                index = f'create index if not exists "open_{name}" on "{name}" ({keys}) where {condition}'
                self._connection.execute(index)
            self._connection.execute(f"pragma user_version = {SCHEMA_VERSION}")

    def _empty(self) -> None:
        for name in (*(table.name for table in self._tables), *_KEPT):
            self._connection.execute(f'delete from "{name}"')  # noqa: S608 - names of our own schema

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("begin immediate")
        with self._connection:  # commits, or rolls back what fails
            yield


def read_rows(
    connection: sqlite3.Connection, table: str, where: str = "", values: Iterable[object] = ()
) -> Iterator[Row]:
    """Yield a table's rows by column; `where` may begin with a condition."""
    names = TABLES[table].names
    columns = ", ".join(f'"{name}"' for name in names)
    cursor = connection.execute(f'select {columns} from "{table}" {where}', tuple(values))  # noqa: S608 - as above
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def read_standing(connection: sqlite3.Connection, query: str = "tables") -> Standing | None:
    """Read the progress of a query's tables."""
    row = connection.execute(
        "select batch, newest_ms, applied_ms from fence where query = ? order by applied_ms desc limit 1", (query,)
    ).fetchone()
    return None if row is None else Standing(*row)


def _create(table: Table) -> str:
    columns = ", ".join(f'"{column.name}" {column.kind}{_default(column)}' for column in table.columns)
    keys = ", ".join(f'"{name}"' for name in table.keys)
    return f'create table if not exists "{table.name}" ({columns}, primary key ({keys})) without rowid'


def _default(column: Column) -> str:
    return " not null default 0" if column.merge is Merge.SUM else ""


def _upsert(table: Table) -> str:
    names = ", ".join(f'"{name}"' for name in table.names)
    places = ", ".join("coalesce(?, 0)" if column.merge is Merge.SUM else "?" for column in table.columns)
    keys = ", ".join(f'"{name}"' for name in table.keys)
    joins = ", ".join(f"{_quoted(column)} = {_join(table, column)}" for column in table.values)
    return (
        f'insert into "{table.name}" as old ({names}) values ({places}) '  # noqa: S608 - names of our own schema
        f"on conflict ({keys}) do update set {joins}"
    )


def _join(table: Table, column: Column) -> str:
    name = _quoted(column)
    joined = _JOIN[column.merge].format(name)
    if table.begins_by is None:
        return joined
    # See `Table.begins_by`; no comparison with null is true.
    began = f'"{table.begins_by}"'
    return f"case when old.{began} <> excluded.{began} then excluded.{name} else {joined} end"


def _quoted(column: Column) -> str:
    return f'"{column.name}"'


def _values(row: Row) -> tuple[object, ...]:
    return tuple(row.values())  # `part_of` gives every row all columns, in their order
