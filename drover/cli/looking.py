"""Queries of `drover web` against managed clusters: reviews of plans, and throttles that Drover has not set."""

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from drover.cli.reviewing import Reviewer
from drover.cli.throttles import find_throttles
from drover.client.views.found_throttles import FoundEntries, FoundRates, Whose
from drover.settings.settings import Settings
from drover.web.surveys import Looking

SHOWN_ROWS = 200
SHOWN_ENTRIES = 12


def looking_at(settings: Settings) -> Looking:
    """Return what looks at the clusters of these settings."""
    return Looking(Reviewer(settings).review, partial(find_others, settings))


async def find_others(settings: Settings, cluster: str) -> Mapping[str, Any]:
    """Return the throttles in a cluster that Drover has not set, as of `at_ms`, cut to what a page shows."""
    found = await find_throttles(settings, cluster)
    return others_document(found.rates, found.entries, time.time_ns() // 1_000_000)


def others_document(rates: Iterable[FoundRates], entries: Iterable[FoundEntries], at_ms: int) -> dict[str, Any]:
    """Return the rows that are not Drover's, strays first; of many entries the first ones, and how many there are."""
    brokers = sorted((row for row in rates if row.whose is not Whose.OURS), key=_is_stray, reverse=True)
    topics = sorted((row for row in entries if row.whose is not Whose.OURS), key=_is_stray, reverse=True)
    return {
        "at_ms": at_ms,
        "strays": sum(map(_is_stray, brokers)) + sum(map(_is_stray, topics)),
        "brokers": [row.document() for row in brokers[:SHOWN_ROWS]],
        "brokers_total": len(brokers),
        "topics": [
            {
                **row.document(),
                **{side: list(getattr(row, side)[:SHOWN_ENTRIES]) for side in ("leader", "follower")},
                "entries_total": len(row.leader) + len(row.follower),
            }
            for row in topics[:SHOWN_ROWS]
        ],
        "topics_total": len(topics),
    }


def _is_stray(row: FoundRates | FoundEntries) -> bool:
    return row.whose is Whose.STRAY
