"""The folds of all shards, kept up to date with the tail, and appends that return their verdict."""

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

    Call `restore` if there are snapshots, then `replay`, and then run `follow` as a task until it is cancelled. A
    damaged record stops its own shard only (`ShardFold.damage`) and is reported to `on_damaged`. `on_folded` gets every
    record after its effect. `replay` and `follow` raise `CorruptLogError` if the log has lost or replaced records.
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
        # Appends in flight by payload: a payload is unique, because it contains a token and a sequence number.
        self._expected: dict[tuple[int, bytes], asyncio.Future[Folded]] = {}

    def restore(self, folds: Mapping[int, ShardFold]) -> None:
        """Begin at the positions of these folds; other shards begin at their first record."""
        for fold in self.folds:
            fold.take_over(folds.get(fold.shard) or ShardFold(fold.shard, fold.shards))
        self.journal.seek([fold.position for fold in self.folds])

    async def replay(self) -> int:
        """Fold everything up to the current ends; return the sum of these ends."""
        ends = await self._ends()
        while not await self.journal.has_reached(ends):
            await self._fold_next()
        return sum(fold.position for fold in self.folds)

    async def follow(self) -> None:
        """Fold new records, for ever."""
        while True:
            await self._fold_next()

    async def append(self, shard: int, record: Record, payload: bytes) -> Folded:
        """Append a record and return the verdict of this process's own fold.

        Raises the exceptions of `Journal.append`, and `AppendUnknownError` if the tail does not deliver the record.
        """
        expected: asyncio.Future[Folded] = asyncio.get_running_loop().create_future()
        self._expected[shard, payload] = expected
        try:
            offset = await self.journal.append(shard, payload, record_headers(record))
            if offset == self.folds[shard].position:
                # No other record came in between, so the tail need not deliver this one first.
                self._fold(TailRecord(shard, offset, payload))
            async with time_limit(FOLD_TIMEOUT_S):
                folded = await expected
        except TimeoutError as error:
            raise AppendUnknownError(f"shard {shard}: the tail did not deliver an acknowledged record") from error
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
        # A cold replay must let other tasks run between two fetches.
        await asyncio.sleep(0)

    def _fold(self, record: TailRecord) -> None:
        fold = self.folds[record.shard]
        expected = self._expected.get((record.shard, record.payload)) if self._expected else None
        try:
            folded = fold.fold(record.offset, record.payload)
        except CorruptLogError as error:
            assert fold.damage is not None, "a fold that raises is damaged"
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
                # On a cold start while a broker is down, the election of a new leader takes a moment.
                await asyncio.sleep(attempt)
        return await self.journal.ends()
