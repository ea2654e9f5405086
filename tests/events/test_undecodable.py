"""Nobody reads what cannot be read, and nobody ends because of it: each reader says what it says of any nonsense."""

import msgspec
import pytest

from drover.cli.model import parse_model
from drover.cli.plan_file import parse_plan
from drover.client.time_travel import _Glance, _glanced
from drover.client.views.dead_letter_rows import dead_letter, shown
from drover.errors import ConfigurationError
from drover.events.codec import UndecodableError, decode_progress, decode_record, encode_progress, encode_record
from drover.events.progress import WorkerSample
from drover.events.records import SCHEMA_VERSION, Acquire
from drover.events.undecodable import UNDECODABLE
from drover.fold.snapshot import SNAPSHOT_SCHEMA, Chunk
from drover.fold.snapshot import decode_record as decode_snapshot
from drover.journal.reader import LogRecord
from drover.projections.commands import answers
from drover.projections.ownership import REASSIGNMENTS
from drover.projections.position import decode_position
from drover.projections.reassignment_document import is_another
from drover.projections.store import Examined
from drover.spark.audit.kept import decoded
from drover.spark.folding.samples import SamplesPart
from tests.events.undecodable import DEEP_JSON, EACH_JSON, EACH_SPOIL, TEXT, Spoil, with_deep_field, with_wrong_text

NODE = Examined(b"", version=0, czxid=7, mzxid=8, mtime_ms=9)
SAMPLE = encode_progress(WorkerSample(worker=TEXT, at_ms=1, shards=()))
ACQUIRE = encode_record(Acquire(schema=SCHEMA_VERSION, epoch=9, token=b"stranger", owner=TEXT, group="g", generation=1))


def chunk(since: int) -> bytes:
    return msgspec.msgpack.encode(Chunk(schema=SNAPSHOT_SCHEMA, slot=0, number=0, since=since, data=b""))


@EACH_SPOIL
def test_a_record_of_the_log(spoil: Spoil) -> None:
    with pytest.raises(UndecodableError):
        decode_record(spoil(ACQUIRE))


@EACH_SPOIL
def test_a_sample(spoil: Spoil) -> None:
    assert decode_progress(spoil(SAMPLE)) is None


@EACH_SPOIL
def test_a_sample_that_spark_folds(spoil: Spoil) -> None:
    part = SamplesPart(0, None)
    part.take(0, 1, spoil(SAMPLE))
    assert b"sample not understood" in b"".join(contribution.rows for contribution in part.finish())


def test_a_record_of_the_snapshots() -> None:
    assert decode_snapshot(chunk(since=5)) is not None
    assert decode_snapshot(with_deep_field(chunk(since=5))) is None
    assert decode_snapshot(with_wrong_text(msgspec.msgpack.encode({"kind": "manifest", "owner": TEXT}))) is None


def test_a_snapshot_that_begins_before_its_topic() -> None:
    assert decode_snapshot(chunk(since=-1)) is None


def test_a_record_that_is_glanced_at_on_the_way_to_a_moment() -> None:
    assert _glanced(with_deep_field(ACQUIRE)) == _Glance()


def test_a_shard_that_was_kept_for_later_audits() -> None:
    assert decoded(with_deep_field(b"\x80")) is None


@EACH_JSON
def test_a_position_in_zookeeper(data: bytes) -> None:
    assert decode_position(data) is None


@EACH_JSON
def test_an_answer_in_zookeeper(data: bytes) -> None:
    assert not answers(data, NODE)


def test_a_reassignment_in_zookeeper() -> None:
    assert is_another(f"{REASSIGNMENTS}/orders/0", DEEP_JSON, b"{}")


def test_a_plan_and_a_model_in_a_file() -> None:
    with pytest.raises(ConfigurationError):
        parse_plan(DEEP_JSON.decode(), "plan.json")
    with pytest.raises(ConfigurationError):
        parse_model(DEEP_JSON.decode(), "model.json")


def test_a_dead_letter_of_any_depth() -> None:
    assert shown(b"\x91" * 10 + b"\xc0")[:1] == "["
    # The msgpack package may read deeper than `json` writes; how deep each goes is Python's affair.
    assert {shown(b"\x91" * depth + b"\xc0")[:1] for depth in (1020, 5000)} <= {"[", "k"}


def test_a_dead_letter_whose_place_has_thousands_of_digits() -> None:
    letter = dead_letter(LogRecord(0, 0, 0, b"", (("__connect.errors.offset", b"9" * 5000),)))
    assert letter.source_offset is None


@pytest.mark.parametrize("payload", [b"\xa1\xff", b"\x91" * 5000, b"\xc1"], ids=["text", "depth", "nonsense"])
def test_what_msgspec_raises_is_all_there(payload: bytes) -> None:
    with pytest.raises(UNDECODABLE):
        msgspec.msgpack.decode(payload)
