"""The inputs of the documents: the folded log, the samples, the stories, and the ends of the topics."""

from dataclasses import dataclass, field

from drover.client.views.dead_letter_rows import DeadLetter
from drover.client.watching import View
from drover.state.cluster import ClusterState
from drover.web.archive import Archive


@dataclass(slots=True)
class LogEnds:
    """The next offsets of the log by shard, and when they were looked at; None before the first look."""

    events: dict[int, int] = field(default_factory=dict)
    seen_ms: int | None = None


@dataclass(slots=True)
class Present:
    """All that is known now. `at_ms` is set for a moment of the past, of which there are no samples."""

    view: View
    archive: Archive = field(default_factory=Archive)
    ends: LogEnds = field(default_factory=LogEnds)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    dead_letters_total: int = 0
    at_ms: int | None = None

    def clusters(self) -> dict[str, int]:
        """Return the shard of every cluster, by name."""
        found = {name: shard for shard, fold in self.view.log.folds.items() for name in fold.state.clusters}
        return dict(sorted(found.items()))

    def cluster(self, name: str | None) -> tuple[ClusterState, int] | None:
        """Return a cluster's state and its shard: the first one without a name; None if the log does not know it."""
        clusters = self.clusters()
        if name is None and clusters:
            name = next(iter(clusters))
        if name is None or name not in clusters:
            return None
        shard = clusters[name]
        return self.view.log.folds[shard].state.clusters[name], shard
