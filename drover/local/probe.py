"""Check whether a broker or a ZooKeeper serves, in its own protocol over a raw socket.

This package must not import a Kafka client; a single Metadata request shows which brokers a broker knows.
"""

import asyncio
import ssl
import struct

from drover.local.layout import HOST
from drover.time_limits import time_limit

TIMEOUT_S = 2.0
# Over TLS the other side must confirm the end of a connection; asyncio would wait 30 s for a hanging one.
CLOSE_TIMEOUT_S = 0.2
METADATA_KEY, METADATA_VERSION, CORRELATION_ID = 3, 1, 1


async def accepts_connections(port: int) -> bool:
    """Whether a process listens on the port."""
    try:
        async with time_limit(TIMEOUT_S):
            _, writer = await asyncio.open_connection(HOST, port)
    except (OSError, TimeoutError):
        return False
    await _close(writer)
    return True


async def known_brokers(port: int, context: ssl.SSLContext | None = None) -> frozenset[int]:
    """Return the ids of the brokers in the Metadata of the broker on this port; empty if it does not answer.

    Connects over TLS if `context` is given.
    """
    answer = await _exchange(port, metadata_request(), context)
    return frozenset() if answer is None else parse_brokers(answer)


async def zookeeper_serves(port: int) -> bool:
    """Whether the ZooKeeper on this port answers requests."""
    try:
        async with time_limit(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                writer.write(b"srvr")
                answer = await reader.read(1 << 14)
            finally:
                await _close(writer)
    except (OSError, TimeoutError):
        return False
    return b"Mode:" in answer


def metadata_request() -> bytes:
    """Return a Metadata request (version 1) for no topics, with its length in front."""
    client_id = b"drover-local"
    header = struct.pack(">hhih", METADATA_KEY, METADATA_VERSION, CORRELATION_ID, len(client_id)) + client_id
    body = header + struct.pack(">i", 0)
    return struct.pack(">i", len(body)) + body


def parse_brokers(answer: bytes) -> frozenset[int]:
    """Return the broker ids of a Metadata answer (version 1, without its length)."""
    (count,) = struct.unpack_from(">i", answer, 4)
    offset = 8
    ids = set()
    for _ in range(count):
        broker, host_length = struct.unpack_from(">ih", answer, offset)
        offset += 6 + host_length + 4
        (rack_length,) = struct.unpack_from(">h", answer, offset)
        offset += 2 + max(rack_length, 0)
        ids.add(broker)
    return frozenset(ids)


async def _exchange(port: int, request: bytes, context: ssl.SSLContext | None) -> bytes | None:
    try:
        async with time_limit(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(HOST, port, ssl=context)
            try:
                writer.write(request)
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                return await reader.readexactly(length)
            finally:
                await _close(writer)
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return None


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        async with time_limit(CLOSE_TIMEOUT_S):
            await writer.wait_closed()
    except TimeoutError:
        writer.transport.abort()
    except OSError:
        return  # the other side closed first
