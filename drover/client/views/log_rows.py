"""PURE: the shards of the log as rows, for operators of Drover itself: owner, position, lag and fenced batches."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from drover.client.live_view import View
from drover.client.views.shard_rows import ShardRow, shard_rows


@dataclass(frozen=True, slots=True)
class LogRow:
    """One shard: its owner (`owned`) and its log.

    `position` is the next offset to fold, and `unread` the number of records from there on, None if unknown.
    `last_record_ms` is Kafka's time of the last record that was read, if any. `fenced_batches` counts batches without
    effect.
    """

    owned: ShardRow
    position: int
    unread: int | None
    last_record_ms: int | None
    fenced_batches: int
    clusters: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        row = asdict(self)
        return {**row.pop("owned"), **row}


def log_rows(view: View, ends: Mapping[int, int]) -> list[LogRow]:
    """Return the shards that were read; `ends` are the known end offsets of the log by shard."""
    rows = []
    for owned in shard_rows(view):
        fold = view.log.folds[owned.shard]
        rows.append(
            LogRow(
                owned=owned,
                position=fold.position,
                unread=None if owned.shard not in ends else max(0, ends[owned.shard] - fold.position),
                last_record_ms=view.log.last_record_ms.get(owned.shard) or fold.at_ms or None,
                fenced_batches=fold.fenced_batches,
                clusters=tuple(sorted(fold.state.clusters)),
            )
        )
    return rows
