"""Batches of consumed records: Faust handles up to a hundred records of a partition as one message."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from aiokafka.structs import ConsumerRecord
from faust.types import TP, ConsumerMessage

# A batch is full at this many records, or once their values reach this many bytes: the event loop then serves others.
RECORDS_TOGETHER = 100
BYTES_TOGETHER = 64 * 1024


# Kafka allows a record, and a header, whose value is null.
Record: TypeAlias = ConsumerRecord[bytes, bytes]
Records: TypeAlias = tuple[Record, ...]


class Delivered(ConsumerMessage):
    """A batch of records of one partition, in offset order. Faust sees one message with the offset of the last record.

    So it checks assignment and flow control, advances its read position and yields to the event loop once per batch.
    """

    records: Records


def delivered(partition: TP, records: Records, generation: int) -> Delivered:
    """Wrap a batch of at least one record into a message of this group generation."""
    last = records[-1]
    message = Delivered(
        topic=partition.topic,
        partition=partition.partition,
        offset=last.offset,
        timestamp=last.timestamp / 1000,
        timestamp_type=last.timestamp_type,
        headers=None,
        key=None,
        value=None,
        checksum=None,
        tp=partition,
        generation_id=generation,
    )
    message.records = records
    return message


def in_groups(records: Iterable[Record]) -> Iterator[Records]:
    """Split the records fetched from one partition into batches, in order; see the limits above."""
    group: list[Record] = []
    size = 0
    for record in records:
        group.append(record)
        size += len(record.value or b"")
        if len(group) == RECORDS_TOGETHER or size >= BYTES_TOGETHER:
            yield tuple(group)
            group, size = [], 0
    if group:
        yield tuple(group)
