"""Fetched batches are read to the end, also with header names that are not UTF-8."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka.consumer import fetcher
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import ConsumerRecord, TopicPartition

from drover.journal.consumer import Fetched
from tests.journal.batches import CODECS, SPOILT, batch_of

VALUES = [b"a", b"b", b"c", b"d"]
WHERE = TopicPartition("drover.cancel", 0)


def unpacked(records: Any, first: int = 0) -> Iterator[ConsumerRecord[bytes, bytes]]:
    """Read what a broker answered with as aiokafka's fetcher does."""
    yield from fetcher.PartitionRecords(WHERE, records, [], first, None, None, True, fetcher.READ_COMMITTED)


def names(record: ConsumerRecord[bytes, bytes]) -> list[str]:
    return [name for name, _ in record.headers]


def test_aiokafka_alone_reads_no_name_that_is_no_utf_8() -> None:
    # Once it does, `Fetched` can go.
    with pytest.raises(UnicodeDecodeError):
        list(unpacked(MemoryRecords(batch_of(VALUES, [2]))))


@pytest.mark.parametrize("codec", [None, *CODECS])
@pytest.mark.parametrize("spoilt", [[0], [2], [3], [0, 1, 2, 3], []], ids=str)
def test_every_record_of_a_batch_is_read_once_and_in_order(codec: str | None, spoilt: list[int]) -> None:
    found = list(unpacked(Fetched(batch_of(VALUES, spoilt, first=7, codec=codec)), 7))
    assert [record.offset for record in found] == [7, 8, 9, 10]
    assert [record.value for record in found] == VALUES
    assert [record.timestamp for record in found] == [1000, 1001, 1002, 1003]
    for place, record in enumerate(found):
        assert record.headers[0] == ("before", b"1")
        assert record.headers[1] == (SPOILT if place in spoilt else "whole", None)
        assert record.headers[2] == ("after", b"2")


def test_the_batches_before_and_after_it_are_read_too() -> None:
    content = batch_of(VALUES, []) + batch_of(VALUES, [1, 3], first=4) + batch_of(VALUES, [], first=8)
    records = fetcher.PartitionRecords(WHERE, Fetched(content), [], 0, None, None, True, fetcher.READ_COMMITTED)
    assert [record.offset for record in records] == list(range(12))
    assert records.next_fetch_offset == 12


def test_reading_goes_on_in_the_middle_of_such_a_batch() -> None:
    found = list(unpacked(Fetched(batch_of(VALUES, [1], first=4)), 6))
    assert [(record.offset, names(record)[1]) for record in found] == [(6, "whole"), (7, "whole")]


def test_what_was_cut_off_is_left_for_the_next_fetch() -> None:
    content = batch_of(VALUES, [1]) + batch_of(VALUES, [], first=4)[:-1]
    fetched = Fetched(content)
    assert fetched.size_in_bytes() == len(content)
    assert [record.offset for record in unpacked(fetched)] == [0, 1, 2, 3]
    assert not fetched.has_next()


def test_a_batch_with_a_wrong_checksum_is_still_refused() -> None:
    content = bytearray(batch_of(VALUES, [1]))
    content[-1] ^= 1
    with pytest.raises(fetcher.Errors.CorruptRecordException):
        list(unpacked(Fetched(bytes(content))))


def test_the_fetcher_still_makes_its_records_where_they_are_replaced() -> None:
    assert "records = MemoryRecords(part_data[-1])" in inspect.getsource(fetcher.Fetcher)
