"""Records of one partition on their way through Faust: some of them in one message."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from faust.types import TP, ConsumerMessage

# A message holds no more records than this, and none after so many bytes, so that others run in between.
RECORDS_TOGETHER = 100
BYTES_TOGETHER = 64 * 1024


class Record(Protocol):
    """What aiokafka fetched, as far as it is used; Kafka allows a record and a header without a value."""

    @property
    def offset(self) -> int:
        """Its place in the partition."""
        ...

    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch; of the append, since the command topics say so."""
        ...

    @property
    def timestamp_type(self) -> int:
        """1: the time of the append."""
        ...

    @property
    def value(self) -> bytes | None:
        """The payload."""
        ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]:
        """Names, of which each may occur again, with values."""
        ...


Records = tuple[Record, ...]


class Delivered(ConsumerMessage):
    """Some records of one partition, in the order of their offsets; to Faust, one message at the offset of the last.

    Faust then checks the assignment and its flow once for them, reads on behind the last one, and lets others run.
    """

    records: Records


def delivered(partition: TP, records: Records, generation: int) -> Delivered:
    """Make one message of some records, at least one."""
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
    """Divide what was fetched of one partition into what one message holds."""
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
