"""Declarations of tables: columns with their units, and how a later contribution joins a row.

A part of the log contributes rows; a sink merges them by key. Merging is associative, so the tables
are the same whether the log was read at once or in a thousand parts.
"""

from enum import StrEnum
from typing import NamedTuple


class Merge(StrEnum):
    """How a contribution joins a row."""

    KEY = "key"
    SUM = "sum"
    MAX = "max"
    KEEP = "keep"  # a new value replaces the old one, no value leaves it
    REPLACE = "replace"  # also by no value


class Kind(StrEnum):
    """The type of a column, in the words of SQLite; Spark and Arrow have theirs for each."""

    TEXT = "text"
    INTEGER = "integer"
    REAL = "real"


class Column(NamedTuple):
    """One column; `unit` is the unit of its values, or lists them."""

    name: str
    kind: Kind
    merge: Merge
    unit: str
    meaning: str


class Table(NamedTuple):
    """One table; `is_history` says that it grows with the log, and only sinks with a history keep it.

    `expires_by` names the column with the time (ms since epoch) from which a row's age counts; sinks remove old rows,
    and keep a row while that column is null. Later contributions to an expired row are not allowed.

    `begins_by` names the column with the time at which a row's subject began, for names that are used again: a
    contribution with another value there replaces the whole row, sums included.
    """

    name: str
    meaning: str
    bounded_by: str
    columns: tuple[Column, ...]
    is_history: bool = False
    expires_by: str | None = None
    begins_by: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that tell one row from the others."""
        return tuple(column.name for column in self.columns if column.merge is Merge.KEY)

    @property
    def values(self) -> tuple[Column, ...]:
        """The columns that are no keys."""
        return tuple(column for column in self.columns if column.merge is not Merge.KEY)

    @property
    def names(self) -> tuple[str, ...]:
        """Every column's name, keys first."""
        return tuple(column.name for column in self.columns)


TEXT, INTEGER, REAL = Kind.TEXT, Kind.INTEGER, Kind.REAL


def key(name: str, kind: Kind, unit: str, meaning: str) -> Column:
    """Make a column that tells rows apart."""
    return Column(name, kind, Merge.KEY, unit, meaning)


def count(name: str, meaning: str, unit: str = "count") -> Column:
    """Make a column that is summed up."""
    return Column(name, Kind.INTEGER, Merge.SUM, unit, meaning)


def most(name: str, meaning: str, unit: str) -> Column:
    """Make a column that keeps the largest value."""
    return Column(name, Kind.INTEGER, Merge.MAX, unit, meaning)


def latest(name: str, kind: Kind, unit: str, meaning: str) -> Column:
    """Make a column that always has the latest value, no value included."""
    return Column(name, kind, Merge.REPLACE, unit, meaning)


def retained(name: str, kind: Kind, unit: str, meaning: str) -> Column:
    """Make a column that keeps its latest value until there is another one."""
    return Column(name, kind, Merge.KEEP, unit, meaning)


# Columns that several tables have.
CLUSTER = key("cluster", TEXT, "name", "the cluster's name")
TOPIC = key("topic", TEXT, "name", "the topic")
PARTITION = key("partition", INTEGER, "number", "the partition's number")
WINDOW = key("window_ms", INTEGER, "ms since epoch", "beginning of the window of one minute")
REQUESTER = key("requester", TEXT, "name", "who asked; of what a plan did, who opened the plan")
BROKER = key("broker", INTEGER, "broker id", "the broker")
BROKERS = "broker ids, by comma"
