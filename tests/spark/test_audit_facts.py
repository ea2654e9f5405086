"""Audits against a plain fold in Python, whole and in part; filters, and that the stream's figures are the same."""

from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drover.events.codec import encode_record
from drover.events.records import Genesis
from drover.spark.audit.log_reading import gather
from drover.spark.audit.parts import AuditSpan, ShardPart, parse_offsets, written
from drover.spark.audit.report import Report, report
from drover.spark.audit.sections import SECTIONS
from drover.spark.audit.shard_report import ShardReport, Wanted
from drover.spark.audit.shards import audited
from tests.simulation import golden
from tests.spark.audit_oracle import AuditOracle, valid
from tests.spark.kafka_rows import Stored, frame, shard
from tests.spark.pure import PureJob, in_order

pytestmark = pytest.mark.story

EVERYTHING = AuditSpan()
ALL = Wanted()


def records_of(seed: int) -> list[Stored]:
    log = golden.read(golden.FOLDER / f"seed-{seed}.msgpack.zlib")
    return [one for number, kept in enumerate(log.shards) for one in shard(*kept.records, partition=number)]


def report_of(spark: SparkSession, records: list[Stored], span: AuditSpan = EVERYTHING) -> Report:
    ends = {one.partition: one.offset + 1 for one in records}
    return gather(frame(spark, records), span, ALL, dict.fromkeys(ends, 0), ends).report


def pure_report(records: list[Stored], wanted: Wanted) -> Report:
    """Audit everything without Spark."""
    ends = {one.partition: one.offset + 1 for one in records}
    lines = audited(in_order(records), EVERYTHING, wanted)
    shards = [line for line in lines if isinstance(line, ShardReport)]
    return report(shards, EVERYTHING, dict.fromkeys(ends, 0), ends, wanted.sections)


def assert_as_the_oracle(found: Report, oracle: AuditOracle) -> None:
    for section, wanted in (
        ("commands", oracle.commands),
        ("refusals", oracle.refusals),
        ("reassignments", oracle.reassignments),
    ):
        rows = found.sections[section]
        assert [set(row) for row in rows] == [set(SECTIONS[section].names)] * len(rows)
        assert sorted_rows(shared(rows, wanted)) == sorted_rows(without_open_states(wanted)), section
    for row in found.sections["plans"]:
        assert oracle.plans[row["cluster"], row["plan"]] == {"by": row["requester"], "reason": row["reason"]}


def shared(rows: Iterable[dict[str, Any]], wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep the columns that the oracle has; where a reassignment is before its end, the stream's own tests say."""
    names = set(wanted[0]) if wanted else set()
    kept = [{name: value for name, value in row.items() if name in names} for row in rows]
    return [row | ({"state": None} if row.get("ended_ms", 0) is None else {}) for row in kept]


def without_open_states(wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [dict(row) for row in wanted]


def sorted_rows(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items(), key=lambda item: item[0])) for row in rows)


@pytest.fixture(scope="module")
def records() -> list[Stored]:
    return records_of(469)


@pytest.fixture(scope="module")
def whole(spark: SparkSession, records: list[Stored]) -> Report:
    return report_of(spark, records)


def test_the_whole_log_is_told_as_a_plain_fold_tells_it(records: list[Stored], whole: Report) -> None:
    assert_as_the_oracle(whole, AuditOracle(records))
    assert whole.offsets == f"0:0-{len(records) - 1}"
    assert whole.totals["completed"]
    assert whole.totals["unreadable_records"] == 0


def test_a_part_between_two_moments_is_resolved_to_offsets_that_give_the_same_again(
    spark: SparkSession, records: list[Stored]
) -> None:
    times = sorted({batch.at_ms for batch in valid(records)})
    since_ms, until_ms = times[len(times) // 3], times[2 * len(times) // 3]
    by_time = report_of(spark, records, AuditSpan(since_ms, until_ms))
    assert_as_the_oracle(by_time, AuditOracle(records, since_ms, until_ms))
    assert 0 < len(by_time.sections["commands"]) < len(AuditOracle(records).commands)
    by_offset = report_of(spark, records, AuditSpan(offsets=parse_offsets(by_time.offsets)))
    assert by_offset == by_time


def test_offsets_of_one_shard_leave_the_others_out(spark: SparkSession) -> None:
    records = records_of(81)
    found = report_of(spark, records, AuditSpan(offsets={1: (10, 25)}))
    assert_as_the_oracle(found, AuditOracle(records, offsets={1: (10, 25)}))
    assert {row["shard"] for row in found.sections["commands"]} == {1}


def test_a_part_in_which_nothing_was_decided_is_empty(spark: SparkSession, records: list[Stored]) -> None:
    last = max(batch.at_ms for batch in valid(records))
    found = report_of(spark, records, AuditSpan(since_ms=last + 1))
    assert found.sections["commands"] == ()
    assert {row["ended_ms"] for row in found.sections["reassignments"]} <= {None}
    assert found.offsets == ""


def test_the_figures_of_the_stream_are_the_same(records: list[Stored], whole: Report) -> None:
    job = PureJob().take(records)
    assert len({key[:-1] for key in job.rows["ended"]}) < len(job.rows["ended"]), "two ended in one record"
    found = whole
    for name, total in (("accepted_commands", "accepted_commands"), ("completed", "completed")):
        assert sum(row[name] or 0 for row in job.rows["requests"].values()) == found.totals[total]
    ended = [row for row in found.sections["reassignments"] if row["ended_ms"] is not None]
    assert {(row["topic"], row["partition"], row["offset"], row["bytes_copied"]) for row in ended} == {
        (row["topic"], row["partition"], row["offset"], row["bytes_copied"]) for row in job.rows["ended"].values()
    }
    for row in found.sections["plans"]:
        known = job.rows["plans"][row["cluster"], row["plan"]]
        assert row["bytes_copied"] == (known["bytes_copied"] or 0)
        assert row["finished_ms"] == known["finished_ms"]


def test_filters_keep_what_they_name(records: list[Stored], whole: Report) -> None:
    def told(wanted: Wanted) -> Report:
        return pure_report(records, wanted)

    plan = whole.sections["reassignments"][0]["plan"]
    of_plan = told(Wanted(plan=plan))
    assert {row["plan"] for section in ("plans", "commands", "reassignments") for row in of_plan.sections[section]} == {
        plan
    }
    of_topic = told(Wanted(topic="orders"))
    assert {row["topic"] for row in of_topic.sections["reassignments"]} == {"orders"}
    assert {row["topic"] for row in of_topic.sections["refusals"]} <= {"orders"}
    assert 0 < len(of_topic.sections["commands"]) < len(whole.sections["commands"])
    of_ana = told(Wanted(by="ana"))
    assert of_ana.sections["commands"] == tuple(row for row in whole.sections["commands"] if row["by"] == "ana")
    assert [row["requester"] for row in of_ana.sections["requesters"]] == ["ana"]
    assert 0 < len(of_ana.sections["commands"]) < len(whole.sections["commands"])
    for nothing in (Wanted(by="nobody"), Wanted(cluster="elsewhere"), Wanted(plan="none"), Wanted(topic="none")):
        assert not any(told(nothing).sections.values())


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_alone_is_told_as_among_all_and_with_the_same_totals(section: str) -> None:
    records = records_of(81)
    whole, found = pure_report(records, ALL), pure_report(records, Wanted(sections=(section,)))
    assert found.sections == {section: whole.sections[section]}
    assert (found.totals, found.parts) == (whole.totals, whole.parts)
    assert found.sections[section]


def test_totals_are_of_the_rows_that_are_shown(records: list[Stored]) -> None:
    found = pure_report(records, Wanted(topic="orders"))
    rows = found.sections["reassignments"]
    assert found.totals["reassignments"] == len(rows)
    assert found.totals["commands"] == len(found.sections["commands"])
    assert found.totals["plans"] == len(found.sections["plans"])
    assert found.totals["refusals"] == len(found.sections["refusals"])
    assert found.totals["bytes_copied"] == sum(row["bytes_copied"] for row in rows)
    assert found.totals["cancels_asked_for"] == sum(row["cancelled_by"] is not None for row in rows)
    (who,) = found.sections["requesters"]
    assert who["completed"] + who["rolled_back"] + who["stopped"] + who["failed"] + who["under_way"] == len(rows)


def test_what_is_fenced_is_in_no_figure_and_what_cannot_be_read_is_counted(
    spark: SparkSession, records: list[Stored], whole: Report
) -> None:
    stale = next(one.value for one in records if one.offset == 3)
    assert stale is not None
    written_late = [*records, *(Stored(records[0].topic, 0, len(records) + more, 1, stale) for more in (0, 1))]
    unreadable = Stored(records[0].topic, 0, len(written_late), 1, b"\xc1")
    found = report_of(spark, [*written_late, unreadable])
    assert found.sections == whole.sections
    assert found.totals["unreadable_records"] == 1


def test_a_new_log_has_nothing_to_show(spark: SparkSession) -> None:
    records = shard(encode_record(Genesis(schema=1, shards=1, shard=0)))
    found = report_of(spark, records)
    assert not any(found.sections.values())
    assert found.totals["commands"] == 0


@pytest.mark.parametrize("text", ["", "1", "1:2", "a:1-2", "1:5-4", "1:1-2,1:3-4", "1:1-2,"])
def test_offsets_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write SHARD|before it begins|twice"):
        parse_offsets(text)


def test_offsets_are_written_as_they_are_read() -> None:
    parts = (ShardPart(0, 3, 9), ShardPart(1, 4, 4), ShardPart(2, 0, 1))
    assert written(parts) == "0:3-8,2:0-0"
    assert parse_offsets(written(parts)) == {0: (3, 8), 2: (0, 0)}
