"""A run of records of both topics to contributions: each shard by itself, in the order of its offsets."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from drover.spark.folding.contribution import Contribution
from drover.spark.folding.samples import SamplesPart
from drover.spark.folding.shard import ShardPart
from drover.spark.schema import BOUNDED, TABLES
from drover.spark.tables.schema import Table


class Stored(NamedTuple):
    """One record as Kafka has it: of the samples or the log, its place, and when it was appended (ms since epoch)."""

    is_sample: bool
    partition: int
    offset: int
    appended_ms: int
    value: bytes | None


def folded(
    records: Iterable[Stored], carry: Mapping[str, bytes], *, keeps_history: bool = True
) -> Iterator[Contribution]:
    """Fold records; those of one shard come together. `carry` is the carried state of earlier parts, by name.

    Rows of history tables are made only with `keeps_history`.
    """
    tables = TABLES if keeps_history else BOUNDED
    place, part = None, None
    for is_sample, partition, offset, appended_ms, value in records:
        if part is None or place != (is_sample, partition):
            if part is not None:
                yield from part.finish()
            place, part = (is_sample, partition), _part(is_sample, partition, value, carry, tables)
        part.take(offset, appended_ms, value)
    if part is not None:
        yield from part.finish()


def _part(
    is_sample: bool,  # noqa: FBT001 - a column of the record
    partition: int,
    first: bytes | None,
    carry: Mapping[str, bytes],
    tables: Mapping[str, Table],
) -> ShardPart | SamplesPart:
    if is_sample:
        return SamplesPart(partition, carry.get(f"samples/{partition}"))
    return ShardPart(partition, carry.get(f"shard/{partition}"), first, tables)
