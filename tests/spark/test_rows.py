"""Flat rows: one for each record, outcome, refusal, event and sample, and nothing that stops a reader."""

from typing import Any

import msgpack
import pytest
from msgspec.structs import replace

from events.base import Event
from events.codec import encode_progress, encode_record
from events.partitions import PartitionReference
from events.records import Batch, Outcome
from events.waiting import CommandAdvanced, CommandBegun, PartitionRun
from spark.rows import COLUMNS, LOG, PLACE, SAMPLES, Source, as_documents, rows_of
from tests.events.progress_samples import PROGRESS
from tests.events.samples import EVENTS, RECORDS, TOKEN, batch_of

PLACE_IN_LOG = Source(LOG, 3, 17, 1_790_000_000_500)
PLACE_IN_SAMPLES = Source(SAMPLES, 1, 4, 1_790_000_000_600)


def documents(payload: bytes | None, source: Source = PLACE_IN_LOG) -> list[dict[str, Any]]:
    return as_documents(list(rows_of(source, payload)))


# What no table and no audit asks for, and what has another shape in the row.
NOT_IN_ROWS = {
    *("add", "adopted", "allow_drover_topics", "before_cancel", "expected_kafka_cluster_id", "found"),
    *("found_kafka_cluster_id", "kafka_cluster_id", "max_moves_per_broker", "max_partitions_in_flight"),
    *(
        "max_replicas_per_step",
        "mends_by_itself",
        "more",
        "out_of_sync",
        "changed",
        "reset",
        "payload",
        "rates",
        "remove",
        "removing",
    ),
    *("decided", "gone", "left", "part", "withholds", "headers"),
    *("allow_replication_factor_change", "partitions"),
    *("again", "destination", "held_off", "missing", "plans", "stepping", "until_withdrawn"),
    *("healing", "seen", "away_ms", "choice", "heal", "number", "brokers", "chunks", "bytes", "chunk"),
    *("assignments", "count", "skipped", "healed", "cancelled", "failed", "dropped", "leaves_rest", "broker"),
    *("max_leader_movements", "lazy_leadership", "balances_after_return", "entries", "topics", "elected", "left"),
    *("current", "brokers"),
    *("returned_at_ms", "topic_id", "adding", "offset", "topic", "completed", "rolled_back", "withdrawn"),
}


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_has_a_row_with_its_tag_and_its_place(name: str) -> None:
    event = EVENTS[name]
    batch = batch_of(event)
    own, row = documents(encode_record(batch))
    assert (own["entry"], row["entry"], row["tag"]) == ("batch", "event", type(event).__struct_config__.tag)
    assert (row["shard"], row["offset"], row["index"], row["appended_ms"]) == (3, 17, 0, 1_790_000_000_500)
    assert (row["token"], row["epoch"], row["sequence"]) == (batch.token, batch.epoch, batch.sequence)
    assert row["cluster"] == event.cluster


@pytest.mark.parametrize("name", EVENTS)
def test_no_field_of_an_event_is_left_out_unless_it_is_named_here(name: str) -> None:
    """A field that is added to an event shows up here: give it a column, or name it."""
    event = EVENTS[name]
    assert isinstance(event, Event)
    (_, row) = documents(encode_record(batch_of(event)))
    told = {str(value) for value in row.values()} | {str(tuple(value)) for value in row.values() if _is_list(value)}
    left_out = {
        field
        for field in event.__struct_fields__
        if str(getattr(event, field)) not in told and getattr(event, field) not in (None, (), "", False, 0)
    }
    assert left_out <= NOT_IN_ROWS


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def test_a_further_part_of_an_outcome_is_told_from_the_first() -> None:
    (first,) = [row for row in documents(encode_record(large(1))) if row["entry"] == "outcome"]
    assert (first["verdict"], first["id"]) == ("accepted", "away")
    further, repeated = (row for row in documents(encode_record(large(2))) if row["entry"] == "outcome")
    assert (further["verdict"], repeated["verdict"]) == ("part", "duplicate")


def large(part: int) -> Batch:
    """A record of a command that is decided in two; with the second part the same command arrives once more."""
    outcome = Outcome(
        id="away",
        cluster="local",
        type="cancel",
        by="ann",
        reason="r",
        topic="drover.cancel",
        offset=1,
        verdict="accepted",
        accepted=(PartitionReference("orders", part),),
        more=part == 1,
    )
    if part == 1:
        begun = CommandBegun(
            cluster="local",
            id="away",
            payload=b"",
            topic="drover.cancel",
            offset=1,
            left=(PartitionRun("orders", (2,)),),
            part=1,
        )
        return replace(batch_of(begun), outcomes=(outcome,))
    repeated = replace(outcome, verdict="duplicate", accepted=())
    advanced = CommandAdvanced(cluster="local", id="away", decided=1)
    return replace(batch_of(advanced), outcomes=(outcome, repeated))


def test_a_batch_gives_its_outcomes_refusals_and_events_under_one_place() -> None:
    batch = RECORDS["batch-with-everything"]
    assert isinstance(batch, Batch)
    rows = documents(encode_record(batch))
    assert [row["entry"] for row in rows] == ["batch", "outcome", "refusal", *["event"] * len(batch.events)]
    _, outcome, refusal, *_ = rows
    assert (outcome["tag"], outcome["verdict"], outcome["id"]) == ("alter", "accepted", batch.outcomes[0].id)
    assert outcome["accepted"] == [(one.topic, one.partition) for one in batch.outcomes[0].accepted]
    assert (refusal["tag"], refusal["by"]) == (batch.outcomes[0].refusals[0].code, batch.outcomes[0].by)


def test_an_acquire_and_a_genesis_have_a_row_each() -> None:
    (acquire,) = documents(encode_record(RECORDS["acquire"]))
    assert (acquire["entry"], acquire["epoch"], acquire["token"]) == ("acquire", 3, TOKEN)
    (genesis,) = documents(encode_record(RECORDS["genesis"]))
    assert genesis["entry"] == "genesis"


def test_a_sample_tells_the_bytes_of_each_replica_that_is_added() -> None:
    (row,) = documents(encode_progress(PROGRESS["progress"]), PLACE_IN_SAMPLES)
    assert (row["entry"], row["bytes_done"], row["bytes_total"], row["adding"]) == (
        "sample",
        524_288,
        1_048_576,
        [(4, 524_288)],
    )


def test_how_far_a_projector_is_is_no_sample_of_a_move() -> None:
    (row,) = documents(encode_progress(PROGRESS["projection"]), PLACE_IN_SAMPLES)
    assert (row["entry"], row["cluster"]) == ("projection", "local")
    assert "topic" not in row


@pytest.mark.parametrize("payload", [None, b"", b"\xc1", b"{}", msgpack.packb({"kind": "later", "schema": 1})])
@pytest.mark.parametrize("source", [PLACE_IN_LOG, PLACE_IN_SAMPLES], ids=["log", "samples"])
def test_what_cannot_be_read_is_one_row_that_says_why(payload: bytes | None, source: Source) -> None:
    (row,) = documents(payload, source)
    assert row["entry"] == "undecodable"
    assert row["error"]
    assert (row["source"], row["offset"]) == (source.source, source.offset)


def test_a_field_of_a_newer_drover_is_ignored() -> None:
    batch = msgpack.unpackb(encode_record(batch_of(EVENTS["reassignment-queued"])))
    batch["added-later"] = 1
    batch["events"][0]["added-later"] = {"a": [1]}
    _, row = documents(msgpack.packb(batch))
    assert row["tag"] == "reassignment-queued"


def test_an_event_of_a_newer_drover_makes_its_record_undecodable_and_no_other() -> None:
    batch = msgpack.unpackb(encode_record(batch_of(EVENTS["reassignment-queued"])))
    batch["events"][0]["type"] = "invented-later"
    (row,) = documents(msgpack.packb(batch))
    assert row["entry"] == "undecodable"


def test_every_column_says_what_it_means_and_has_a_name_of_its_own() -> None:
    assert len(PLACE) == len(COLUMNS)
    assert all(column.meaning for column in COLUMNS)
