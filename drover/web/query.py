"""PURE: a viewer's query as a value: the view and the filters in the address of the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

PAGE_ROWS = 100
MAX_PAGES = 100_000
MAX_TEXT = 300

Name = TypeVar("Name", bound=StrEnum)


class ViewName(StrEnum):
    """The views that are kept up to date; `frame` surrounds every view, and is all that some views need."""

    FRAME = "frame"
    NOW = "now"
    PLAN = "plan"
    BROKERS = "brokers"
    THROTTLES = "throttles"
    STORY = "story"
    HEALTH = "health"


def pages(rows: int) -> int:
    """Return the number of pages for this many rows, at least one."""
    return max(1, -(-rows // PAGE_ROWS))


class MoveFilter(StrEnum):
    """The filter of moves in the Plan view."""

    ALL = "all"
    MOVING = "moving"
    BLOCKED = "blocked"
    RETURNING = "returning"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Query:
    """One view of one cluster, the first one by default; viewers with equal queries share all work.

    `page` counts from 1. `text` filters moves by a part of `topic:partition`, or by `broker:4`. `partition`, as
    `topic:partition`, and `id`, of a command, select a history.
    """

    view: ViewName
    cluster: str | None = None
    plan: str | None = None
    show: MoveFilter = MoveFilter.ALL
    text: str = ""
    page: int = 1
    partition: str | None = None
    id: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is a whole view of a cluster, as it is shown first."""
        return self == Query(self.view, self.cluster)

    @property
    def rows(self) -> slice:
        """The rows on the page."""
        return slice((self.page - 1) * PAGE_ROWS, self.page * PAGE_ROWS)


def parse_query(parameters: Mapping[str, str]) -> Query:
    """Parse the parameters of a request, ignoring unknown ones. Raises `ValueError` for an invalid value."""
    for name, value in parameters.items():
        if len(value) > MAX_TEXT:
            raise ValueError(f"{name} is longer than {MAX_TEXT} characters")
    page = parameters.get("page", "1")
    if not (page.isascii() and page.isdecimal() and 1 <= int(page) <= MAX_PAGES):
        raise ValueError(f"page must be a number from 1 to {MAX_PAGES}")
    return Query(
        view=_member(ViewName, parameters.get("view", ViewName.NOW), "view"),
        cluster=parameters.get("cluster") or None,
        plan=parameters.get("plan") or None,
        show=_member(MoveFilter, parameters.get("show") or MoveFilter.ALL, "show"),
        text=parameters.get("q", "").strip(),
        page=int(page),
        partition=parameters.get("partition") or None,
        id=parameters.get("id") or None,
    )


def _member(kind: type[Name], value: str, parameter: str) -> Name:
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"{parameter} must be one of {', '.join(kind)}") from None
