"""Snapshots in the topic that `topics init` makes: found by their last record, written in two slots by turns.

Every record says where the last complete snapshot before it begins, so a reader needs the last record and what lies
between that place and the end, however much else compaction has left in the topic. A writer that dies half way leaves
chunks without a manifest, in the slot that does not hold the last complete snapshot.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass

import msgspec

from drover.errors import LogUnavailableError, UnusableSnapshotError
from drover.events.codec import chain_hash
from drover.events.topics import TopicNames
from drover.events.undecodable import UNDECODABLE
from drover.fold.log import ShardFold
from drover.fold.snapshot import (
    Chunk,
    Manifest,
    chunk_key,
    decode_record,
    encode_fold,
    manifest_digest,
    manifest_key,
    restore,
)
from drover.journal.port import Journal, Reading
from drover.time_limits import time_limit

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


@dataclass(frozen=True, slots=True)
class Written:
    """A snapshot that was written: how many bytes, and the digest by which the log vouches for it."""

    size: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A complete snapshot in the topic."""

    manifest: Manifest
    digest: bytes
    chunks: tuple[bytes, ...]


class _Glance(msgspec.Struct, frozen=True):
    """The fields of a log record that show whether it vouches for a snapshot."""

    previous_hash: bytes = b""
    snapshot_digest: bytes | None = None


_glance = msgspec.msgpack.Decoder(_Glance)


async def write_snapshot(journal: Journal, topics: TopicNames, fold: ShardFold) -> Written:
    """Write what a fold is, chunks first and its manifest last; nobody uses it before the log vouches for it.

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
    return Written(written + len(manifest), manifest_digest(manifest))


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
        async with time_limit(LOOKING_TIMEOUT_S):
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
    folds: dict[int, ShardFold] = {}
    reported: set[tuple[int, str]] = set()
    while begin:
        candidates = await _candidates(reader, topics.snapshots, begin)
        while waiting := {shard: left for shard, left in candidates.items() if left and shard not in folds}:
            tried = {shard: left.pop(0) for shard, left in waiting.items()}
            whys = {
                shard: _fault(attempt.manifest, shard, counts[topics.events], ends[shard])
                for shard, attempt in tried.items()
            }
            whys |= await _unproven(reader, topics.events, {shard: tried[shard] for shard in tried if not whys[shard]})
            for shard, candidate in tried.items():
                folded = await _restored(candidate, whys[shard])
                if isinstance(folded, ShardFold):
                    folds[shard] = folded
                elif (shard, folded) not in reported:
                    reported.add((shard, folded))
                    report(shard, folded)
        # The last one may be one that its writer did not live to vouch for: the one before it is further ahead.
        begin = {shard: 0 for shard, since in begin.items() if since and shard not in folds}
    return folds


async def _restored(candidate: _Candidate, why: str | None) -> ShardFold | str:
    """Return the fold of a snapshot, or why it is not used."""
    if why is not None:
        return why
    try:
        return await asyncio.to_thread(restore, candidate.manifest, candidate.chunks)
    except UnusableSnapshotError as error:
        return str(error)


async def stored_snapshots(
    reader: Reading, topics: TopicNames, shards: Collection[int]
) -> list[tuple[Manifest, tuple[bytes, ...]]]:
    """Return every complete snapshot of these shards that the topic still has: one per slot, used or not."""
    counts = await reader.partition_counts((topics.snapshots,))
    there = [shard for shard in shards if shard < counts[topics.snapshots]]
    by_shard = await _candidates(reader, topics.snapshots, dict.fromkeys(there, 0))
    return [(candidate.manifest, candidate.chunks) for shard in there for candidate in by_shard[shard]]


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


async def _candidates(reader: Reading, topic: str, begin: Mapping[int, int]) -> dict[int, list[_Candidate]]:
    """Read from these offsets on: each shard's complete snapshots, the newest first."""
    newest: dict[int, dict[bytes, bytes]] = {shard: {} for shard in begin}
    async for records in reader.read(topic, begin):
        for record in records:
            newest[record.shard][record.key] = record.payload
    return {shard: _complete(shard, by_key) for shard, by_key in newest.items()}


def _complete(shard: int, by_key: Mapping[bytes, bytes]) -> list[_Candidate]:
    candidates: list[_Candidate] = []
    for slot in range(SLOTS):
        value = by_key.get(manifest_key(shard, slot))
        manifest = None if value is None else decode_record(value)
        if value is not None and isinstance(manifest, Manifest):
            # Anybody who may write there can name any number of them.
            count = min(manifest.chunks, len(by_key))
            chunks = (by_key.get(chunk_key(shard, slot, number)) for number in range(count))
            read = (decode_record(chunk) for chunk in chunks if chunk is not None)
            data = tuple(chunk.data for chunk in read if isinstance(chunk, Chunk))
            candidates.append(_Candidate(manifest, manifest_digest(value), data))
    return sorted(candidates, key=lambda candidate: candidate.manifest.position, reverse=True)


def _fault(manifest: Manifest, shard: int, shards: int, end: int) -> str | None:
    if (manifest.shard, manifest.shards) != (shard, shards):
        return f"it is of shard {manifest.shard} of {manifest.shards}"
    if manifest.position > end:
        return f"it is of offset {manifest.position}, but the log ends at {end}"
    if not 0 <= manifest.chain_offset < manifest.position:
        return f"its last batch cannot be at offset {manifest.chain_offset}"
    return None


async def _unproven(reader: Reading, topic: str, candidates: Mapping[int, _Candidate]) -> dict[int, str]:
    """Say which shards' logs do not prove a snapshot, and why: who may write snapshots has no power over the state.

    The log must have the snapshot's last batch where it says: every batch is chained to its predecessors,
    so that this one record proves the whole past. And a later batch in that chain must carry the snapshot's digest.
    """
    proofs = {shard: _Proof(candidate) for shard, candidate in candidates.items()}
    begin = {shard: candidate.manifest.chain_offset for shard, candidate in candidates.items()}
    async with aclosing(reader.read(topic, begin)) as reading:
        async for records in reading:
            for record in records:
                proofs[record.shard].take(record.offset, record.payload)
            if all(proof.is_over for proof in proofs.values()):
                break
    return {shard: proof.why for shard, proof in proofs.items() if not proof.is_proven}


class _Proof:
    """Whether the log has a snapshot's past, and vouches for it; fed with the log from its last batch on."""

    def __init__(self, candidate: _Candidate) -> None:
        self._manifest, self._digest = candidate.manifest, candidate.digest
        # Batches that are chained to the snapshot's last one. A fenced owner may have added some of its own.
        self._chained: set[bytes] = set()
        self._is_stranger = self.is_proven = False

    @property
    def is_over(self) -> bool:
        """Whether nothing that follows in the log matters any more."""
        return self.is_proven or self._is_stranger

    @property
    def why(self) -> str:
        """What is missing."""
        if self._is_stranger or not self._chained:
            return f"the log does not have its last batch at offset {self._manifest.chain_offset}"
        return f"no record of the log vouches for the snapshot of offset {self._manifest.position}"

    def take(self, offset: int, payload: bytes) -> None:
        """Look at the next record of the log."""
        if self.is_over:
            return
        if not self._chained:
            is_there = (offset, chain_hash(payload)) == (self._manifest.chain_offset, self._manifest.chain)
            self._is_stranger = not is_there
            self._chained.add(self._manifest.chain)
            return
        try:
            seen = _glance.decode(payload)
        except UNDECODABLE:
            return
        if seen.previous_hash in self._chained:
            self._chained.add(chain_hash(payload))
            self.is_proven = seen.snapshot_digest == self._digest
