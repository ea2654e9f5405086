"""PURE: the queue of KIP-236 as rows of `status`."""

from dataclasses import asdict, dataclass
from typing import Any

from drover.reconcile.gates import entry_passed_over, queue_closed
from drover.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A partition in the queue: its command, plan and target, since when it waits, and why."""

    cluster: str
    topic: str
    partition: int
    id: str
    plan: str
    target: tuple[int, ...]
    since_ms: int
    waiting: str

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)


def queue_rows(state: ClusterState) -> list[QueueRow]:
    """Return the entries of a cluster's queue, in queue order."""
    closed = queue_closed(state)
    rows: list[QueueRow] = []
    for key, entry in state.queue.items():
        rows.append(
            QueueRow(
                cluster=state.name,
                topic=key.topic,
                partition=key.partition,
                id=entry.id,
                plan=entry.plan,
                target=entry.target,
                since_ms=entry.since_ms,
                waiting=str(closed or entry_passed_over(key, state) or _turn(len(rows))),
            )
        )
    return rows


def _turn(before: int) -> str:
    return f"its turn: {before} ahead of it" if before else "its turn: it is next"
