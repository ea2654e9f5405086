"""A tiny owner of every shard on a real log: it freezes and unfreezes, and refuses everything else."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager

from drover.events.clusters import ClusterFrozen, ClusterUnfrozen
from drover.events.codec import command_digest, decode_command, encode_record, record_headers
from drover.events.commands import AnyCommand, Freeze, Unfreeze
from drover.events.records import SCHEMA_VERSION, Acquire, AnyEvent, Batch, Cursor, Outcome, Record
from drover.events.refusals import Refusal, RefusalCode
from drover.fold.log import ShardFold
from drover.journal import topics
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.reader import LogReader, LogRecord

SHARDS = 3


class TinyOwner:
    """Owns every shard; `freeze` and `unfreeze` have their events, everything else is refused as unsupported."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection = connection
        self._journal = KafkaJournal(connection, SHARDS, "tiny-owner")
        self._folds = {shard: ShardFold(shard, SHARDS) for shard in range(SHARDS)}
        self.last_payload = b""
        self._next_offsets = {shard: [0] * len(connection.topics.commands) for shard in self._folds}

    @property
    def folds(self) -> Mapping[int, ShardFold]:
        """What the log makes of each shard."""
        return self._folds

    async def start(self) -> None:
        """Fold what is there and take every shard."""
        await self._journal.start()
        async with LogReader(self._connection) as reader:
            start = dict.fromkeys(self._folds, 0)
            async for records in reader.read(self._connection.topics.events, start):
                for record in records:
                    self._folds[record.shard].fold(record.offset, record.payload)
        for shard, fold in self._folds.items():
            acquire = Acquire(
                schema=SCHEMA_VERSION, epoch=fold.epoch + 1, token=b"tiny", owner="tiny", group="g", generation=1
            )
            await self.append(shard, acquire)

    async def append(self, shard: int, record: Record) -> None:
        """Append a record and fold it."""
        payload = encode_record(record)
        offset = await self._journal.append(shard, payload, record_headers(record))
        self._folds[shard].fold(offset, payload)
        self.last_payload = payload

    async def work(self, topic: str) -> None:
        """Decide every command of one topic, from its first one on."""
        async with (
            LogReader(self._connection) as reader,
            aclosing(reader.follow(topic, dict.fromkeys(range(SHARDS), 0))) as reading,
        ):
            async for records in reading:
                for record in records:
                    await self._decide(topic, record)

    async def close(self) -> None:
        """Disconnect."""
        await self._journal.close()

    async def _decide(self, topic: str, record: LogRecord) -> None:
        command = decode_command(record.payload, record.header("content-type"))
        assert isinstance(command, AnyCommand), "a test sends commands"
        fold = self._folds[record.shard]
        known = fold.decided_commands.get((command.cluster, command.id))
        events = _events(command)
        refusals = () if events else (Refusal(RefusalCode.UNSUPPORTED, "the tiny owner moves nothing"),)
        outcome = Outcome(
            id=command.id, cluster=command.cluster, type=str(command.__struct_config__.tag), by=command.by,
            reason=command.reason, topic=topic, offset=record.offset, digest=command_digest(command),
            verdict="duplicate" if known else "accepted" if events else "refused",
            refusals=() if known else refusals, first_offset=known.offset if known else None,
        )  # fmt: skip
        next_offsets = self._next_offsets[record.shard]
        next_offsets[self._connection.topics.commands.index(topic)] = record.offset + 1
        batch = Batch(
            schema=SCHEMA_VERSION, token=fold.token, epoch=fold.epoch, sequence=fold.sequence + 1,
            at_ms=max(fold.at_ms, record.timestamp_ms), cursors=tuple(Cursor("id", offset) for offset in next_offsets),
            previous_hash=fold.chain, outcomes=(outcome,), events=() if known else events,
            state_hash=fold.state.hash(),
        )  # fmt: skip
        await self.append(record.shard, batch)


def _events(command: AnyCommand) -> tuple[AnyEvent, ...]:
    match command:
        case Freeze():
            return (ClusterFrozen(cluster=command.cluster, by=command.by, reason=command.reason),)
        case Unfreeze():
            return (ClusterUnfrozen(cluster=command.cluster, by=command.by, reason=command.reason),)
        case _:
            return ()


@asynccontextmanager
async def tiny_owner(connection: LogConnection) -> AsyncIterator[TinyOwner]:
    """Run an owner on new topics; what it reads and writes is real."""
    await topics.init(connection, SHARDS)
    owner = TinyOwner(connection)
    await owner.start()
    work = [asyncio.create_task(owner.work(topic)) for topic in connection.topics.commands]
    try:
        yield owner
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        await owner.close()
