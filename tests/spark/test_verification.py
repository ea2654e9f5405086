"""The log held against its rules in Spark: shard by shard, with the same findings as record by record."""

import pytest
from pyspark.sql import SparkSession

from drover.fold.inspection import Inspection
from drover.fold.log import Rule
from drover.spark.audit.verification import verify
from tests.shard.damage import SHARD, Damage, damaged, sound
from tests.simulation import golden
from tests.spark.kafka_rows import BEGAN_MS, frame, shard

pytestmark = pytest.mark.story


def test_a_sound_log_of_several_shards_has_no_findings_and_its_states(spark: SparkSession) -> None:
    log = golden.read(golden.FOLDER / "seed-81.msgpack.zlib")
    records = [one for number, kept in enumerate(log.shards) for one in shard(*kept.records, partition=number)]
    found = verify(frame(spark, reversed(records)), len(log.shards))
    assert found.findings == ()
    assert [(one.shard, one.records, one.state_hash) for one in found.shards] == [
        (number, len(kept.records), kept.state_hash) for number, kept in enumerate(log.shards)
    ]


def test_every_kind_of_damage_is_found_in_its_shard_and_named(spark: SparkSession) -> None:
    """One shard for each, and sound ones between them: what is wrong in one is no matter of another."""
    kinds = list(Damage)
    logs = [log for damage in kinds for log in (damaged(damage)[0], sound())]
    # Without their genesis, which calls each of them the only shard there is.
    records = [one for number, log in enumerate(logs) for one in shard(*log[1:], partition=number)]
    found = verify(frame(spark, records), len(logs))
    expected = [
        (2 * place, offset - 1, rule) for place, damage in enumerate(kinds) for offset, rule in damaged(damage)[1]
    ]
    assert [(one.finding.shard, one.finding.offset, one.finding.rule) for one in found.findings] == expected
    assert all(one.appended_ms == BEGAN_MS + one.finding.offset * 1000 for one in found.findings)
    assert {one.finding.rule for one in found.findings} == set(Rule) - {Rule.GENESIS}


def test_spark_says_what_an_inspection_record_by_record_says(spark: SparkSession) -> None:
    payloads, _ = damaged(Damage.ALTERED)
    inspection = Inspection(SHARD, 1)
    wanted = [finding for offset, payload in enumerate(payloads) for finding in inspection.see(offset, payload)]
    found = verify(frame(spark, shard(*payloads)), 1)
    assert [one.finding for one in found.findings] == wanted
    assert found.shards == (inspection.summary(),)


def test_a_log_without_records_has_nothing_to_say(spark: SparkSession) -> None:
    assert verify(frame(spark, []), 6) == ((), ())
