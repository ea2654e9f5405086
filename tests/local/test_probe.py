"""The one request that tells whom a broker knows, against recorded bytes and against servers that do not answer."""

import asyncio
import struct
from collections.abc import AsyncIterator

import pytest

from drover.local import probe
from drover.local.layout import HOST

# Metadata version 1: correlation id, brokers (id, host, port, rack), controller id, no topics.
ANSWER = (
    struct.pack(">ii", 1, 2)
    + struct.pack(">ih", 1, 9) + b"127.0.0.1" + struct.pack(">ih", 21001, 2) + b"r1"
    + struct.pack(">ih", 4, 9) + b"127.0.0.1" + struct.pack(">ih", 21004, -1)
    + struct.pack(">ii", 100, 0)
)  # fmt: skip


@pytest.fixture
async def silent_port() -> AsyncIterator[int]:
    """A server that takes connections and never says a word, as a paused broker does."""
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: writers.append(writer), HOST, 0)
    yield server.sockets[0].getsockname()[1]
    for writer in writers:
        writer.close()
        await writer.wait_closed()
    server.close()
    await server.wait_closed()


def test_brokers_are_read_with_and_without_a_rack() -> None:
    assert probe.parse_brokers(ANSWER) == frozenset({1, 4})


def test_the_request_is_framed_by_its_length() -> None:
    request = probe.metadata_request()
    assert struct.unpack_from(">ihh", request) == (len(request) - 4, 3, 1)


async def test_a_port_nobody_listens_on_serves_nothing() -> None:
    assert not await probe.accepts_connections(1)
    assert await probe.known_brokers(1) == frozenset()
    assert not await probe.zookeeper_serves(1)


async def test_a_broker_that_does_not_answer_knows_nobody(silent_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await probe.accepts_connections(silent_port)
    monkeypatch.setattr(probe, "TIMEOUT_S", 0.05)
    assert await probe.known_brokers(silent_port) == frozenset()
    assert not await probe.zookeeper_serves(silent_port)


class HangsOverTls:
    """Both ends of a connection to a server that hangs: it neither answers nor confirms the end, which TLS asks for."""

    def __init__(self) -> None:
        self.transport = self
        self.is_aborted = False

    async def readexactly(self, _: int) -> bytes:
        return bytes(await asyncio.Event().wait())

    def write(self, _: bytes) -> None:
        """Take it."""

    def close(self) -> None:
        """Say to the other side that this is the end."""

    async def wait_closed(self) -> None:
        await asyncio.Event().wait()

    def abort(self) -> None:
        self.is_aborted = True


async def test_a_broker_that_hangs_over_tls_is_asked_no_longer_than_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It kept whoever asked for 30 s more, which asyncio waits for the end of a TLS connection to be confirmed."""
    connection = HangsOverTls()

    async def open_connection(*_: object, **__: object) -> tuple[HangsOverTls, HangsOverTls]:
        return connection, connection

    monkeypatch.setattr(asyncio, "open_connection", open_connection)
    monkeypatch.setattr(probe, "TIMEOUT_S", 0.05)
    async with asyncio.timeout(20):
        assert await probe.known_brokers(1) == frozenset()
    assert connection.is_aborted
