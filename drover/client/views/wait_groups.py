"""PURE: what reassignments wait for, grouped by cause, the most frequent first."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from drover.client.views.status_rows import StatusRow

WITHHELD = "withheld, "


@dataclass(frozen=True, slots=True)
class WaitGroup:
    """Reassignments of a cluster that wait for the same.

    `waiting` says what ends it, in the words of `partition`, the first of them; `is_alike` whether that holds for all.
    """

    cluster: str
    cause: str
    count: int
    waiting: str
    partition: str
    is_alike: bool = True

    @property
    def sentence(self) -> str:
        """Say how many wait, for what, and what ends it."""
        if self.cause == self.waiting:
            return f"{self.count:,}: {self.cause}"
        verb = "is" if self.count == 1 else "are"
        wait = "waits for" if self.count == 1 else "wait for"
        begins = f"{verb} {self.cause}" if self.cause.startswith(WITHHELD) else f"{wait} {self.cause}"
        remedy = self.waiting.removeprefix(f"{self.cause}: ")
        return f"{self.count:,} {begins}: {'' if self.is_alike else f'for {self.partition}, '}{remedy}"

    def document(self) -> dict[str, Any]:
        """Return the group for programs; fields may be added and never changed."""
        return {**asdict(self), "sentence": self.sentence}


def wait_groups(rows: Iterable[StatusRow]) -> list[WaitGroup]:
    """Group the rows that wait; deferred rollbacks and stops are groups, too."""
    groups: dict[tuple[str, str], WaitGroup] = {}
    for row in rows:
        for cause, waiting in ((row.cause, row.waiting), (row.deferred, row.deferred)):
            if cause is None or waiting is None:
                continue
            group = groups.get((row.cluster, cause))
            groups[row.cluster, cause] = (
                WaitGroup(row.cluster, cause, 1, waiting, f"{row.topic}:{row.partition}")
                if group is None
                else WaitGroup(
                    row.cluster,
                    cause,
                    group.count + 1,
                    group.waiting,
                    group.partition,
                    is_alike=group.is_alike and group.waiting == waiting,
                )
            )
    return sorted(groups.values(), key=lambda group: (group.cluster, -group.count))
