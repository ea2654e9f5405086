"""The state that a shard carries from one part of the log to the next: its fold, and the memories of its tables.

Its size is that of the state, which keeps what has ended only for a while. Decided commands are left out, since no
table needs them.
"""

from collections.abc import Mapping, Sequence

from msgspec import Raw, Struct, msgpack

from drover.fold.decided_commands import DecidedCommands
from drover.fold.log import Damage, ShardFold
from drover.fold.snapshot import Manifest, decode_record, encode_fold, restore
from drover.spark.tables.handlers import CapabilityTables

# By cluster and capability.
Memories = dict[str, dict[str, Struct]]


class ShardCarry(Struct, frozen=True):
    """A shard between two parts of the log: a snapshot of its fold, its damage, and the memories of its tables."""

    manifest: bytes
    chunks: tuple[bytes, ...]
    damage: Damage | None
    memories: dict[str, dict[str, Raw]]


_decoder = msgpack.Decoder(ShardCarry)


def packed(fold: ShardFold, memories: Memories) -> bytes:
    """Turn a shard's fold, which must not be used any more, and its memories into bytes."""
    fold.decided_commands = DecidedCommands()
    image = encode_fold(fold)
    return msgpack.encode(ShardCarry(image.manifest(0, 0), image.chunks, fold.damage, _raw(memories)))


def unpacked(value: bytes, capabilities: Sequence[CapabilityTables]) -> tuple[ShardFold, Memories]:
    """Return what `packed` was given. Raises `UnusableSnapshotError` for a damaged value."""
    carried = _decoder.decode(value)
    manifest = decode_record(carried.manifest)
    assert isinstance(manifest, Manifest), "a carried value holds a manifest"
    fold = restore(manifest, carried.chunks)
    fold.damage = carried.damage
    kinds = {capability.name: capability.memory for capability in capabilities}
    memories = {
        cluster: {name: msgpack.decode(raw, type=kinds[name]) for name, raw in of_cluster.items() if name in kinds}
        for cluster, of_cluster in carried.memories.items()
    }
    return fold, memories


def _raw(memories: Mapping[str, Mapping[str, Struct]]) -> dict[str, dict[str, Raw]]:
    return {
        cluster: {name: Raw(msgpack.encode(memory)) for name, memory in of_cluster.items()}
        for cluster, of_cluster in memories.items()
    }
