"""One reading of the log, and everything that an audit says of a part of it: a task for each shard.

Runs in Spark's Python workers, which import this module by name: it must not open a session when it is imported.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec import msgpack
from pyspark.sql import DataFrame

from spark.audit.facts import Facts, Row, ShardDamage
from spark.audit.kept import NOTHING_KEPT, KeptShard, Place
from spark.audit.parts import ShardPart, Wish
from spark.audit.shards import (
    BOUNDS,
    COLUMNS,
    COMMANDS,
    DAMAGE,
    KEPT,
    LIVES_ROWS,
    PLANS,
    REFUSALS,
    STALE,
    UNREADABLE,
    Line,
    audited,
)
from spark.executing import records_in, stored

Offsets = Mapping[int, int]


class Kept(NamedTuple):
    """A shard for later audits, in bytes, and where it was."""

    shard: int
    place: Place
    content: bytes


class Gathered(NamedTuple):
    """What one reading brought: facts, what to keep for later ones, and shards whose kept state is of another log.

    Where there are such shards, the facts lack them.
    """

    facts: Facts
    kept: tuple[Kept, ...]
    stale: tuple[int, ...]


# The log has no samples in it: what audits say depends on nothing that is deleted after a week.
_NO_SAMPLES = ""
_DDL = "kind string, rows binary"
_SCHEMA = pa.schema([("kind", pa.string()), ("rows", pa.binary())])


def gather(
    records: DataFrame, wish: Wish, starts: Offsets, ends: Offsets, kept: Mapping[int, KeptShard] = NOTHING_KEPT
) -> Gathered:
    """Read the log up to the end of the part that was asked for.

    `records` has the columns of Spark's Kafka source, holds the log's topic only, and is read once. It begins with the
    first record of each shard, or where it was kept; its partitions are as `spark.executing.contributions` wants them.
    `starts` and `ends` are where each shard of the log begins and ends.
    """
    found = stored(records, _NO_SAMPLES).mapInArrow(functools.partial(_audit, wish, kept), _DDL).collect()
    lines = [Line(kind, msgpack.decode(rows)) for kind, rows in found]
    return Gathered(
        facts(lines, wish, starts, ends),
        tuple(
            Kept(shard, Place(position, latest_ms), content) for shard, position, latest_ms, content in _of(KEPT, lines)
        ),
        tuple(shard for (shard,) in _of(STALE, lines)),
    )


def _of(kind: str, lines: Iterable[Line]) -> Iterator[Any]:
    return (row for line in lines if line.kind == kind for row in line.rows)


def facts(lines: Iterable[Line], wish: Wish, starts: Offsets, ends: Offsets) -> Facts:
    """Bring together what the shards say."""
    found: dict[str, list[Row]] = {kind: [] for kind in COLUMNS}
    for kind, rows in lines:
        found[kind] += (dict(zip(COLUMNS[kind], row, strict=True)) for row in rows)
    bounds = {row["shard"]: (row["first"], row["after"]) for row in found[BOUNDS]}
    parts = wish.resolved(starts, ends, bounds)
    return Facts(
        parts=parts,
        plans={(row["cluster"], row["plan"]): row for row in found[PLANS]},
        lives=tuple(found[LIVES_ROWS]),
        commands=tuple(found[COMMANDS]),
        refusals=tuple(found[REFUSALS]),
        damages=tuple(sorted(ShardDamage(**row) for row in found[DAMAGE])),
        unreadable=sum(_is_in(parts, row["shard"], row["offset"]) for row in found[UNREADABLE]),
    )


def _is_in(parts: tuple[ShardPart, ...], shard: int, offset: int) -> bool:
    return any(part.shard == shard and part.has(offset) for part in parts)


def _audit(wish: Wish, kept: Mapping[int, KeptShard], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for kind, rows in audited(records_in(batches), wish, kept):
        arrays = [pa.array([kind]), pa.array([msgpack.encode(rows)], pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
