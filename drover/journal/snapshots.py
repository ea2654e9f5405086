"""Snapshots in a compacted topic, written alternately to two slots, and found from the topic's last record.

Every record holds the offset at which the last complete snapshot before it begins, so that a reader needs only the last
record and those from that offset on, no matter how much else the topic holds. A writer that dies leaves chunks without
a manifest, but never in the slot of the last complete snapshot.
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

# For a log up to this many records, a replay is faster than looking for a snapshot.
SHORT_LOG = 100
# A snapshot that takes longer to load is not worth waiting for.
LOOKING_TIMEOUT_S = 10.0
SLOTS = 2


@dataclass(frozen=True, slots=True)
class Place:
    """The slot for a shard's next snapshot, and the offset at which the last complete one begins."""

    slot: int
    since: int


@dataclass(frozen=True, slots=True)
class Written:
    """A written snapshot: its size, and the digest by which the log anchors it."""

    size: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A complete snapshot in the topic."""

    manifest: Manifest
    digest: bytes
    chunks: tuple[bytes, ...]


class _Glance(msgspec.Struct, frozen=True):
    """The fields of a log record that show whether it anchors a snapshot."""

    previous_hash: bytes = b""
    snapshot_digest: bytes | None = None


_glance = msgspec.msgpack.Decoder(_Glance)


async def write_snapshot(journal: Journal, topics: TopicNames, fold: ShardFold) -> Written:
    """Write a fold, its chunks first and its manifest last; readers use it only once the log anchors it.

    The fold must not change meanwhile (`ShardFold.copy`). Raises `LogUnavailableError` if a part may not be written; an
    incomplete snapshot does no harm.
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
            # A writer has died in that slot, or is still writing to it.
            return Place(last.slot, last.since)
        case None:
            return Place(0, 0)


async def load_snapshots(
    reader: Reading, topics: TopicNames, shards: Collection[int], report: Callable[[int, str], object]
) -> dict[int, ShardFold]:
    """Return the fold of each shard's newest snapshot that agrees with the log.

    Shards without one are left out, and so are all shards if the topic is missing, the log is short or Kafka does not
    answer in time. `report` gets the reason for each snapshot that is not used.
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
        report(shard, "its last record cannot be decoded: it may come from a newer Drover")
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
        # The last snapshot may lack a voucher because its writer died; then read further back, to the one before it.
        begin = {shard: 0 for shard, since in begin.items() if since and shard not in folds}
    return folds


async def _restored(candidate: _Candidate, why: str | None) -> ShardFold | str:
    """Return the fold of a snapshot, or the reason why it is not used."""
    if why is not None:
        return why
    try:
        return await asyncio.to_thread(restore, candidate.manifest, candidate.chunks)
    except UnusableSnapshotError as error:
        return str(error)


async def stored_snapshots(
    reader: Reading, topics: TopicNames, shards: Collection[int]
) -> list[tuple[Manifest, tuple[bytes, ...]]]:
    """Return every complete snapshot of these shards in the topic, at most one per slot."""
    counts = await reader.partition_counts((topics.snapshots,))
    there = [shard for shard in shards if shard < counts[topics.snapshots]]
    by_shard = await _candidates(reader, topics.snapshots, dict.fromkeys(there, 0))
    return [(candidate.manifest, candidate.chunks) for shard in there for candidate in by_shard[shard]]


async def _last_records(reader: Reading, topic: str, shards: Collection[int]) -> dict[int, Chunk | Manifest | None]:
    """Return the last record of each partition that is not empty; None if it cannot be decoded."""
    ends = await reader.end_offsets(topic, shards)
    # Compaction never removes a partition's last record.
    start = {shard: end - 1 for shard, end in ends.items() if end > 0}
    last: dict[int, Chunk | Manifest | None] = {}
    async for records in reader.read(topic, start):
        for record in records:
            last[record.shard] = decode_record(record.payload)
    return last


async def _candidates(reader: Reading, topic: str, begin: Mapping[int, int]) -> dict[int, list[_Candidate]]:
    """Return each shard's complete snapshots from these offsets on, newest first."""
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
            # Bounded, because a manifest from an untrusted writer may claim any number of chunks.
            count = min(manifest.chunks, len(by_key))
            chunks = (by_key.get(chunk_key(shard, slot, number)) for number in range(count))
            read = (decode_record(chunk) for chunk in chunks if chunk is not None)
            data = tuple(chunk.data for chunk in read if isinstance(chunk, Chunk))
            candidates.append(_Candidate(manifest, manifest_digest(value), data))
    return sorted(candidates, key=lambda candidate: candidate.manifest.position, reverse=True)


def _fault(manifest: Manifest, shard: int, shards: int, end: int) -> str | None:
    if (manifest.shard, manifest.shards) != (shard, shards):
        return f"it belongs to shard {manifest.shard} of {manifest.shards}"
    if manifest.position > end:
        return f"it was taken at offset {manifest.position}, but the log ends at {end}"
    if not 0 <= manifest.chain_offset < manifest.position:
        return f"its last batch cannot be at offset {manifest.chain_offset}"
    return None


async def _unproven(reader: Reading, topic: str, candidates: Mapping[int, _Candidate]) -> dict[int, str]:
    """Return the snapshots that the log does not prove, with the reason; so snapshot writers cannot change the state.

    The log must have the snapshot's last batch at its offset: every batch is chained to its predecessors, so that this
    record proves the whole past. A later batch in that chain must carry the snapshot's digest.
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
    """Checks that the log contains and anchors a snapshot; reads the log from the snapshot's last batch on."""

    def __init__(self, candidate: _Candidate) -> None:
        self._manifest, self._digest = candidate.manifest, candidate.digest
        # The hashes of batches chained to the snapshot's last one; a fenced owner may have added branches.
        self._chained: set[bytes] = set()
        self._is_stranger = self.is_proven = False

    @property
    def is_over(self) -> bool:
        """Whether the proof is complete, or has failed."""
        return self.is_proven or self._is_stranger

    @property
    def why(self) -> str:
        """The reason why the snapshot is not proven."""
        if self._is_stranger or not self._chained:
            return f"the log does not have its last batch at offset {self._manifest.chain_offset}"
        return f"no record of the log anchors the snapshot of offset {self._manifest.position}"

    def take(self, offset: int, payload: bytes) -> None:
        """Check the next record of the log."""
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
