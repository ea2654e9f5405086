"""The log and what it says: every shard's fold, kept up with the tail, and appends that know what became of them."""

import asyncio
from collections.abc import Callable, Mapping

from drover.errors import AppendUnknownError, CorruptLogError, LogUnavailableError
from drover.events.codec import record_headers
from drover.events.records import Record
from drover.fold.log import Damage, Folded, ShardFold
from drover.journal.port import Journal, TailRecord
from drover.time_limits import time_limit

FOLD_TIMEOUT_S = 60.0
REPLAY_RETRIES = 6


class FoldedLog:
    """Every shard folded in this process.

    `restore`, if there is anything to begin with, then `replay`; then `follow` runs as a task until it is cancelled.
    A record that no reader may pass stops its own shard only (`ShardFold.damage`): `on_damaged` is told. Both raise
    `CorruptLogError` where the log itself is not what it was. `on_folded` is told of every record after its effect.
    """

    def __init__(
        self,
        journal: Journal,
        events_topic: str,
        on_folded: Callable[[int, Folded], None],
        on_damaged: Callable[[int, Damage], None],
    ) -> None:
        self.journal = journal
        self.folds = tuple(ShardFold(shard, journal.shards) for shard in range(journal.shards))
        self._on_folded = on_folded
        self._on_damaged = on_damaged
        self._events_topic = events_topic
        # Appends in flight. A record holds a token and a sequence number, so equal bytes are this very record.
        self._expected: dict[tuple[int, bytes], asyncio.Future[Folded]] = {}

    def restore(self, folds: Mapping[int, ShardFold]) -> None:
        """Begin where these folds stand, each shard that is not among them at its first record."""
        for fold in self.folds:
            fold.take_over(folds.get(fold.shard) or ShardFold(fold.shard, fold.shards))
        self.journal.seek([fold.position for fold in self.folds])

    async def replay(self) -> int:
        """Fold everything up to the present ends and return where that is, in records of all shards."""
        ends = await self._ends()
        while not await self.journal.has_reached(ends):
            await self._fold_next()
        return sum(fold.position for fold in self.folds)

    async def follow(self) -> None:
        """Fold whatever comes, for ever."""
        while True:
            await self._fold_next()

    async def append(self, shard: int, record: Record, payload: bytes) -> Folded:
        """Append one record and return how it was judged, by this process's own fold.

        Raises what `Journal.append` raises, and `AppendUnknownError` when the tail does not bring the record back.
        """
        expected: asyncio.Future[Folded] = asyncio.get_running_loop().create_future()
        self._expected[shard, payload] = expected
        try:
            offset = await self.journal.append(shard, payload, record_headers(record))
            if offset == self.folds[shard].position:
                # Nobody wrote in between: no need to wait until the tail brings it.
                self._fold(TailRecord(shard, offset, payload))
            async with time_limit(FOLD_TIMEOUT_S):
                folded = await expected
        except TimeoutError as error:
            raise AppendUnknownError(f"shard {shard}: an acknowledged record did not come back") from error
        finally:
            del self._expected[shard, payload]
        if folded.offset != offset:
            raise CorruptLogError(f"shard {shard}: the same record is at offset {folded.offset} and at {offset}")
        return folded

    async def _fold_next(self) -> None:
        records = await self.journal.next_records()
        for record in records:
            await self._prove_contiguous(record)
            self._fold(record)
        # A cold replay must leave the loop to others between two fetches.
        await asyncio.sleep(0)

    def _fold(self, record: TailRecord) -> None:
        fold = self.folds[record.shard]
        expected = self._expected.get((record.shard, record.payload)) if self._expected else None
        try:
            folded = fold.fold(record.offset, record.payload)
        except CorruptLogError as error:
            assert fold.damage is not None, "the fold says where it stopped"
            if expected is not None and not expected.done():
                expected.set_exception(error)
            self._on_damaged(record.shard, fold.damage)
            return
        if folded is None:
            return
        if expected is not None and not expected.done():
            expected.set_result(folded)
        self._on_folded(record.shard, folded)

    async def _prove_contiguous(self, record: TailRecord) -> None:
        position = self.folds[record.shard].position
        if record.offset <= position:
            return
        first = await self.journal.first_offset(self._events_topic, record.shard, position)
        if first != record.offset:
            raise CorruptLogError(
                f"event log shard {record.shard}: the tail went from {position} to {record.offset}, "
                f"but a direct read finds a record at {first}"
            )

    async def _ends(self) -> tuple[int, ...]:
        for attempt in range(REPLAY_RETRIES):
            try:
                return await self.journal.ends()
            except LogUnavailableError:
                # A cold start while a broker is down: its successor needs a moment.
                await asyncio.sleep(attempt)
        return await self.journal.ends()
