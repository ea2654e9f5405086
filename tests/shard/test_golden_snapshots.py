"""Snapshots that an earlier Drover wrote are restored for ever, whatever fields a state has got since."""

from collections.abc import Iterable, Sequence
from dataclasses import fields

import msgspec
import pytest

from drover.fold.log import ShardFold
from drover.fold.snapshot import CLUSTER_FIELDS, FOLD_FIELDS, Chunk, Manifest, decode_record, differences, restore
from drover.state.cluster import ClusterState
from tests.shard.snapshot_samples import GOLDEN, SAMPLES, SINCE, SLOT, read


def restored(name: str) -> ShardFold:
    records = [decode_record(value) for value in read(name)]
    manifest = records[-1]
    assert isinstance(manifest, Manifest)
    chunks = [record for record in records[:-1] if isinstance(record, Chunk)]
    assert (manifest.slot, manifest.since) == (SLOT, SINCE)
    assert {(chunk.slot, chunk.since) for chunk in chunks} == {(SLOT, SINCE)}
    return restore(manifest, [chunk.data for chunk in chunks])


def test_every_golden_snapshot_has_a_sample_and_the_other_way_round() -> None:
    names = {file.stem for file in GOLDEN.glob("snapshot_*.msgpack")}
    assert names == set(SAMPLES), "run: python -m tests.shard.snapshot_samples (it adds, and changes nothing)"


@pytest.mark.parametrize("name", SAMPLES)
def test_a_snapshot_that_was_written_once_is_restored_for_ever(name: str) -> None:
    fold, sample = restored(name), SAMPLES[name]()
    assert differences(fold, sample) == ()
    assert list(fold.decided_commands.items()) == list(sample.decided_commands.items())
    for cluster, state in sample.state.clusters.items():
        twin = fold.state.clusters[cluster]
        for field in (one.name for one in fields(ClusterState)):
            assert getattr(twin, field) == getattr(state, field), f"{cluster}.{field}"


ADD_ONE = "add a sample in which it is set, then run: python -m tests.shard.snapshot_samples"


def test_the_samples_leave_nothing_at_its_default() -> None:
    """A field that was added needs bytes that are kept: the present ones of older samples stay as they are."""
    folds = [sample() for sample in SAMPLES.values()]
    states = [fold.state.clusters["prod"] for fold in folds]
    assert _unset(folds, ShardFold(0, 1), FOLD_FIELDS) == set(), ADD_ONE
    assert _unset(states, ClusterState("prod"), CLUSTER_FIELDS) == {"name"}, ADD_ONE
    for field in CLUSTER_FIELDS:
        maps = [found for state in states if isinstance(found := getattr(state, field), dict)]
        values = [value for entries in maps for value in entries.values() if isinstance(value, msgspec.Struct)]
        for kind in {type(value) for value in values}:
            some = [value for value in values if type(value) is kind]
            optional = [known for known in msgspec.structs.fields(kind) if not known.required]
            unset = {
                known.name for known in optional if all(getattr(value, known.name) == known.default for value in some)
            }
            assert unset == set(), f"{kind.__name__}: {ADD_ONE}"


def _unset(found: Sequence[object], empty: object, names: Iterable[str]) -> set[str]:
    return {field for field in names if all(getattr(one, field) == getattr(empty, field) for one in found)}
