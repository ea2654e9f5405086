"""Snapshots: what they hold, what they refuse, and that one plus the tail is what a replay makes."""

import random
from collections.abc import Sequence
from dataclasses import fields

import msgspec
import pytest
from msgspec.structs import replace

from drover.errors import UnusableSnapshotError
from drover.fold import snapshot
from drover.fold.decided_commands import DecidedCommands
from drover.fold.log import ShardFold
from drover.fold.snapshot import ClusterPart, Image, Manifest, decode_record, differences, encode_fold, restore
from drover.state.cluster import ClusterState
from drover.state.declared import declarations
from tests.shard.images import written
from tests.shard.random_logs import random_log

INDEXES = {
    "moves_if_made",
    "_idle_plans",
    "below_min_isr",
    "listed_everywhere",
    "listed_in_topics",
}
STATE_FIELDS = tuple(one.name for one in fields(ClusterState))


def folded(log: Sequence[bytes], until: int | None = None) -> ShardFold:
    fold = ShardFold(0, 1)
    for offset, payload in enumerate(log[:until]):
        fold.fold(offset, payload)
    return fold


def everything(fold: ShardFold) -> dict[str, object]:
    """All that a fold is, indexes included, in a form that compares."""
    content = {field: getattr(fold, field) for field in ShardFold.__slots__ if field != "state"}
    content["decided_commands"] = list(fold.decided_commands.items())
    for name, state in fold.state.clusters.items():
        for field in STATE_FIELDS:
            # What is indexed only when it is asked for is asked for by its public name.
            value = getattr(state, field.removeprefix("_").removesuffix("_if_made"))
            ordered = isinstance(value, dict) and field not in INDEXES
            content[f"{name}.{field}"] = list(value.items()) if ordered else value
    return content


def test_a_snapshot_has_everything_that_a_fold_has() -> None:
    assert set(snapshot.FOLD_FIELDS) == set(ShardFold.__slots__) - {"state", "decided_commands", "damage"}
    assert set(snapshot.CLUSTER_FIELDS) == set(STATE_FIELDS) - INDEXES
    recorded = {declared.name for declared in declarations(ClusterState).values()}
    assert set(ClusterPart.__struct_fields__) == {"name", *recorded}


@pytest.mark.parametrize("seed", range(4))
def test_a_snapshot_and_the_tail_are_what_a_replay_makes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(snapshot, "PART_ITEMS", chance.choice([1, 2, 5]))
    monkeypatch.setattr(snapshot, "CHUNK_BYTES", chance.choice([64, 500]))
    log = random_log(seed, 100)
    whole = everything(folded(log))
    every = max(1, len(log) // 25)
    for position in range(chance.randrange(every), len(log) + 1, every):
        fold = restore(*written(folded(log, position)))
        assert everything(fold) == everything(folded(log, position)), f"at position {position}"
        for offset in range(max(0, position - 2), len(log)):
            fold.fold(offset, log[offset])
        assert everything(fold) == whole, f"from position {position}"


def test_a_snapshot_that_does_not_say_whose_commands_it_knows_is_no_other_one() -> None:
    one, other = folded(random_log(2, 60)), folded(random_log(2, 60))
    assert [known for _, known in one.decided_commands.items()]
    other.decided_commands = DecidedCommands()
    for identity, known in one.decided_commands.items():
        other.decided_commands.add(identity, replace(known, by=""))
    assert differences(one, other) == ()
    other.decided_commands = DecidedCommands()
    for identity, known in one.decided_commands.items():
        other.decided_commands.add(identity, replace(known, offset=known.offset + 1, by=""))
    assert differences(one, other) == ("decided_commands",)


def test_the_fold_that_is_written_may_change_meanwhile() -> None:
    log = random_log(11, 100)
    half = len(log) // 2
    live = folded(log, half)
    twin = live.copy()
    for offset in range(half, len(log)):
        live.fold(offset, log[offset])
    assert everything(restore(*written(twin))) == everything(folded(log, half))
    assert everything(live) == everything(folded(log))


def test_any_damage_to_the_body_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "CHUNK_BYTES", 200)
    manifest, chunks = written(folded(random_log(3, 100)))
    assert len(chunks) > 3
    spoiled = bytearray(chunks[1])
    spoiled[17] ^= 1
    for damaged in (
        chunks[:-1],
        chunks[1:],
        [chunks[1], chunks[0], *chunks[2:]],
        [chunks[0], bytes(spoiled), *chunks[2:]],
        [],
    ):
        with pytest.raises(UnusableSnapshotError, match="not those that its manifest names"):
            restore(manifest, damaged)


def test_a_state_that_is_not_the_one_that_was_written_is_found() -> None:
    manifest, chunks = written(folded(random_log(3, 100)))
    with pytest.raises(UnusableSnapshotError, match="another hash"):
        restore(msgspec.structs.replace(manifest, state_hash=b"x" * 16), chunks)


def test_a_body_that_is_not_understood_is_no_fault_of_the_log() -> None:
    manifest, _ = written(folded([]))
    rubbish = b"no zlib"
    bent = msgspec.structs.replace(manifest, chunks=1, body_digest=snapshot._digest([rubbish]))
    with pytest.raises(UnusableSnapshotError, match="not understood"):
        restore(bent, [rubbish])


def test_records_of_a_newer_drover_and_rubbish_are_passed_over() -> None:
    image = encode_fold(folded([]))
    manifest = decode_record(image.manifest(0, 0))
    assert isinstance(manifest, Manifest)
    newer = msgspec.structs.replace(manifest, schema=snapshot.SNAPSHOT_SCHEMA + 1)
    assert decode_record(msgspec.msgpack.encode(newer)) is None
    assert decode_record(b"") is None
    assert decode_record(b"\xc1") is None
    plain = {**msgspec.msgpack.decode(image.manifest(0, 0)), "added_later": [1, 2]}
    assert decode_record(msgspec.msgpack.encode(plain)) == manifest


def test_no_chunk_is_larger_than_a_record_may_be() -> None:
    image = Image(folded([]), (b"x" * snapshot.CHUNK_BYTES,), 1, b"")
    assert len(image.chunk(0, 0, 0)) < 2 * 1024 * 1024
