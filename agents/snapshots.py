"""Start from snapshots, and write them when they are due; a fault here is never fatal."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog

from drover.agents.clock import monotonic
from drover.errors import CorruptLogError, DroverError, LogUnavailableError
from drover.events.topics import TopicNames
from drover.fold.log import ShardFold
from drover.journal.folded_log import FoldedLog
from drover.journal.port import Journal
from drover.journal.snapshots import load_snapshots, write_snapshot
from drover.service.metrics import Metrics

# About a second of folding, for records of any size.
EVERY_BYTES = 16 * 1024 * 1024
SHORTEST_PAUSE_S = 30.0
# At a clean stop a tenth of the usual amount is enough for a snapshot.
AT_STOP = 10
STOP_TIMEOUT_S = 5.0
# A producer that is closed sends its remaining records for up to ten seconds if brokers hang, too long for a stop.
LET_GO_S = 0.5
AnchorSnapshot = Callable[[bytes], None]
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Shard:
    position: int = 0
    bytes_since: int = 0
    tried_s: float = -SHORTEST_PAUSE_S
    writing: asyncio.Task[None] | None = field(default=None, repr=False)


class SnapshotKeeper:
    """Snapshots of every shard this worker owns: one is due every `every_records` records; 0 turns them off."""

    def __init__(self, journal: Journal, topics: TopicNames, every_records: int, metrics: Metrics) -> None:
        self._journal = journal
        self._topics = topics
        self._every_records = every_records
        self._metrics = metrics
        self._shards = {shard: _Shard() for shard in range(journal.shards)}
        # One at a time, because encoding takes processor time from decisions.
        self._one_at_a_time = asyncio.Semaphore(1)
        self._at_stop: set[asyncio.Task[None]] = set()

    async def replay(self, log: FoldedLog) -> int:
        """Fold the log to its end, from snapshots where there are any; see `FoldedLog.replay`."""
        folds = await self._found() if self._every_records else {}
        if not folds:
            return await log.replay()
        log.restore(folds)
        positions = {shard: fold.position for shard, fold in folds.items()}
        try:
            replayed = await log.replay()
        except CorruptLogError as error:
            # Snapshot and log disagree, or the log is damaged: a fold from the first record shows which.
            return await self._replay_without(log, positions, str(error))
        damaged = {fold.shard: str(fold.damage) for fold in log.folds if fold.damage is not None}
        if damaged.keys() & folds.keys():
            return await self._replay_without(log, positions, damaged)
        _log.info("snapshots are used", positions=positions)
        for shard, position in positions.items():
            self._shards[shard].position = position
        return replayed

    async def _found(self) -> dict[int, ShardFold]:
        """Return the folds of the usable snapshots; none if they cannot be read."""
        try:
            async with self._journal.reader() as reader:
                return await load_snapshots(reader, self._topics, range(self._journal.shards), self._doubt)
        except LogUnavailableError as error:
            _log.warning("snapshots are not used", why=str(error))
            return {}

    async def _replay_without(self, log: FoldedLog, positions: Mapping[int, int], why: object) -> int:
        _log.warning("snapshots are not used", snapshots=positions, why=why)
        log.restore({})
        return await log.replay()

    def batch_appended(self, fold: ShardFold, payload_bytes: int, anchor: AnchorSnapshot) -> None:
        """Count a valid batch, and start to write a snapshot if one is due, without waiting.

        `anchor` is called with the digest of a written snapshot, which readers use only once the log has the digest.
        """
        shard = self._shards[fold.shard]
        shard.bytes_since += payload_bytes
        if not self._is_due(fold, shard, 1) or shard.writing is not None:
            return
        if monotonic() - shard.tried_s < SHORTEST_PAUSE_S:
            return
        shard.writing = asyncio.create_task(self._write(fold.copy(), shard, anchor))
        shard.writing.add_done_callback(lambda _: setattr(shard, "writing", None))

    async def shard_closing(self, fold: ShardFold, anchor: AnchorSnapshot) -> None:
        """Write a snapshot before the last record of a clean stop, if enough was appended since the last one."""
        shard = self._shards[fold.shard]
        if not self._is_due(fold, shard, AT_STOP):
            return
        writing = asyncio.create_task(self._write(fold.copy(), shard, anchor))
        self._at_stop.add(writing)
        writing.add_done_callback(self._at_stop.discard)
        # In a task of its own: when cancelled it still waits for its producer, and the stop must not.
        await asyncio.wait((writing,), timeout=STOP_TIMEOUT_S)
        if not writing.done():
            writing.cancel()
            _log.warning("no snapshot was written: stopping does not wait for it", shard=fold.shard)

    async def close(self) -> None:
        """Stop writing; wait briefly for a snapshot under way. Idempotent."""
        tasks = {shard.writing for shard in self._shards.values() if shard.writing is not None} | self._at_stop
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LET_GO_S)

    def _is_due(self, fold: ShardFold, shard: _Shard, part: int) -> bool:
        """Whether this part of the amount that makes a snapshot due has been appended."""
        if not self._every_records:
            return False
        grown = fold.position - shard.position
        return part * grown >= self._every_records or part * shard.bytes_since >= EVERY_BYTES

    async def _write(self, fold: ShardFold, shard: _Shard, anchor: AnchorSnapshot) -> None:
        shard.tried_s = monotonic()
        async with self._one_at_a_time:
            began, since = monotonic(), shard.bytes_since
            try:
                written = await write_snapshot(self._journal, self._topics, fold)
            except DroverError as error:
                self._metrics.snapshot_ended(fold.shard, "failed")
                _log.warning("no snapshot was written", shard=fold.shard, position=fold.position, why=str(error))
                return
            except Exception as error:  # noqa: BLE001 - the supervisor of an optimisation: the shard goes on without it
                self._metrics.snapshot_ended(fold.shard, "failed")
                _log.error("no snapshot was written", shard=fold.shard, position=fold.position, exc_info=error)
                return
        anchor(written.digest)
        shard.position = fold.position
        shard.bytes_since -= since
        self._metrics.snapshot_ended(fold.shard, "written")
        seconds = round(monotonic() - began, 2)
        _log.info(
            "a snapshot was written", shard=fold.shard, position=fold.position, bytes=written.size, seconds=seconds
        )

    def _doubt(self, shard: int, why: str) -> None:
        _log.warning("a snapshot is not used", shard=shard, why=why)
