"""Snapshots as their readers find them."""

from drover.fold.log import ShardFold
from drover.fold.snapshot import Chunk, Image, Manifest, decode_record, encode_fold


def written(fold: ShardFold, slot: int = 0) -> tuple[Manifest, list[bytes]]:
    """A snapshot as its reader finds it."""
    image = encode_fold(fold.copy())
    manifest = decode_record(image.manifest(slot, 7))
    assert isinstance(manifest, Manifest)
    return manifest, [data_of(image, number) for number in range(manifest.chunks)]


def data_of(image: Image, number: int) -> bytes:
    chunk = decode_record(image.chunk(number, 1, 7))
    assert isinstance(chunk, Chunk)
    assert (chunk.number, chunk.slot, chunk.since) == (number, 1, 7)
    return chunk.data
