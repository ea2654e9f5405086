"""Damaged logs of each kind: every break is named where it stands, and the rest is inspected all the same."""

from pathlib import Path

import pytest

from drover.events.codec import decode_record, encode_record
from drover.events.records import Acquire, Genesis
from drover.fold.inspection import Finding, Inspection, Summary
from drover.fold.log import Rule, ShardFold
from tests.shard.damage import SHARD, Damage, changed, damaged, sound, valid_offsets
from tests.simulation import golden

GOLDEN = sorted(golden.FOLDER.glob("*.zlib"))


def inspected(payloads: list[bytes]) -> tuple[list[Finding], Summary]:
    inspection = Inspection(SHARD, 1)
    found = [finding for offset, payload in enumerate(payloads) for finding in inspection.see(offset, payload)]
    return found, inspection.summary()


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem.split(".")[0])
def test_a_sound_log_has_no_findings_and_the_state_of_the_fold(path: Path) -> None:
    log = golden.read(path)
    for number, shard in enumerate(log.shards):
        inspection = Inspection(number, len(log.shards))
        fold = ShardFold(number, len(log.shards))
        for offset, payload in enumerate(shard.records):
            assert inspection.see(offset, payload) == ()
            fold.fold(offset, payload)
        summary = inspection.summary()
        assert summary.state_hash == fold.state.hash()
        assert (summary.batches, summary.fenced_batches) == (fold.sequence, fold.fenced_batches)
        assert (summary.records, summary.findings, summary.unchecked_hashes) == (len(shard.records), 0, 0)


@pytest.mark.parametrize("damage", Damage, ids=str)
def test_each_damage_is_named_where_it_stands(damage: Damage) -> None:
    payloads, expected = damaged(damage)
    found, summary = inspected(payloads)
    assert [(finding.offset, finding.rule) for finding in found] == expected
    assert all(finding.what for finding in found)
    assert summary.findings == len(expected)


def test_what_does_not_touch_the_state_leaves_its_hashes_checkable() -> None:
    for damage in (Damage.CURSOR, Damage.TIME, Damage.EPOCH, Damage.REPEATED):
        payloads, _ = damaged(damage)
        _, summary = inspected(payloads)
        assert summary.state_hash is not None, damage
        assert summary.state_hashes >= 1, damage


def test_after_events_are_lost_later_hashes_are_counted_and_not_called_wrong() -> None:
    for damage in (Damage.NEWER_SCHEMA, Damage.MISSING, Damage.UNREADABLE, Damage.IMPOSSIBLE_EVENT):
        payloads, _ = damaged(damage)
        found, summary = inspected(payloads)
        assert summary.state_hash is None, damage
        assert summary.unchecked_hashes >= 1, damage
        assert Rule.STATE_HASH not in {finding.rule for finding in found}, damage


def test_several_breaks_are_all_listed() -> None:
    payloads = sound()
    places = valid_offsets(payloads)
    for offset in (places[2], places[14]):
        payloads[offset] = changed(payloads[offset], at_ms=1)
    found, _ = inspected(payloads)
    # The time, and that the record after it names another one.
    assert [(finding.offset, finding.rule) for finding in found] == [
        (places[2], Rule.TIME),
        (places[3], Rule.CHAIN),
        (places[14], Rule.TIME),
        (places[15], Rule.CHAIN),
    ]


def test_what_is_fenced_breaks_nothing_whatever_it_holds() -> None:
    payloads = sound()
    inspection = Inspection(SHARD, 1)
    for offset, payload in enumerate(payloads):
        inspection.see(offset, payload)
    foreign = changed(payloads[-1], token=b"another", sequence=1, epoch=99)
    before = inspection.summary()
    assert inspection.see(len(payloads), foreign) == ()
    after = inspection.summary()
    assert (after.fenced_batches, after.state_hash) == (before.fenced_batches + 1, before.state_hash)


def test_a_log_of_another_count_of_shards_is_named() -> None:
    inspection = Inspection(0, 3)
    (finding,) = inspection.see(0, encode_record(Genesis(schema=1, shards=6, shard=0)))
    assert finding.rule is Rule.GENESIS


@pytest.mark.parametrize("junk_first", [False, True])
def test_a_forged_batch_under_an_old_token_is_counted_as_fenced_beside_junk(*, junk_first: bool) -> None:
    payloads = sound()
    acquires = [decode_record(payload) for payload in payloads]
    old, *_ = [record.token for record in acquires if isinstance(record, Acquire)]
    forged = changed(payloads[valid_offsets(payloads)[-1]], token=old)
    junk = b"\x00\x01random"
    before = inspected(payloads)[1].fenced_batches
    found, summary = inspected([*payloads, *((junk, forged) if junk_first else (forged, junk))])
    assert found == []
    assert summary.fenced_batches == before + 1
    # A record that the owner could have written breaks the shard; what is fenced after it is still counted.
    broken = changed(payloads[valid_offsets(payloads)[-1]], schema=99)
    found, summary = inspected([*payloads, broken, forged])
    assert [finding.rule for finding in found] == [Rule.SCHEMA]
    assert summary.fenced_batches == before + 1
