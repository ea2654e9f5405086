"""Numbers that anybody may send as a byte sample: what no table holds changes nothing, and ends no job."""

from pathlib import Path

import pytest
from msgspec import msgpack
from msgspec.structs import asdict

from drover.events.codec import encode_progress
from drover.events.fields import LAST_MS
from drover.events.progress import Progress, ReplicaBytes
from drover.spark.folding.samples import SamplesPart
from drover.spark.merge import Part, part_of
from drover.spark.sinks.port import Applied
from drover.spark.sinks.sqlite import SqliteSink
from drover.spark.tables.row_buffer import MOST
from drover.spark.view import moment
from tests.events.progress_samples import PROGRESS
from tests.spark.kafka_rows import BEGAN_MS
from tests.spark.test_sinks import FIRST, only


def sample(**fields: object) -> bytes:
    found = PROGRESS["progress-with-its-source"]
    assert isinstance(found, Progress)
    return msgpack.encode({"kind": "progress", **asdict(found), **fields})


def folded(*payloads: bytes, appended_ms: int = BEGAN_MS) -> Part:
    part = SamplesPart(0, None)
    for offset, payload in enumerate(payloads):
        part.take(offset, appended_ms + offset, payload)
    return part_of(part.finish())


@pytest.mark.parametrize(
    "fields",
    [
        {"bytes_total": 2**63},
        {"bytes_done": -1},
        {"partition": 2**63},
        {"partition": 2**31},
        {"step": 2**63},
        {"epoch": 2**64 - 1},
        {"leader": 2**63},
        {"leader": -1},
        {"at_ms": 2**63 + 5},
        {"at_ms": -(2**63)},
        {"at_ms": 2**53},
        {"adding": [{"broker": 4, "bytes": 2**63}]},
        {"adding": [{"broker": 2**63, "bytes": 1}]},
    ],
    ids=str,
)
def test_a_sample_with_a_number_that_no_table_holds_is_counted_and_left_out(
    tmp_path: Path, fields: dict[str, object]
) -> None:
    sink = SqliteSink(tmp_path / "tables.sqlite")
    assert sink.apply(FIRST, Applied(0, folded(sample(**fields), sample(partition=1)), 1))
    assert only(sink, "samples")["partition"] == 1
    unreadable = only(sink, "undecodable")
    assert (unreadable["source"], unreadable["records"], unreadable["last_offset"]) == ("samples", 1, 0)
    sink.close()


def test_the_largest_numbers_of_a_sample_are_stored_summed_up_and_shown(tmp_path: Path) -> None:
    adding = (ReplicaBytes(2**31 - 1, MOST),)
    largest = [
        encode_progress(
            Progress(
                cluster="local",
                topic="orders",
                partition=2**31 - 1 - number,
                epoch=MOST,
                at_ms=LAST_MS,
                step=MOST,
                bytes_done=MOST,
                bytes_total=MOST,
                adding=adding,
                leader=2**31 - 1,
            )
        )
        for number in range(3)
    ]
    sink = SqliteSink(tmp_path / "tables.sqlite")
    for number in range(2):
        assert sink.apply(FIRST, Applied(number, folded(*largest, appended_ms=LAST_MS), 1))
    row = only(sink, "brokers")
    assert (row["bytes_in"], row["bytes_out"]) == (MOST, MOST)
    assert {str(moment(one["at_ms"]))[:19] for one in sink.rows("samples")} == {"9999-12-31T23:59:59"}
    assert sink.rows("undecodable") == ()
    sink.close()
