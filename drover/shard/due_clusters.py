"""The clusters of a shard to visit: those to which something has happened, and those that are due."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from drover.reconcile.batch import BatchBuilder
from drover.reconcile.messages import Effect, Input, Timestamp
from drover.shard.managed import ManagedClusters


@dataclass(slots=True)
class DueClusters:
    """`touched` are to be visited in the next batch; `acting` may have effects. Times are monotonic."""

    clusters: ManagedClusters
    touched: set[str] = field(default_factory=set)
    acting: set[str] = field(default_factory=set)
    due_ms: dict[str, int | None] = field(default_factory=dict)

    def observe(self, inputs: Iterable[Input], batch: BatchBuilder) -> None:
        """Let the clusters handle their inputs; touch them, and the clusters that are due."""
        for entry in inputs:
            self.touched.add(entry.cluster)
            self.clusters.of(entry.cluster).observe(entry, batch)
        now_ms = batch.now.monotonic_ms
        self.touched.update(name for name, due in self.due_ms.items() if due is not None and due <= now_ms)

    def visit(self, batch: BatchBuilder) -> bool:
        """Reconcile the touched clusters in order; return whether any of them owes calls."""
        visited = sorted(self.touched)
        self.acting.update(visited)
        owes = False
        for name in visited:
            self.clusters.of(name).reconcile(batch)
            asked = self.clusters.of(name).attention(batch.now)
            self.due_ms[name], owes = asked.due_ms, owes or asked.owes
        # Clusters that have changed are visited once more.
        self.touched = {event.cluster for event in batch.events}
        return owes

    def effects(self, now: Timestamp, log_now: Timestamp, start_by_ms: int) -> Iterator[Effect]:
        """Yield the calls of acting clusters, in order; `log_now` is `now` in log time."""
        acting, self.acting = sorted(self.acting), set()
        for name in acting:
            yield from self.clusters.of(name).effects(now, start_by_ms)
            self.due_ms[name] = self.clusters.of(name).attention(log_now).due_ms

    def next_ms(self, now_ms: int) -> int | None:
        """Return when the next cluster is due without new inputs; None if never."""
        if self.touched:
            return now_ms
        return min((due for due in self.due_ms.values() if due is not None), default=None)
