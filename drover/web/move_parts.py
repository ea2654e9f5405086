"""PURE: moves for the page, filtered and paged; rows are made only for the moves on the page."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import to_builtins

from drover.client.live_view import View
from drover.client.views.broker_marks import broker_marks
from drover.client.views.status_rows import status_row
from drover.client.views.waiting_reason import waiting_reason
from drover.client.views.waiting_rows import queue_rows
from drover.events.partitions import TopicPartition
from drover.state.cluster import ClusterState
from drover.state.reassignment import Reassignment
from drover.web.query import MoveFilter, Query, pages

_BROKER = "broker:"


def move_part(state: ClusterState, view: View, key: TopicPartition) -> dict[str, Any]:
    """Return a move for the page: the row of `status`, its reason in parts, and who leads, joins and leaves."""
    entry = state.reassignments[key]
    row = status_row(state, entry, view.transfers, view.now_ms)
    reason = waiting_reason(state, key)
    why, remedy = (row.waiting, None) if reason is None else (reason.why, reason.remedy)
    document = row.document()
    del document["waiting"], document["cluster"]
    return {
        "key": str(key),
        **document,
        "leader": None if entry.step is None else entry.step.leader,
        "why": why,
        "remedy": remedy,
        "severity": None if reason is None else reason.severity,
        "kind": _kind(entry).value,
        "marks": to_builtins(broker_marks(state, (*entry.original, *entry.target), key.topic)),
    }


def _kind(entry: Reassignment) -> MoveFilter:
    if entry.block is not None:
        return MoveFilter.BLOCKED
    if entry.is_cancelled:
        return MoveFilter.RETURNING
    return MoveFilter.MOVING if entry.in_flight else MoveFilter.WAITING


def moves_page(state: ClusterState, view: View, query: Query) -> dict[str, Any]:
    """Return a page of the moves that match, by topic and partition, and their total number."""
    fits = _matcher(query)
    keys = sorted(entry.key for entry in state.reassignments.values() if fits(entry))
    return {
        "moves": [move_part(state, view, key) for key in keys[query.rows]],
        "matching": len(keys),
        "page": query.page,
        "pages": pages(len(keys)),
    }


def _matcher(query: Query) -> Callable[[Reassignment], bool]:
    text = query.text.lower()
    broker = None
    if text.startswith(_BROKER) and text.removeprefix(_BROKER).isdecimal():
        broker = int(text.removeprefix(_BROKER))

    def fits(entry: Reassignment) -> bool:
        if query.plan is not None and query.plan != entry.plan:
            return False
        if query.show is not MoveFilter.ALL and query.show is not _kind(entry):
            return False
        if broker is not None:
            return broker in entry.original or broker in entry.target
        return not text or text in str(entry.key).lower()

    return fits


def queue_part(state: ClusterState, plan: str | None, most: int) -> tuple[list[dict[str, Any]], int]:
    """Return the first entries of the queue of KIP-236, in queue order, and their total number."""
    if not state.queue:
        return [], 0
    rows = [row for row in queue_rows(state) if plan in {None, row.plan}]
    return keyed([row.document() for row in rows[:most]], "topic", "partition"), len(rows)


def keyed(rows: Sequence[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """Return rows with a key made of these fields."""
    return [{"key": ":".join(str(row[name]) for name in names), **row} for row in rows]
