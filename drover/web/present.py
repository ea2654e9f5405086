"""The inputs of the documents: the folded log, the samples, the history, and the end offsets of the topics."""

from dataclasses import dataclass, field

from drover.client.live_view import View
from drover.client.views.dead_letter_rows import DeadLetter
from drover.state.cluster import ClusterState
from drover.web.archive import Archive


@dataclass(slots=True)
class LogEnds:
    """The end offsets of the log by shard, and when they were read; None before the first reading."""

    events: dict[int, int] = field(default_factory=dict)
    seen_ms: int | None = None


@dataclass(slots=True)
class Present:
    """All inputs of the documents; `at_ms` is set for a point of the past, which has no samples."""

    view: View
    archive: Archive = field(default_factory=Archive)
    ends: LogEnds = field(default_factory=LogEnds)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    dead_letters_total: int = 0
    at_ms: int | None = None

    def clusters(self) -> dict[str, int]:
        """Return the shard of every cluster, by name."""
        shards = {name: shard for shard, fold in self.view.log.folds.items() for name in fold.state.clusters}
        return dict(sorted(shards.items()))

    def cluster(self, name: str | None) -> tuple[ClusterState, int] | None:
        """Return the state and shard of a cluster, the first one if no name is given; None if the log has no entry."""
        clusters = self.clusters()
        if name is None and clusters:
            name = next(iter(clusters))
        if name is None or name not in clusters:
            return None
        shard = clusters[name]
        return self.view.log.folds[shard].state.clusters[name], shard
