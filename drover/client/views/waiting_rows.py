"""PURE: what `status` shows of the queue of KIP-236 and of commands that wait for others, as rows."""

from dataclasses import asdict, dataclass
from typing import Any

from drover.decide.queue_entries import why_closed, why_passed_over
from drover.events.codec import decode_deferred
from drover.events.partitions import TopicPartition
from drover.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One partition in the queue: its command, plan and target, since when it waits, and for what."""

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


@dataclass(frozen=True, slots=True)
class HeldRow:
    """One command that waits until those it names in `after` are decided."""

    cluster: str
    id: str
    type: str
    by: str
    reason: str
    after: tuple[str, ...]
    since_ms: int

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        return asdict(self)


def queue_rows(state: ClusterState) -> list[QueueRow]:
    """Return what waits in a cluster's queue, in its order."""
    closed = why_closed(state)
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
                waiting=closed or _why_waiting(key, state, before=len(rows)),
            )
        )
    return rows


def _why_waiting(key: TopicPartition, state: ClusterState, before: int) -> str:
    return why_passed_over(key, state) or ("its turn: it is next" if not before else f"its turn: {before} ahead of it")


def held_rows(state: ClusterState) -> list[HeldRow]:
    """Return the commands of a cluster that wait for others, oldest first."""
    rows: list[HeldRow] = []
    for name, held in state.deferred.items():
        command = decode_deferred(held.payload)
        rows.append(
            HeldRow(
                cluster=state.name,
                id=name,
                type=str(command.__struct_config__.tag),
                by=command.by,
                reason=command.reason,
                after=command.after,
                since_ms=held.since_ms,
            )
        )
    return rows
