"""The part of the log that an audit is about: named by times or by offsets, resolved to offsets. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

_OFFSETS = re.compile(r"(\d+):(\d+)-(\d+)")


class ShardPart(NamedTuple):
    """The records of one shard from `first_offset` on and before `next_offset`."""

    shard: int
    first_offset: int
    next_offset: int

    def has(self, offset: int) -> bool:
        """Whether a record is in it."""
        return self.first_offset <= offset < self.next_offset


@dataclass(frozen=True, slots=True)
class AuditSpan:
    """The wanted part: everything decided from `since_ms` up to `until_ms`, by the log's time, or offsets.

    That time never goes back within a shard (R6). `offsets` holds the first and the last offset by shard; shards that
    it does not name are left out.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    offsets: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def has_shard(self, shard: int) -> bool:
        """Whether any record of a shard is wanted."""
        return not self.offsets or shard in self.offsets

    def has_begun(self, shard: int, offset: int, at_ms: int) -> bool:
        """Whether a batch of a shard, decided at `at_ms`, is not before the part."""
        if self.offsets:
            return offset >= self.offsets[shard][0]
        return self.since_ms is None or at_ms >= self.since_ms

    def ends_before(self, shard: int, offset: int, at_ms: int) -> bool:
        """Whether a batch of a shard, decided at `at_ms`, is after the part."""
        if self.offsets:
            return offset > self.offsets[shard][1]
        return self.until_ms is not None and at_ms > self.until_ms

    def resolved(
        self, starts: Mapping[int, int], ends: Mapping[int, int], edges: Mapping[int, tuple[int | None, int | None]]
    ) -> tuple[ShardPart, ...]:
        """Return the part of each shard, given where the log begins and ends.

        `edges` holds by shard the first valid batch of the part, and the first one after it; None where there is none,
        in which case the log's end counts. Offsets must lie before the log's end.
        """
        if self.offsets:
            return tuple(
                ShardPart(shard, max(first, starts[shard]), last + 1)
                for shard, (first, last) in sorted(self.offsets.items())
            )
        parts = []
        for shard, end in sorted(ends.items()):
            first, after = edges.get(shard, (None, None))
            begin = starts[shard] if self.since_ms is None else end if first is None else first
            next_offset = end if self.until_ms is None or after is None else after
            parts.append(ShardPart(shard, min(begin, next_offset), next_offset))
        return tuple(parts)


def parse_offsets(text: str) -> dict[int, tuple[int, int]]:
    """Read `SHARD:FIRST-LAST,...`, as an audit prints the part that it is about. Raises `ValueError`."""
    offsets: dict[int, tuple[int, int]] = {}
    for piece in text.split(","):
        match = _OFFSETS.fullmatch(piece.strip())
        if match is None:
            raise ValueError(f"{piece.strip()!r} is no part of a shard: write SHARD:FIRST-LAST, such as 2:0-499")
        shard, first, last = map(int, match.groups())
        if last < first:
            raise ValueError(f"{piece.strip()!r} ends before it begins")
        if shard in offsets:
            raise ValueError(f"shard {shard} is named twice")
        offsets[shard] = (first, last)
    return offsets


def written(parts: tuple[ShardPart, ...]) -> str:
    """Write parts as `parse_offsets` reads them; empty ones are left out."""
    return ",".join(
        f"{part.shard}:{part.first_offset}-{part.next_offset - 1}"
        for part in parts
        if part.next_offset > part.first_offset
    )
