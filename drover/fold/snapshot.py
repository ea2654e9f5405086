"""Snapshots: encode and decode a shard's fold at a position. An optimisation; the log remains the truth.

The body is a run of parts (clusters in slices, decided commands in slices), compressed and cut into chunks. The
manifest, written after them, holds the rest of the fold and the chunks' number and digest. A doubtful snapshot raises
`UnusableSnapshotError`, and its reader folds the log from the first record.

The wire form is a contract like the log's: values are maps by field name, fields are added with a default and never
renamed or removed, and every snapshot can be read for ever.
"""

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, get_args, get_type_hints

import msgspec

from drover.errors import UnusableSnapshotError
from drover.events.records import Cursor
from drover.events.undecodable import UNDECODABLE
from drover.fold.decided_commands import DecidedCommand
from drover.fold.log import ShardFold
from drover.state.cluster import ClusterState
from drover.state.declared import Recorded, declarations

SNAPSHOT_SCHEMA = 1
# Encoding a part is one call that nothing interrupts: 2,000 reassignments take about a millisecond.
PART_ITEMS = 2000
CHUNK_BYTES = 1024 * 1024
COMPRESSION_LEVEL = 1
_LENGTH_BYTES = 4


_DECLARED = declarations(ClusterState)
# The attributes of a state that a snapshot keeps.
CLUSTER_FIELDS = ("name", *_DECLARED)
_TYPES = get_type_hints(ClusterState)


def _part_field(attribute: str, declared: Recorded) -> tuple[str, Any, Any]:
    """Describe how a recorded field is kept: under its recorded name, and without keys that its entries hold."""
    default: Any = getattr(ClusterState("any"), attribute)
    if declared.key is not None:
        return declared.name, tuple.__class_getitem__((get_args(_TYPES[attribute])[1], ...)), ()
    return declared.name, _TYPES[attribute], default


# A cluster, or a slice of a large one: the first slice has all plain values, every slice some entries of maps.
ClusterPart = msgspec.defstruct(
    "ClusterPart",
    [("name", str), *(_part_field(attribute, declared) for attribute, declared in _DECLARED.items())],
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="part",
    tag="cluster",
)


class CommandEntry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A command that was decided within the last 7 days of log time; `source` and `by` are missing in old snapshots."""

    cluster: str
    id: str
    digest: bytes
    offset: int
    at_ms: int
    source: int = 0
    by: str = ""


class CommandsPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="part", tag="commands"):
    """A slice of the decided commands; those of a source in the order in which they are forgotten."""

    commands: tuple[CommandEntry, ...]


class Chunk(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="chunk"):
    """A piece of a body. `since` is the offset at which the last complete snapshot before it begins, 0 if none does."""

    schema: int
    slot: int
    number: int
    since: int
    data: bytes


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="manifest"):
    """A complete snapshot: written last, it makes the chunks of its slot count.

    `since` is the offset of its first chunk. `body_bytes` is the size before compression, `body_digest` that of
    the compressed chunks. The other fields are those of `ShardFold` at that position, under the same names.
    """

    schema: int
    slot: int
    since: int
    chunks: int
    body_bytes: int
    body_digest: bytes
    state_hash: bytes
    shard: int
    shards: int
    position: int
    epoch: int
    token: bytes
    owner: str
    group: str
    generation: int
    sequence: int
    chain: bytes
    chain_offset: int
    cursors: tuple[Cursor, ...]
    at_ms: int
    fenced_batches: int
    stale_acquires: int
    void_records: int = 0


# The fields that a fold and a manifest have in common.
FOLD_FIELDS = tuple(field for field in Manifest.__struct_fields__ if field in ShardFold.__slots__)

_Part = CommandsPart | msgspec.Struct
_encoder = msgspec.msgpack.Encoder()
_part_decoder: msgspec.msgpack.Decoder[_Part] = msgspec.msgpack.Decoder(ClusterPart | CommandsPart)
_record_decoder: msgspec.msgpack.Decoder[Chunk | Manifest] = msgspec.msgpack.Decoder(Chunk | Manifest)


@dataclass(frozen=True, slots=True)
class Image:
    """A fold as bytes, before its slot is known."""

    fold: ShardFold
    chunks: tuple[bytes, ...]
    body_bytes: int
    state_hash: bytes

    def chunk(self, number: int, slot: int, since: int) -> bytes:
        """Return one chunk as a record's value."""
        data = self.chunks[number]
        return _encoder.encode(Chunk(schema=SNAPSHOT_SCHEMA, slot=slot, number=number, since=since, data=data))

    def manifest(self, slot: int, since: int) -> bytes:
        """Return the manifest as a record's value."""
        manifest = Manifest(
            schema=SNAPSHOT_SCHEMA,
            slot=slot,
            since=since,
            chunks=len(self.chunks),
            body_bytes=self.body_bytes,
            body_digest=_digest(self.chunks),
            state_hash=self.state_hash,
            **{field: getattr(self.fold, field) for field in FOLD_FIELDS},
        )
        return _encoder.encode(manifest)


def manifest_digest(value: bytes) -> bytes:
    """Return the 16 bytes that identify a manifest and its snapshot; the log carries them to anchor the snapshot."""
    return hashlib.blake2b(value, digest_size=16).digest()


def chunk_key(shard: int, slot: int, number: int) -> bytes:
    """Return a chunk's record key: a snapshot written later into the slot replaces it."""
    return f"{shard}/{slot}/{number}".encode()


def manifest_key(shard: int, slot: int) -> bytes:
    """Return a manifest's record key."""
    return f"{shard}/{slot}/manifest".encode()


def encode_fold(fold: ShardFold) -> Image:
    """Encode a fold, which must not change meanwhile (`ShardFold.copy`).

    May run in a thread: no single step holds the interpreter for long, whatever the size of the state.
    """
    packer = zlib.compressobj(COMPRESSION_LEVEL)
    packed = bytearray()
    size = 0
    for part in _parts(fold):
        encoded = _encoder.encode(part)
        size += _LENGTH_BYTES + len(encoded)
        packed += packer.compress(len(encoded).to_bytes(_LENGTH_BYTES, "big"))
        packed += packer.compress(encoded)
    packed += packer.flush()
    chunks = tuple(bytes(packed[first : first + CHUNK_BYTES]) for first in range(0, len(packed), CHUNK_BYTES))
    return Image(fold, chunks, size, fold.state.hash())


def _parts(fold: ShardFold) -> Iterator[_Part]:
    for state in fold.state.clusters.values():
        yield from _slices(state)
    commands = fold.decided_commands.items()
    while piece := tuple(islice(commands, PART_ITEMS)):
        yield CommandsPart(
            commands=tuple(
                CommandEntry(cluster, id_, command.digest, command.offset, command.at_ms, command.source, command.by)
                for (cluster, id_), command in piece
            )
        )


def _slices(state: ClusterState) -> Iterator[_Part]:
    values: dict[str, Any] = {"name": state.name}
    maps: list[tuple[Recorded, Mapping[Any, Any]]] = []
    for attribute, declared in _DECLARED.items():
        value = getattr(state, attribute)
        if isinstance(value, Mapping):
            maps.append((declared, value))
        else:
            values[declared.name] = value
    yield ClusterPart(**values)
    for declared, entries in maps:
        left = iter(entries.items())
        while piece := dict(islice(left, PART_ITEMS)):
            kept: Any = piece if declared.key is None else tuple(piece.values())
            yield ClusterPart(**{"name": state.name, declared.name: kept})


def decode_record(value: bytes) -> Chunk | Manifest | None:
    """Decode a record of the snapshots topic; None if this version cannot read it."""
    try:
        record = _record_decoder.decode(value)
    except UNDECODABLE:
        return None
    return record if record.schema <= SNAPSHOT_SCHEMA and record.since >= 0 else None


def restore(manifest: Manifest, chunks: Sequence[bytes]) -> ShardFold:
    """Return the fold that a manifest and its chunks describe.

    Raises `UnusableSnapshotError` unless the chunks are those that the manifest names and the restored state has the
    hash of the one that was written. The reader must prove that the log has this past.
    """
    if len(chunks) != manifest.chunks or _digest(chunks) != manifest.body_digest:
        raise UnusableSnapshotError("its chunks are not those that its manifest names")
    fold = ShardFold(manifest.shard, manifest.shards)
    for field in FOLD_FIELDS:
        setattr(fold, field, getattr(manifest, field))
    try:
        for part in _read_parts(chunks, manifest.body_bytes):
            _add(fold, part)
    except (zlib.error, *UNDECODABLE) as error:
        raise UnusableSnapshotError(f"its body is not understood: {error}") from error
    for state in fold.state.clusters.values():
        state.rebuild_indexes()
    if fold.state.hash() != manifest.state_hash:
        raise UnusableSnapshotError("its state has another hash than the one that was written")
    return fold


def differences(first: ShardFold, second: ShardFold) -> tuple[str, ...]:
    """Return the names of the fields of `ShardFold` in which two folds differ."""
    differing = [field for field in FOLD_FIELDS if getattr(first, field) != getattr(second, field)]
    if not _is_same(list(first.decided_commands.items()), list(second.decided_commands.items())):
        differing.append("decided_commands")
    if first.state.hash() != second.state.hash():
        differing.append("state")
    return tuple(differing)


def _is_same(first: Sequence[tuple[Any, DecidedCommand]], second: Sequence[tuple[Any, DecidedCommand]]) -> bool:
    """Compare decided commands; a snapshot of an older version lacks their authors."""
    if len(first) != len(second):
        return False
    return all(
        (name, command)
        == (other_name, copy if command.by and copy.by else msgspec.structs.replace(copy, by=command.by))
        for (name, command), (other_name, copy) in zip(first, second, strict=True)
    )


def _read_parts(chunks: Sequence[bytes], body_bytes: int) -> Iterator[_Part]:
    body = memoryview(zlib.decompress(b"".join(chunks), bufsize=max(1, body_bytes)))
    place = 0
    while place < len(body):
        begin = place + _LENGTH_BYTES
        place = begin + int.from_bytes(body[place:begin], "big")
        yield _part_decoder.decode(body[begin:place])


def _add(fold: ShardFold, part: _Part) -> None:
    if not isinstance(part, CommandsPart):
        _add_cluster(fold.state.clusters, part)
        return
    for entry in part.commands:
        command = DecidedCommand(entry.digest, entry.offset, entry.at_ms, entry.source, entry.by)
        fold.decided_commands.add((entry.cluster, entry.id), command)


def _add_cluster(clusters: dict[str, ClusterState], part: Any) -> None:
    state = clusters.get(part.name)
    is_first = state is None
    if state is None:
        state = clusters[part.name] = ClusterState(part.name)
    for attribute, declared in _DECLARED.items():
        value: Any = getattr(part, declared.name)
        if declared.key is not None:
            getattr(state, attribute).update((declared.key(entry), entry) for entry in value)
        elif isinstance(value, Mapping):
            getattr(state, attribute).update(value)
        elif is_first:
            setattr(state, attribute, value)


def _digest(chunks: Sequence[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for chunk in chunks:
        digest.update(chunk)
    return digest.digest()
