"""Resume a shard with a damaged log by an administrator's acquire that names the damaged record (R9)."""

import secrets

from drover.errors import ConfigurationError
from drover.events.codec import encode_record, record_headers
from drover.events.records import SCHEMA_VERSION, Acquire
from drover.fold.log import ShardFold
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.port import Journal
from drover.journal.reader import LogReader


def resuming_acquire(fold: ShardFold, offset: int, owner: str) -> Acquire:
    """Return the acquire that resumes a shard, given its fold up to the end of the log.

    Raises `ConfigurationError` if the shard is not damaged, or at another offset than the administrator has seen.
    """
    if fold.damage is None:
        raise ConfigurationError(f"shard {fold.shard} is not damaged: there is nothing to resume")
    if fold.damage.offset != offset:
        raise ConfigurationError(f"shard {fold.shard} is damaged at offset {fold.damage.offset}, not at {offset}")
    return Acquire(
        schema=SCHEMA_VERSION,
        epoch=fold.epoch + 1,
        token=secrets.token_bytes(16),
        owner=owner,
        group="",
        generation=0,
        resumes_after=offset,
    )


async def folded_to_end(connection: LogConnection, shard: int) -> ShardFold:
    """Fold a shard from its first record to its current end; the result holds any damage.

    Raises `ConfigurationError` for a shard that the log does not have.
    """
    topic = connection.topics.events
    async with LogReader(connection) as reader:
        shards = await reader.partitions(topic)
        if shard >= shards:
            raise ConfigurationError(f"the log has shards 0 to {shards - 1}, not {shard}")
        fold = ShardFold(shard, shards)
        async for records in reader.read(topic, {shard: 0}):
            for record in records:
                fold.fold_on(record.offset, record.payload)
    return fold


async def resume(journal: Journal, fold: ShardFold, offset: int, owner: str) -> None:
    """Append the acquire that resumes a shard. Raises as `resuming_acquire` and `Journal.append` do."""
    acquire = resuming_acquire(fold, offset, owner)
    payload = encode_record(acquire)
    written = await journal.append(fold.shard, payload, record_headers(acquire))
    fold.fold_on(written, payload)


async def resume_shard(connection: LogConnection, fold: ShardFold, offset: int, owner: str) -> None:
    """Resume a shard of the log on Kafka; `fold` is the result of `folded_to_end`."""
    journal = KafkaJournal(connection, fold.shards, "drover-recover")
    try:
        await journal.start()
        await resume(journal, fold, offset, owner)
    finally:
        await journal.close()
