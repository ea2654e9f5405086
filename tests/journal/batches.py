"""Batches of records as a client in another language writes them: names of headers that are not UTF-8."""

import struct
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

# aiokafka writes UTF-8 only: the first name is replaced by the second in the bytes.
_WRITTEN, _WANTED = "to be spoilt", b"\xff\xfe\xfdbe spoilt"
SPOILT = "\ufffd\ufffd\ufffdbe spoilt"
CODECS = {"gzip": (1, gzip_encode), "snappy": (2, snappy_encode), "lz4": (3, lz4_encode), "zstd": (4, zstd_encode)}
_RECORDS = 61


def batch_of(values: Sequence[bytes], spoilt: Sequence[int], *, first: int = 0, codec: str | None = None) -> bytes:
    """Write a batch whose first record has this offset; the records at some places have a header with a bad name."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=2**20,
    )  # fmt: skip
    for place, value in enumerate(values):
        name = _WRITTEN if place in spoilt else "whole"
        builder.append(place, 1000 + place, None, value, [("before", b"1"), (name, None), ("after", b"2")])
    plain = bytes(builder.build())
    head, records = bytearray(plain[:_RECORDS]), plain[_RECORDS:].replace(_WRITTEN.encode(), _WANTED)
    if codec is not None:
        number, encode = CODECS[codec]
        records = encode(records)
        head[22] = number
    head[:12] = struct.pack(">qi", first, _RECORDS - 12 + len(records))
    return _signed(bytes(head) + records)


def _signed(content: bytes) -> bytes:
    return content[:17] + struct.pack(">I", calc_crc32c(content[21:])) + content[21:]


async def send_spoilt(options: dict[str, Any], topic: str, partition: int, value: bytes) -> int:
    """Write a record with such a header to Kafka, and return its offset."""
    producer = AIOKafkaProducer(**options, acks="all")
    await producer.start()
    try:
        batch = producer.create_batch()
        batch.append(timestamp=None, key=b"any", value=value, headers=[(_WRITTEN, b"1")])
        batch._buffer = _signed(bytes(batch._build()).replace(_WRITTEN.encode(), _WANTED))
        written = await producer.send_batch(batch, topic, partition=partition)
        return int((await written).offset)
    finally:
        await producer.stop()
