"""Shards that audits keep, so that later ones begin there and not with the first record. Pure.

A kept shard is the state of an audit at one position: the fold, the memories of its tables, and the plans so far. It is
useful if the wanted part begins after that position. Like a snapshot it is never the truth: the log must have the
fold's last batch at the same offset.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct, msgpack

from drover.events.undecodable import UNDECODABLE
from drover.spark.audit.parts import AuditSpan
from drover.spark.schema import SCHEMA_VERSION
from drover.spark.tables.row_buffer import Key, Row

# Kept shards of another version are not used; raise it with every change of their content.
KEPT_VERSION = (3, SCHEMA_VERSION)


class KeptShard(Struct, frozen=True, kw_only=True):
    """A shard before the record at `position`.

    `chain_offset` is where its last valid batch is, which was at `latest_ms`. `mentions` holds for each plan the first
    record that names it, `unreadable` the records that could not be read, `plans` the rows of all plans, `carried` the
    fold.
    """

    version: tuple[int, int] = KEPT_VERSION
    shard: int
    position: int
    chain_offset: int
    latest_ms: int
    mentions: dict[str, int]
    unreadable: tuple[int, ...]
    plans: list[tuple[tuple[str, str], dict[str, Any]]]
    carried: bytes

    @property
    def rows(self) -> dict[Key, Row]:
        """The rows of plans, by key."""
        return dict(self.plans)


class Place(NamedTuple):
    """The place where a shard was kept: before the record at `position`, when its last batch was at `latest_ms`."""

    position: int
    latest_ms: int


class Kept(Struct, tag="kept"):
    """A shard for later audits, as bytes, and its place."""

    shard: int
    place: Place
    content: bytes


_decoder = msgpack.Decoder(KeptShard)


def encoded(kept: KeptShard) -> bytes:
    """Turn a kept shard into bytes."""
    return msgpack.encode(kept)


def decoded(value: bytes) -> KeptShard | None:
    """Return a kept shard; None for a damaged one, and for one of another version."""
    try:
        kept = _decoder.decode(value)
    except UNDECODABLE:
        return None
    return kept if kept.version == KEPT_VERSION else None


def places_before(places: Iterable[Place], span: AuditSpan, shard: int) -> list[Place]:
    """Return the places before the wanted part, the nearest first."""
    return [place for place in sorted(places, reverse=True) if _is_before(place, span, shard)]


def _is_before(place: Place, span: AuditSpan, shard: int) -> bool:
    if span.offsets:
        return shard in span.offsets and place.position <= span.offsets[shard][0]
    return span.since_ms is not None and place.latest_ms < span.since_ms


def places_before_plan(places: Iterable[Place], span: AuditSpan, newest: KeptShard, plan: str) -> list[Place]:
    """Return the places before the first record that names a plan, the nearest first.

    `newest` is the last kept shard. Empty unless the part begins with the log, since the offsets of a part that begins
    at a time are known only after reading it.
    """
    if span.since_ms is not None or span.offsets:
        return []
    first = newest.mentions.get(plan, newest.position)
    return [
        place
        for place in sorted(places, reverse=True)
        if place.position <= first and (span.until_ms is None or place.latest_ms <= span.until_ms)
    ]


def thinned(places: Iterable[Place], most: int) -> set[Place]:
    """Return at most `most` places, with the newest; those that lie closest between two others are dropped."""
    left = sorted(places)
    while len(left) > most:
        gaps = [after.position - before.position for before, after in zip([Place(0, 0), *left], left[1:], strict=False)]
        del left[gaps.index(min(gaps))]
    return set(left)


NOTHING_KEPT: Mapping[int, KeptShard] = {}
