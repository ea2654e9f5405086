"""Where snapshots stand: the topic that `topics init` makes, found by its last record, written in two slots by turns.

Every record says where the last complete snapshot before it begins, so a reader needs the last record and what lies
between that place and the end, however much else compaction has left in the topic. A writer that dies half way leaves
chunks without a manifest, in the slot that does not hold the last complete snapshot.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from drover.errors import LogUnavailableError, UnusableSnapshotError
from drover.journal.port import Journal, Reading
from drover.shard.fold import ShardFold
from drover.shard.snapshot import Chunk, Manifest, chunk_key, decode_record, encode_fold, manifest_key, restore
from events.codec import chain_hash
from events.topics import TopicNames

# Replaying is quicker than looking for a snapshot while the log is as short as this.
SHORT_LOG = 100
# Looking may cost little: what takes longer than this is not worth waiting for.
LOOKING_TIMEOUT_S = 10.0
SLOTS = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where the next snapshot of a shard goes, and where the last complete one begins."""

    slot: int
    since: int


async def write_snapshot(journal: Journal, topics: TopicNames, fold: ShardFold) -> int:
    """Write what a fold is, chunks first and its manifest last; returns the bytes written.

    The fold must not change meanwhile (`ShardFold.copy`). Raises `LogUnavailableError` when not all of it is known to
    be written: what is there then does no harm.
    """
    image = await asyncio.to_thread(encode_fold, fold)
    async with journal.reader() as reader:
        place = await _next_place(reader, topics.snapshots, fold.shard)
    first: int | None = None
    written = 0
    async with journal.aside() as sender:
        for number in range(len(image.chunks)):
            value = image.chunk(number, place.slot, place.since)
            key = chunk_key(fold.shard, place.slot, number)
            offset = await sender.send(topics.snapshots, value, partition=fold.shard, key=key)
            first = offset if first is None else first
            written += len(value)
        assert first is not None, "a body is never empty: the compressor writes a header"
        manifest = image.manifest(place.slot, first)
        key = manifest_key(fold.shard, place.slot)
        await sender.send(topics.snapshots, manifest, partition=fold.shard, key=key)
    return written + len(manifest)


async def _next_place(reader: Reading, topic: str, shard: int) -> Place:
    """Choose the slot that does not hold the last complete snapshot."""
    last = (await _last_records(reader, topic, (shard,))).get(shard)
    match last:
        case Manifest():
            return Place((last.slot + 1) % SLOTS, last.since)
        case Chunk():
            # Somebody died, or is still writing, in that slot.
            return Place(last.slot, last.since)
        case None:
            return Place(0, 0)


async def load_snapshots(
    reader: Reading, topics: TopicNames, shards: Collection[int], report: Callable[[int, str], object]
) -> dict[int, ShardFold]:
    """Return the newest fold of each shard that its snapshot and the log agree about.

    A shard without one is left out. `report` is told of a snapshot that is there and is not used, and why. A topic that
    is not there, a log that is short and a Kafka that does not answer in time mean that there is none.
    """
    try:
        async with asyncio.timeout(LOOKING_TIMEOUT_S):
            return await _load(reader, topics, shards, report)
    except (LogUnavailableError, TimeoutError) as error:
        for shard in shards:
            report(shard, f"it could not be read: {error!r}")
        return {}


async def _load(
    reader: Reading, topics: TopicNames, shards: Collection[int], report: Callable[[int, str], object]
) -> dict[int, ShardFold]:
    ends = await reader.end_offsets(topics.events, shards)
    long = [shard for shard, end in ends.items() if end >= SHORT_LOG]
    if not long:
        return {}
    counts = await reader.partition_counts((topics.events, topics.snapshots))
    with_place = [shard for shard in long if shard < counts[topics.snapshots]]
    last = await _last_records(reader, topics.snapshots, with_place)
    begin = {shard: record.since for shard, record in last.items() if record is not None}
    for shard in last.keys() - begin.keys():
        report(shard, "its last record is not understood: it may be of a newer Drover")
    found: dict[int, ShardFold] = {}
    for shard, candidates in (await _candidates(reader, topics.snapshots, begin)).items():
        for manifest, chunks in candidates:
            try:
                _check_log(manifest, shard, counts[topics.events], ends[shard])
                found[shard] = await asyncio.to_thread(restore, manifest, chunks)
                break
            except UnusableSnapshotError as error:
                report(shard, str(error))
    for shard in await _strangers(reader, topics.events, found):
        report(shard, f"the log does not have its last batch at offset {found[shard].chain_offset}")
        del found[shard]
    return found


async def stored_snapshots(
    reader: Reading, topics: TopicNames, shards: Collection[int]
) -> list[tuple[Manifest, tuple[bytes, ...]]]:
    """Return every complete snapshot of these shards that the topic still has: one per slot, used or not."""
    counts = await reader.partition_counts((topics.snapshots,))
    there = [shard for shard in shards if shard < counts[topics.snapshots]]
    by_shard = await _candidates(reader, topics.snapshots, dict.fromkeys(there, 0))
    return [candidate for shard in there for candidate in by_shard[shard]]


async def _last_records(reader: Reading, topic: str, shards: Collection[int]) -> dict[int, Chunk | Manifest | None]:
    """Return the last record of each partition that has one; None for one that is not understood."""
    ends = await reader.end_offsets(topic, shards)
    # Compaction never takes a partition's last record.
    start = {shard: end - 1 for shard, end in ends.items() if end > 0}
    last: dict[int, Chunk | Manifest | None] = {}
    async for records in reader.read(topic, start):
        for record in records:
            last[record.shard] = decode_record(record.payload)
    return last


async def _candidates(
    reader: Reading, topic: str, begin: Mapping[int, int]
) -> dict[int, list[tuple[Manifest, tuple[bytes, ...]]]]:
    """Read what stands from these offsets on: each shard's manifests with their chunks, the newest first."""
    newest: dict[int, dict[bytes, Chunk | Manifest | None]] = {shard: {} for shard in begin}
    async for records in reader.read(topic, begin):
        for record in records:
            newest[record.shard][record.key] = decode_record(record.payload)
    return {shard: _complete(shard, by_key) for shard, by_key in newest.items()}


def _complete(shard: int, by_key: Mapping[bytes, Chunk | Manifest | None]) -> list[tuple[Manifest, tuple[bytes, ...]]]:
    found: list[tuple[Manifest, tuple[bytes, ...]]] = []
    for slot in range(SLOTS):
        manifest = by_key.get(manifest_key(shard, slot))
        if isinstance(manifest, Manifest):
            chunks = (by_key.get(chunk_key(shard, slot, number)) for number in range(manifest.chunks))
            found.append((manifest, tuple(chunk.data for chunk in chunks if isinstance(chunk, Chunk))))
    return sorted(found, key=lambda entry: entry[0].position, reverse=True)


def _check_log(manifest: Manifest, shard: int, shards: int, end: int) -> None:
    if (manifest.shard, manifest.shards) != (shard, shards):
        raise UnusableSnapshotError(f"it is of shard {manifest.shard} of {manifest.shards}")
    if manifest.position > end:
        raise UnusableSnapshotError(f"it stands at offset {manifest.position}, and the log ends at {end}")


async def _strangers(reader: Reading, topic: str, folds: Mapping[int, ShardFold]) -> set[int]:
    """Name the shards whose log has another record where the fold has its last batch: it was made anew.

    Every batch is chained to its predecessors, so that this one record proves the whole past.
    """
    strangers: set[int] = set()
    waiting = set(folds)
    async with aclosing(reader.read(topic, {shard: fold.chain_offset for shard, fold in folds.items()})) as reading:
        async for records in reading:
            for record in records:
                if record.shard in waiting:
                    waiting.discard(record.shard)
                    fold = folds[record.shard]
                    if record.offset != fold.chain_offset or chain_hash(record.payload) != fold.chain:
                        strangers.add(record.shard)
            if not waiting:
                break
    return strangers | waiting
