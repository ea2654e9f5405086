"""The event log in memory, folded as a reader of the real one does: the state, and the valid records."""

from collections.abc import Iterator

from drover.events.records import AnyEvent, Batch, Outcome
from drover.fold.log import Folded, RecordVerdict, ShardFold
from drover.state.cluster import ClusterState
from drover.testing.memory_journal import MemoryBroker


class MemoryLog:
    """Every shard of a log in memory, folded up to its end by `read`."""

    def __init__(self, broker: MemoryBroker, shards: int) -> None:
        self.folds = tuple(ShardFold(shard, shards) for shard in range(shards))
        self.folded: tuple[list[Folded], ...] = tuple([] for _ in range(shards))
        self._broker = broker

    def read(self) -> None:
        """Fold the new records."""
        for fold, folded in zip(self.folds, self.folded, strict=True):
            records = self._broker.partitions[self._broker.topics.events, fold.shard]
            for offset in range(fold.position, len(records)):
                record = records[offset]
                judged = None if record is None else fold.fold(offset, record.value)
                if judged is not None:
                    folded.append(judged)

    def state(self, cluster: str) -> ClusterState:
        """Return a cluster's state by the log; empty if the log does not name it."""
        states = (fold.state.clusters.get(cluster) for fold in self.folds)
        return next((state for state in states if state is not None), ClusterState(cluster))

    def batches(self, shard: int) -> Iterator[Batch]:
        """Return the valid batches of a shard, in their order."""
        for folded in self.folded[shard]:
            if folded.verdict is RecordVerdict.VALID and isinstance(folded.record, Batch):
                yield folded.record

    def events(self, cluster: str) -> tuple[AnyEvent, ...]:
        """Return the valid events of a cluster, in their order."""
        shards = range(len(self.folds))
        events = (event for shard in shards for batch in self.batches(shard) for event in batch.events)
        return tuple(event for event in events if event.cluster == cluster)

    def outcomes(self, cluster: str) -> tuple[Outcome, ...]:
        """Return the valid outcomes of a cluster's commands, in their order."""
        shards = range(len(self.folds))
        outcomes = (outcome for shard in shards for batch in self.batches(shard) for outcome in batch.outcomes)
        return tuple(outcome for outcome in outcomes if outcome.cluster == cluster)
