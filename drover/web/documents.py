"""PURE: the document of each view: everything that a browser needs to draw it, ready to be shown.

Ages are given as times, so that a document changes only when something has happened.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from drover.client.views.broker_rows import broker_rows
from drover.client.views.history_rows import HistoryRow
from drover.client.views.limit_rows import limit_rows
from drover.client.views.log_rows import log_rows
from drover.client.views.plan_rows import figures, plan_row, plan_rows
from drover.client.views.shard_rows import ownership_conflicts, shard_rows
from drover.client.views.status_rows import graded_notices, unmanaged_rows
from drover.client.views.throttle_rows import broker_throttle_rows, topic_throttle_rows
from drover.reconcile.gates import Severity
from drover.state.cluster import ClusterState
from drover.web.changes import Document
from drover.web.move_parts import keyed, move_part, moves_page, queue_part
from drover.web.present import Present
from drover.web.query import PAGE_ROWS, Query, ViewName, pages

SHOWN_PER_PLAN = 8
MOST_PLANS = 30
MOST_UNMANAGED = 50
MOST_QUEUED = 50
MOST_DEAD_LETTERS = 50
SHOWN_PARTITIONS = 3
_WORST_FIRST = (Severity.BAD, Severity.WARN, Severity.NOTE)


def document(present: Present, query: Query) -> Document:
    """Return the document of a query; if the log has no entry for the cluster, the document says so."""
    if query.view is ViewName.HEALTH:
        return {**_head(present, None, 0), **_health(present)}
    located = present.cluster(query.cluster)
    if located is None:
        return {**_head(present, None, 0), "missing": query.cluster or ""}
    state, shard = located
    parts = _PARTS[query.view](present, state, query) if query.view in _PARTS else {}
    head = _head(present, state, shard)
    stalled = parts.get("figures", {}).get("stalled", 0)
    if stalled:
        line = f"Copies have stalled: {stalled:,} copied no byte for a minute, for no known reason"
        head["notices"] = [{"key": line, "level": Severity.WARN}, *head["notices"]]
    return {**head, **parts}


def _head(present: Present, state: ClusterState | None, shard: int) -> dict[str, Any]:
    head: dict[str, Any] = {"clusters": list(present.clusters()), "cluster": None, "at_ms": present.at_ms}
    if state is None:
        return {"head": head, "notices": list(_ownership_conflicts(present))}
    fold = present.view.log.folds[shard]
    head |= {
        "cluster": state.name,
        "owner": fold.owner,
        "epoch": fold.epoch,
        "shard": shard,
        "offset": fold.position - 1,
        "decided_ms": fold.at_ms or None,
        "frozen": [{"by": freeze.by, "reason": freeze.reason} for freeze in state.freezes],
        "moves": len(state.reassignments),
        "throttles": len(state.broker_throttles) + len(state.topic_throttles),
    }
    return {"head": head, "notices": _notices(present, state, shard)}


def _notices(present: Present, state: ClusterState, shard: int) -> list[dict[str, Any]]:
    graded = list(_ownership(present, shard))
    for severity, notice in graded_notices(state, present.view.projections.get(state.name)):
        line = notice
        for beginning in (f"{state.name} is ", f"{state.name}: ", f"{state.name} "):
            line = line.removeprefix(beginning)
        graded.append((severity, line))
    rows = [*_ownership_conflicts(present), *({"key": line, "level": severity} for severity, line in graded)]
    return sorted(rows, key=lambda notice: _WORST_FIRST.index(notice["level"]))


def _ownership_conflicts(present: Present) -> Iterator[dict[str, Any]]:
    """Yield a notice for each set of groups of workers that compete for shards, of any cluster.

    Views of the past have none, because a conflict that is over needs no remedy.
    """
    if present.at_ms is None:
        yield from ({"key": line, "level": Severity.BAD} for line in ownership_conflicts(shard_rows(present.view)))


def _ownership(present: Present, shard: int) -> Iterator[tuple[Severity, str]]:
    (row,) = (row for row in shard_rows(present.view) if row.shard == shard)
    # There are no signs of life of the past, only the log.
    if not row.owner or (present.at_ms is None and not row.is_owned):
        last = f" (the last was {row.owner})" if row.owner else ""
        waits = f", {row.undecided:,} commands wait" if row.undecided else ""
        line = f"No worker owns this cluster's shard{last}: nothing is decided until a worker starts{waits}"
        yield Severity.BAD, line
    elif present.at_ms is None and (silent_ms := row.silent_ms(present.view.now_ms)) is not None:
        silent = f"{row.owner}, which owns this cluster's shard, has been silent for {silent_ms // 1000} s"
        yield Severity.WARN, f"{silent}: another worker takes over after its session timeout"


def _now(present: Present, state: ClusterState, query: Query) -> dict[str, Any]:
    view = present.view
    counted = figures(state, view.transfers, view.now_ms, SHOWN_PER_PLAN)
    rows = plan_rows(state, counted)
    shown = rows[:MOST_PLANS]
    queue, queued = queue_part(state, None, MOST_QUEUED)
    total = asdict(counted.total)
    total.pop("shown")
    return {
        "figures": {
            **total,
            "in_flight": len(state.moves.in_flight),
            "slots": state.limits.max_partitions_in_flight,
            "plans": len(rows),
            "queued": queued,
        },
        "plans": keyed([row.document() for row in shown], "plan"),
        "plan_moves": [move_part(state, view, key) for row in shown for key in row.tally.shown],
        "queue": queue,
        "unmanaged": keyed([row.document() for row in unmanaged_rows(state)[:MOST_UNMANAGED]], "topic", "partition"),
        "unmanaged_total": len(state.unmanaged),
        **_brokers(present, state, query),
    }


def _plan(present: Present, state: ClusterState, query: Query) -> dict[str, Any]:
    counted = figures(state, present.view.transfers, present.view.now_ms)
    queue, queued = queue_part(state, query.plan, MOST_QUEUED)
    row = None if query.plan is None else plan_row(state, query.plan, counted)
    return {
        "plan": [] if row is None else keyed([row.document()], "plan"),
        "plan_name": query.plan,
        "plan_names": [other.plan for other in plan_rows(state, counted)],
        "queue": queue,
        "queued": queued,
        **moves_page(state, present.view, query),
    }


def _brokers(present: Present, state: ClusterState, query: Query) -> dict[str, Any]:  # noqa: ARG001 - one signature
    rows = broker_rows(state, present.view.transfers, present.view.now_ms)
    return {"brokers": keyed([row.document() for row in rows], "broker")}


def _throttles(present: Present, state: ClusterState, query: Query) -> dict[str, Any]:  # noqa: ARG001 - one signature
    since_ms = present.archive.throttled_ms.get(state.name, {})
    topics = keyed([row.document() for row in topic_throttle_rows(state)], "topic")
    return {
        "broker_throttles": keyed([row.document() for row in broker_throttle_rows(state, since_ms)], "broker"),
        "topic_throttles": topics[:PAGE_ROWS],
        "topic_throttles_total": len(topics),
        "limits": keyed([row.document() for row in limit_rows(state)], "name"),
    }


def _story(present: Present, state: ClusterState, query: Query) -> dict[str, Any]:
    archive = present.archive
    rows, total = archive.story(state.name, query.rows, partition=query.partition, plan=query.plan, id_=query.id)
    return {
        "about": {"partition": query.partition, "plan": query.plan, "id": query.id},
        "events": _story_rows(rows),
        "matching": total,
        "page": query.page,
        "pages": pages(total),
        "is_complete": archive.is_complete,
        "dropped_until_ms": archive.dropped_until_ms,
    }


def _story_rows(rows: Sequence[HistoryRow]) -> list[dict[str, Any]]:
    """Return documents of rows, each with a key made of its place in the log, and with a few of its partitions."""
    documents = []
    place, number = (-1, -1), 0
    for row in rows:
        number = number + 1 if place == (row.shard, row.offset) else 0
        place = (row.shard, row.offset)
        named = row.partitions[:SHOWN_PARTITIONS]
        documents.append(
            {
                "key": f"{row.shard}@{row.offset}.{number}",
                **replace(row, partitions=named).document(),
                "partitions": [str(key) for key in named],
                "more_partitions": len(row.partitions) - len(named),
            }
        )
    return documents


def _health(present: Present) -> dict[str, Any]:
    rows = log_rows(present.view, present.ends.events)
    return {
        "shards": keyed([row.document() for row in rows], "shard"),
        "projections": [
            {"key": name, **{field: getattr(sample, field) for field in sample.__struct_fields__}}
            for name, sample in sorted(present.view.projections.items())
        ],
        "dead_letters": keyed(
            [asdict(letter) for letter in present.dead_letters[:MOST_DEAD_LETTERS]],
            *("offset", "at_ms", "topic", "partition", "source_offset"),
        ),
        "dead_letters_total": present.dead_letters_total,
    }


_PARTS: dict[ViewName, Callable[[Present, ClusterState, Query], dict[str, Any]]] = {
    ViewName.NOW: _now,
    ViewName.PLAN: _plan,
    ViewName.BROKERS: _brokers,
    ViewName.THROTTLES: _throttles,
    ViewName.STORY: _story,
}
