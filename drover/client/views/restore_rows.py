"""PURE: the lists at which cancelled partitions end, for `cancel`."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from drover.events.partitions import TopicPartition
from drover.state.cluster import ClusterState
from drover.state.destinations import target_of


@dataclass(frozen=True, slots=True)
class RestoreRow:
    """A cancelled partition: its former target, and the list at which it ends instead."""

    topic: str
    partition: int
    target: tuple[int, ...]
    replicas: tuple[int, ...]

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)


def restore_rows(state: ClusterState, partitions: Iterable[TopicPartition]) -> list[RestoreRow]:
    """Return those of these partitions that are being cancelled, by name.

    A reassignment that had not begun ended at once, so that its partition keeps its current list and has no row.
    """
    rows = []
    for key in sorted(set(partitions)):
        entry = state.reassignments.get(key)
        if entry is not None and entry.is_cancelled:
            rows.append(RestoreRow(key.topic, key.partition, entry.target, target_of(entry)))
    return rows
