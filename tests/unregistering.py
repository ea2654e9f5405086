"""Kafka's UnregisterBroker, which kafka-python does not know: `kafka-cluster.sh unregister` sends the same."""

import asyncio
import struct

API_KEY, VERSION, CORRELATION = 64, 0, 7


async def unregister(bootstrap: str, broker: int) -> None:
    """Remove the registration of a broker that is not alive; any broker of the cluster takes the request."""
    reader, writer = await _connect(bootstrap)
    try:
        # Request header 2: key, version, correlation id, no client id, no tags. Body: the broker, no tags.
        request = struct.pack(">hhihbib", API_KEY, VERSION, CORRELATION, -1, 0, broker, 0)
        writer.write(struct.pack(">i", len(request)) + request)
        await writer.drain()
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        # Response header 1: correlation id, no tags. Body: throttle time, error code, message.
        correlation, _, _, code = struct.unpack_from(">ibih", await reader.readexactly(size))
    finally:
        writer.close()
        await writer.wait_closed()
    assert (correlation, code) == (CORRELATION, 0), f"broker {broker} is not unregistered: Kafka error {code}"


async def _connect(bootstrap: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first broker that listens: the others are dead."""
    for address in bootstrap.split(","):
        host, port = address.rsplit(":", 1)
        try:
            return await asyncio.open_connection(host, int(port))
        except ConnectionRefusedError:
            continue
    raise AssertionError(f"no broker of {bootstrap} listens")
