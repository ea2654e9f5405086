"""Read and fold the shards of the event log, and yield their valid batches."""

import dataclasses
import logging
from collections import deque
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from drover.errors import CorruptLogError
from drover.events.records import Batch
from drover.events.topics import shard_of
from drover.fold.log import Folded, RecordVerdict, ShardFold
from drover.journal.connection import LogConnection
from drover.journal.port import Following
from drover.journal.reader import LogReader, LogRecord
from drover.journal.snapshots import load_snapshots
from drover.state.cluster import ClusterState

# The latest takeovers of each shard; enough to see groups of workers take it from each other.
KEPT_TAKEOVERS = 16
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ValidRecord:
    """A valid batch and its place."""

    shard: int
    offset: int
    batch: Batch


@dataclass(frozen=True, slots=True)
class Takeover:
    """A change of a shard's owner: Kafka's time of the record, and the groups of the owners before and after."""

    at_ms: int
    before: str
    after: str


class FoldedLog:
    """Some shards of the event log, folded up to the last record that was read.

    The state of a damaged shard is the one before the damage; `damaged` has the reason. `takeovers` are the latest of
    each shard; takeovers before a snapshot are unknown.
    """

    def __init__(self, folds: dict[int, ShardFold]) -> None:
        self.folds = folds
        self.last_record_ms: dict[int, int] = {}
        self.takeovers: dict[int, deque[Takeover]] = {}

    @property
    def positions(self) -> dict[int, int]:
        """The next offset to fold, per shard."""
        return {shard: fold.position for shard, fold in self.folds.items()}

    @property
    def damaged(self) -> dict[int, str]:
        """Return the damage of each damaged shard: its place and its kind."""
        return {shard: fold.damage.detail for shard, fold in self.folds.items() if fold.damage is not None}

    def cluster(self, name: str) -> ClusterState:
        """Return a cluster's state; empty if the log has no entry for it."""
        states = (fold.state.clusters.get(name) for fold in self.folds.values())
        return next((state for state in states if state is not None), ClusterState(name))

    def time_of(self, name: str) -> int:
        """Return the log's time in a cluster's shard; 0 if the log has no entry for the cluster."""
        return next((fold.at_ms for fold in self.folds.values() if name in fold.state.clusters), 0)

    def take(self, records: Collection[LogRecord]) -> list[ValidRecord]:
        """Fold records and return the valid batches among them; a damaged record stops its shard."""
        batches = []
        for record in records:
            fold = self.folds[record.shard]
            group = fold.group
            try:
                folded = fold.fold(record.offset, record.payload)
            except CorruptLogError as error:
                _log.warning("shard %d is shown up to the damage, see docs/recovery.md: %s", record.shard, error)
                continue
            self.last_record_ms[record.shard] = record.timestamp_ms
            if folded is not None and folded.verdict is RecordVerdict.ACQUIRED:
                takeovers = self.takeovers.setdefault(record.shard, deque(maxlen=KEPT_TAKEOVERS))
                takeovers.append(Takeover(record.timestamp_ms, group, fold.group))
            if folded is not None and (valid := _valid(record.shard, folded)) is not None:
                batches.append(valid)
        return batches


def _valid(shard: int, folded: Folded) -> ValidRecord | None:
    record = folded.record
    if folded.verdict is not RecordVerdict.VALID or not isinstance(record, Batch):
        return None
    return ValidRecord(shard, folded.offset, record)


def about(cluster: str, records: Iterable[ValidRecord]) -> Iterator[ValidRecord]:
    """Yield the records that say anything about a cluster, with its outcomes and events only."""
    for record in records:
        outcomes = tuple(outcome for outcome in record.batch.outcomes if outcome.cluster == cluster)
        events = tuple(event for event in record.batch.events if event.cluster == cluster)
        if outcomes or events:
            yield dataclasses.replace(record, batch=replace(record.batch, outcomes=outcomes, events=events))


async def open_log(reader: Following, connection: LogConnection, cluster: str | None = None) -> FoldedLog:
    """Return empty folds of every shard, or of a cluster's shard."""
    shards = await reader.partitions(connection.topics.events)
    wanted = range(shards) if cluster is None else (shard_of(cluster, shards),)
    return FoldedLog({shard: ShardFold(shard, shards) for shard in wanted})


async def read_log(
    reader: Following, connection: LogConnection, log: FoldedLog
) -> AsyncGenerator[list[ValidRecord], None]:
    """Fold the log up to its current end; yield the valid batches, in the order of each shard."""
    async for records in reader.read(connection.topics.events, log.positions):
        yield log.take(records)


async def follow_log(
    reader: Following, connection: LogConnection, log: FoldedLog
) -> AsyncGenerator[list[ValidRecord], None]:
    """Follow the log from the position of `log`, for ever; yield the valid batches."""
    async for records in reader.follow(connection.topics.events, log.positions):
        yield log.take(records)


async def fold_to_end(reader: Following, connection: LogConnection, cluster: str | None = None) -> FoldedLog:
    """Fold every shard, or a cluster's shard, to its current end, from a snapshot if there is a good one."""
    log = await open_log(reader, connection, cluster)
    log.folds.update(await load_snapshots(reader, connection.topics, log.folds.keys(), warn_unused))
    if any(log.positions.values()):
        await read_to_end(reader, connection, log)
        if not log.damaged:
            return log
        # Snapshot and log disagree, or the log is damaged: a fold from the first record shows which.
        _log.warning("snapshots are not used: %s", "; ".join(log.damaged.values()))
        log = await open_log(reader, connection, cluster)
    return await read_to_end(reader, connection, log)


async def read_to_end(reader: Following, connection: LogConnection, log: FoldedLog) -> FoldedLog:
    """Fold the log up to its current end, and return it."""
    async for _ in read_log(reader, connection, log):
        pass
    return log


def warn_unused(shard: int, why: str) -> None:
    """Log why a snapshot is not used; the result is the same, but takes longer."""
    _log.warning("the snapshot of shard %d is not used: %s", shard, why)


async def fold_cluster(connection: LogConnection, cluster: str) -> ClusterState:
    """Return a cluster's state at the current end of the log; empty if the log has no entry for it."""
    return (await fold_shards(connection, cluster)).cluster(cluster)


async def fold_shards(connection: LogConnection, cluster: str | None = None) -> FoldedLog:
    """Fold the log up to its current end: every shard, or a cluster's shard."""
    async with LogReader(connection) as reader:
        return await fold_to_end(reader, connection, cluster)
