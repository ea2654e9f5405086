"""An aiokafka consumer that reads every record that a broker accepts; the only place where consumers are created.

Kafka accepts header names that are not UTF-8, but aiokafka raises an exception in the middle of a fetch, so that a
single such record would stop every reader of its topic for ever. aiokafka has no setting for this, so `new_consumer`
replaces the class with which its fetcher reads the answers of brokers. Only a batch with such a name is read again, by
aiokafka's reader in Python; U+FFFD then replaces each invalid byte.
"""

import struct
from collections.abc import Iterator
from typing import Any, cast

from aiokafka import AIOKafkaConsumer
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint

_LENGTH = struct.Struct(">i")
# A batch begins with its offset and its length; the length counts the bytes after these two.
_LENGTH_AT = 8
_HEAD_BYTES = 12


def new_consumer(**options: Any) -> AIOKafkaConsumer:
    """Create a consumer with these options of aiokafka's."""
    fetcher.MemoryRecords = Fetched
    return AIOKafkaConsumer(**options)


class Fetched:
    """The batches in a broker's answer, with the interface of aiokafka's `MemoryRecords`."""

    def __init__(self, content: bytes) -> None:
        self._content = memoryview(content)
        self._batches = MemoryRecords(content)
        self._place = 0

    def size_in_bytes(self) -> int:
        """Return the size of the answer, including a last batch that was cut off."""
        return cast("int", self._batches.size_in_bytes())

    def has_next(self) -> bool:
        """Whether another complete batch follows."""
        return cast("bool", self._batches.has_next())

    def next_batch(self) -> Any:
        """Return the next batch."""
        batch = self._batches.next_batch()
        begin = self._place
        self._place += _HEAD_BYTES + _LENGTH.unpack_from(self._content, begin + _LENGTH_AT)[0]
        # Control batches come from the broker, and aiokafka reads their record in another way.
        return batch if batch.is_control_batch else _Batch(batch, self._content[begin : self._place])


class _Batch:
    """A batch of aiokafka's whose records can all be read."""

    def __init__(self, batch: Any, content: memoryview) -> None:
        self._batch = batch
        self._content = content

    def __getattr__(self, name: str) -> Any:
        """Delegate to aiokafka's batch."""
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        given = 0
        try:
            for record in self._batch:
                given += 1
                yield record
        except UnicodeDecodeError:
            yield from _rest_of(self._content, given)


def _rest_of(content: memoryview, given: int) -> Iterator[Any]:
    """Read the records of a batch after the first `given` ones."""
    batch: Any = iter(_DefaultRecordBatchPy(content))
    # The reader has no public way to start at a record, or to decode leniently. Its buffer is uncompressed by now.
    place = batch._pos  # noqa: SLF001 - see above
    for _ in range(given):
        length, begin = decode_varint(batch._buffer, place)  # noqa: SLF001 - see above
        place = begin + length
    batch._buffer = _Lenient(batch._buffer)  # noqa: SLF001 - see above
    batch._pos, batch._next_record_index = place, given  # noqa: SLF001 - see above
    return cast("Iterator[Any]", batch)


class _Lenient(bytearray):
    """Bytes whose slices can always be decoded."""

    def __getitem__(self, place: Any) -> Any:
        item = super().__getitem__(place)
        return _Lenient(item) if isinstance(place, slice) else item

    def decode(self, encoding: str = "utf-8", errors: str = "replace") -> str:
        return super().decode(encoding, errors)
