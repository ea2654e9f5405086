"""Stored snapshots held against the log."""

from dataclasses import dataclass

import msgspec

from drover.client.snapshot_check import SnapshotCheck
from drover.events.clusters import ClusterFrozen
from drover.fold.log import ShardFold
from drover.fold.snapshot import Image, Manifest, decode_record, encode_fold
from tests.client.log import CLUSTER, Writer


@dataclass(frozen=True)
class Stored:
    manifest: Manifest
    chunks: tuple[bytes, ...]


def stored(image: Image) -> Stored:
    manifest = decode_record(image.manifest(0, 0))
    assert isinstance(manifest, Manifest)
    return Stored(manifest, image.chunks)


def checked(*snapshots: Stored) -> list[str]:
    writer = _writer()
    check = SnapshotCheck((one.manifest, one.chunks) for one in snapshots)
    fold = ShardFold(0, 1)
    for offset, payload in enumerate(writer.records):
        fold.fold(offset, payload)
        check.see(fold)
    return check.results()


def _writer(batches: int = 3) -> Writer:
    writer = Writer()
    writer.begin()
    for _ in range(batches):
        writer.say(ClusterFrozen(cluster=CLUSTER, by="me", reason="why"))
    return writer


def test_a_snapshot_that_holds_what_the_log_makes_has_nothing_wrong() -> None:
    first, second = (stored(encode_fold(_writer(batches).fold)) for batches in (1, 2))
    assert checked(first, second, second) == ["", "", ""]


def test_what_differs_is_named() -> None:
    fold = _writer(2).fold
    fold.state.cluster(CLUSTER).blacklist = (1,)
    fold.epoch = 7
    (wrong,) = checked(stored(encode_fold(fold)))
    assert wrong == "snapshot of shard 0 at offset 4: it differs from the log in epoch, state"


def test_what_cannot_be_read_and_what_the_log_does_not_reach_is_wrong() -> None:
    good = stored(encode_fold(_writer(2).fold))
    far = Stored(msgspec.structs.replace(good.manifest, position=99), good.chunks)
    assert checked(Stored(good.manifest, ()), far) == [
        "snapshot of shard 0 at offset 4: its chunks are not those that its manifest names",
        "snapshot of shard 0 at offset 99: the log has no record there",
    ]
