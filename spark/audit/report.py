"""The audit as a whole: the reports of its shards, merged into ordered rows and totals. Pure."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from drover.spark.audit.facts import Row, ShardDamage
from drover.spark.audit.parts import AuditSpan, ShardPart, written
from drover.spark.audit.sections import SECTIONS
from drover.spark.audit.shard_report import COUNTS, REQUESTERS, ShardReport, in_order

Rows = tuple[Row, ...]
Offsets = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Report:
    """An audit: the part of the log it is about, its totals, its sections by name, and where shards are damaged.

    It has the sections that were wanted.
    """

    parts: tuple[ShardPart, ...]
    totals: Mapping[str, int | None]
    sections: Mapping[str, Rows]
    damages: tuple[ShardDamage, ...] = ()

    @property
    def offsets(self) -> str:
        """The part audited, as `--offsets` takes it, so that the same audit can be made again."""
        return written(self.parts)

    def document(self) -> dict[str, Any]:
        """Return the audit for programs; fields may be added and never changed."""
        return {
            "offsets": self.offsets,
            "parts": [part._asdict() for part in self.parts],
            "totals": dict(self.totals),
            "damages": [damage._asdict() for damage in self.damages],
            **{name: list(rows) for name, rows in self.sections.items()},
        }


def report(
    shards: Sequence[ShardReport], span: AuditSpan, starts: Offsets, ends: Offsets, sections: Collection[str] = SECTIONS
) -> Report:
    """Merge the reports of the shards; `starts` and `ends` are the first and the end offset of each shard of the log.

    Each report must have the rows of `sections`.
    """
    parts = span.resolved(starts, ends, {shard.shard: (shard.first, shard.after) for shard in shards})
    return Report(
        parts,
        _totals(shards, parts),
        {name: _section(name, shards) for name in SECTIONS if name in sections},
        tuple(sorted(shard.damage for shard in shards if shard.damage is not None)),
    )


def _section(name: str, shards: Iterable[ShardReport]) -> Rows:
    if name == REQUESTERS:
        return tuple(_requesters(shards))
    names = SECTIONS[name].names
    rows = in_order(name, chain.from_iterable(shard.rows[name] for shard in shards))
    return tuple(dict(zip(names, row, strict=True)) for row in rows)


def _requesters(shards: Iterable[ShardReport]) -> Iterable[Row]:
    _, *counted = SECTIONS[REQUESTERS].names
    requesters: dict[str, Row] = {}
    for shard in shards:
        for requester, counts in shard.requesters.items():
            row = requesters.setdefault(requester, {"requester": requester, **dict.fromkeys(counted, 0)})
            for name, count in counts.items():
                row[name] += count
    return (requesters[name] for name in sorted(requesters))


def _totals(shards: Sequence[ShardReport], parts: Collection[ShardPart]) -> dict[str, int | None]:
    lasted = sorted(chain.from_iterable(shard.completed_ms for shard in shards))
    unreadable = ((shard.shard, offset) for shard in shards for offset in shard.unreadable)
    return {
        **{name: sum(shard.counts.get(name, 0) for shard in shards) for name in COUNTS},
        "completed_p50_ms": _quantile(lasted, 0.5),
        "completed_p95_ms": _quantile(lasted, 0.95),
        "completed_longest_ms": lasted[-1] if lasted else None,
        "unreadable_records": sum(
            any(part.shard == number and part.has(offset) for part in parts) for number, offset in unreadable
        ),
    }


def _quantile(values: list[int], share: float) -> int | None:
    """Return the smallest value that is not below this share of the values; they are sorted."""
    return values[math.ceil(len(values) * share) - 1] if values else None
