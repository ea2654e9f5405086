"""The clusters of a shard to visit: those to which something has happened, and those that are due."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Agenda:
    """`touched` are to be visited in the next batch; `acting` may have effects. Times are monotonic."""

    touched: set[str] = field(default_factory=set)
    acting: set[str] = field(default_factory=set)
    visited: tuple[str, ...] = ()
    due_ms: dict[str, int | None] = field(default_factory=dict)

    def touch_due(self, now_ms: int) -> None:
        """Touch those that are due."""
        self.touched.update(name for name, due in self.due_ms.items() if due is not None and due <= now_ms)

    def visit(self) -> tuple[str, ...]:
        """Take those that are touched, in order; they may have effects."""
        self.visited = tuple(sorted(self.touched))
        self.acting.update(self.visited)
        self.touched = set()
        return self.visited

    def act(self) -> Iterable[str]:
        """Take those that may have effects, in order."""
        acting, self.acting = sorted(self.acting), set()
        return acting

    def next_ms(self, now_ms: int) -> int | None:
        """Tell when the next cluster is due although nothing arrives; None if never."""
        if self.touched:
            return now_ms
        return min((due for due in self.due_ms.values() if due is not None), default=None)
