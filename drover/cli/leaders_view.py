"""How `drover leaders show` looks."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType

from drover.cli.output import plural, styled, table, timestamp

COLUMNS = ("broker", "leads", "preferred", "should not lead since", "by", "until", "topics", "reason")


def layout(document: Mapping[str, Any]) -> RenderableType:
    """Lay out the document of `drover.client.views.leader_rows`."""
    if not document["brokers"]:
        return styled(f"No broker of {document['cluster']} is on the list, and no leaders were counted yet.")
    parts: list[RenderableType] = [table(COLUMNS, [_row(row) for row in document["brokers"]])]
    counted_ms = document["counted_ms"]
    words = [] if counted_ms is None else [f"Counted {timestamp(counted_ms)}, when they last changed."]
    if document["reordered"]:
        words.append(f"{plural(document['reordered'], 'list')} in another order than the canonical one.")
    if document["electing"]:
        words.append(f"{plural(document['electing'], 'election')} under way.")
    balance = document["balance"]
    if balance is not None:
        words.append(f"Balance asked for by {balance['by']}: {balance['reason']}; elected so far {balance['elected']}.")
    parts.append(styled(" ".join(words)))
    for name, title in (("waiting", "waits for another leader"), ("left_alone", "reordered by somebody else")):
        rows = [_place(row) for row in document[name]]
        if rows:
            parts += [styled(""), table((title, "what", "since"), rows)]
            more = document[f"{name}_count"] - len(rows)
            if more:
                parts.append(styled(f"and {more} more"))
    return Group(*parts)


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    counts = tuple("-" if row[name] is None else str(row[name]) for name in ("leaders", "preferred"))
    if not row["listed"]:
        return (str(row["broker"]), *counts, "", "", "", "", "")
    since = "" if row["since_ms"] is None else timestamp(row["since_ms"])
    topics = "all" if row["topics"] is None else ", ".join(row["topics"])
    return (str(row["broker"]), *counts, since, row["by"] or "", _until(row), topics, row["reason"] or "")


def _until(row: Mapping[str, Any]) -> str:
    until = [] if row["until_ms"] is None else [timestamp(row["until_ms"])]
    if row["until_in_sync"]:
        until.append("it is in sync")
    return " or ".join(until) or "a command ends it"


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    what = row.get("detail") or f"{row['replicas']}, left alone; the canonical order is {row['canonical']}"
    return f"{row['topic']}:{row['partition']}", what, timestamp(row["since_ms"])
