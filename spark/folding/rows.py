"""The rows that the fold sees, and what it says: contributions to tables, and what it carries on."""

from typing import Any, NamedTuple

from msgspec import Struct, json

# The table names under which carried values, and what is in no table, travel among the contributions.
CARRY, NO_TABLE = "carry", "none"


class FoldRow(NamedTuple):
    """Those columns of a flat row (`spark.rows`) that the fold needs, in this order."""

    cluster: str
    entry: str
    shard: int
    offset: int
    index: int  # type: ignore[assignment]  # it hides a method of tuples that nobody calls here
    epoch: int
    at_ms: int
    tag: str | None
    topic: str | None
    partition: int | None
    plan: str | None
    by: str | None
    reason: str | None
    why: str | None
    detail: str | None
    call: str | None
    step: int | None
    leader: int | None
    broker: int | None
    original: list[int] | None
    target: list[int] | None
    expected: list[int] | None
    replicas: list[int] | None
    bytes_done: int | None
    bytes_unknown: bool | None
    bytes_total: int | None
    adding: list[dict[str, int]] | None
    bytes_per_second: int | None
    leader_rate: int | None
    follower_rate: int | None
    release: bool | None
    started: bool | None


class Contribution(NamedTuple):
    """One row for one table, as JSON: what it holds of the table's columns, by name."""

    table: str
    document: str


class Carried(Struct, frozen=True):
    """A value to be carried on under a key; None forgets it."""

    key: str
    value: bytes | None


def contribution(table: str, document: Any) -> Contribution:
    """Make a contribution of a mapping or a struct."""
    return Contribution(table, json.encode(document).decode())


def carry_key(kind: str, *parts: str | int) -> str:
    """Name a carried value; neither clusters nor topics have a `/` in their names."""
    return "/".join((kind, *map(str, parts)))
