"""Which connections a bounded server keeps, which give way, and what it logs when descriptors run out."""

import asyncio
import errno
import gc
import logging
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from unittest.mock import Mock

import pytest
import structlog
from aiohttp import web

from drover.local import wait_until
from drover.service.connections import READ_BYTES, Connections, log_refusals_rarely, places

BODY = b"ok\n"
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Served:
    """A bounded server that answers when the test lets it."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.port = 0
        self.answering = 0
        self.streams: list[Stream] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def answer(self, _: web.BaseRequest) -> web.Response:
        self.answering += 1
        await self.may_answer.wait()
        return web.Response(body=BODY)

    async def connect(self, sent: bytes = b"") -> Stream:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(sent)
        self.streams.append((reader, writer))
        return reader, writer

    async def is_answered(self, stream: Stream) -> bool:
        with suppress(ConnectionResetError):
            head = await stream[0].readuntil(b"\r\n\r\n")
            return head.startswith(b"HTTP/1.1 200 ") and await stream[0].readexactly(len(BODY)) == BODY
        return False


@asynccontextmanager
async def served(connections: Connections) -> AsyncIterator[Served]:
    served = Served(connections)
    server = web.Server(served.answer, access_log=None)
    connections.watch(server)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    served.port = runner.addresses[0][1]
    try:
        yield served
    finally:
        served.may_answer.set()
        for _, writer in served.streams:
            writer.close()
            with suppress(ConnectionResetError):
                await writer.wait_closed()
        await runner.cleanup()


async def is_closed(stream: Stream) -> bool:
    """Wait until the server has closed a connection."""
    with suppress(ConnectionResetError):
        return await stream[0].read() == b""
    return True


async def test_the_connection_that_has_been_silent_longest_gives_way_to_a_new_one() -> None:
    async with served(Connections(2, 2)) as serving:
        first, second = await serving.connect(), await serving.connect()
        await wait_until(lambda: len(serving.connections) == 2, what="both are taken")
        first[1].write(REQUEST)
        assert await serving.is_answered(first)
        third = await serving.connect(REQUEST)
        # The first has asked since the second was silent.
        assert await is_closed(second)
        assert await serving.is_answered(third)
        first[1].write(REQUEST)
        assert await serving.is_answered(first)


async def test_a_connection_whose_request_is_being_answered_keeps_its_place() -> None:
    async with served(Connections(1, 1)) as serving:
        serving.may_answer.clear()
        first = await serving.connect(REQUEST)
        await wait_until(lambda: serving.answering == 1, what="the request is being answered")
        refused = await serving.connect(REQUEST)
        assert await is_closed(refused)
        serving.may_answer.set()
        assert await serving.is_answered(first)


@pytest.mark.parametrize("is_proxy", [False, True])
async def test_one_address_has_only_so_many_unless_it_is_a_proxy(is_proxy: bool) -> None:
    async with served(Connections(9, 1, is_proxy=lambda peer: is_proxy and peer == "127.0.0.1")) as serving:
        serving.may_answer.clear()
        await serving.connect(REQUEST)
        await wait_until(lambda: serving.answering == 1, what="the first is being answered")
        second = await serving.connect(REQUEST)
        if is_proxy:
            await wait_until(lambda: serving.answering == 2, what="the second is being answered, too")
        else:
            assert await is_closed(second)


async def test_a_refused_connection_is_no_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio logs the end of each task of aiohttp's that fails, once it is collected."""
    async with served(Connections(1, 1)) as serving:
        serving.may_answer.clear()
        await serving.connect(REQUEST)
        await wait_until(lambda: serving.answering == 1, what="the request is being answered")
        for _ in range(3):
            assert await is_closed(await serving.connect(REQUEST))
        gc.collect()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_little_of_what_a_client_sends_is_read_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nonsense is kept with the error that it caused, for each of a thousand clients."""
    sizes: list[int] = []
    monkeypatch.setattr(web.RequestHandler, "data_received", lambda _, data: sizes.append(len(data)))
    async with served(Connections(1, 1)) as serving:
        await serving.connect(bytes(1024 * 1024))
        await wait_until(lambda: sum(sizes) == 1024 * 1024, what="all is read")
    assert max(sizes) <= READ_BYTES


@pytest.mark.parametrize("beginning", [b"", b"GET / HTTP/1.1\r\nHo"], ids=["silent", "half a head"])
async def test_who_keeps_the_head_of_a_request_back_is_cut_off(beginning: bytes) -> None:
    async with served(Connections(9, 9, head_timeout_s=0.1)) as serving:
        stream = await serving.connect(beginning)
        assert await is_closed(stream)
        assert len(serving.connections) == 0


def test_half_of_the_descriptors_are_left_for_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    assert (places(1500), places(64)) == (128, 64)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert places(1500) == 1500


async def test_connections_that_no_descriptor_is_free_for_are_named_once_a_minute() -> None:
    loop = asyncio.get_running_loop()
    log_refusals_rarely(loop)
    others = Mock()
    try:
        with structlog.testing.capture_logs() as logged, pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "default_exception_handler", others)
            for _ in range(100):
                loop.call_exception_handler(
                    {
                        "message": "socket.accept() out of system resource",
                        "exception": OSError(errno.EMFILE, "Too many open files"),
                    }
                )
            loop.call_exception_handler({"message": "something else"})
    finally:
        loop.set_exception_handler(None)
    assert [entry["event"] for entry in logged] == ["connections are refused: the process has no free file descriptor"]
    others.assert_called_once_with({"message": "something else"})


async def test_asyncio_still_says_it_in_these_words() -> None:
    """`log_refusals_rarely` knows a refused connection by the message of asyncio's own handler."""
    messages: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: messages.append(context["message"]))
    listener = Mock(spec=socket.socket)
    listener.accept.side_effect = OSError(errno.EMFILE, "Too many open files")
    try:
        with pytest.MonkeyPatch.context() as patch:
            # It would listen again after a second.
            patch.setattr(loop, "call_later", Mock())
            patch.setattr(loop, "_remove_reader", Mock())
            loop._accept_connection(asyncio.Protocol, listener, backlog=1)  # type: ignore[attr-defined] # as it listens
    finally:
        loop.set_exception_handler(None)
    assert messages == ["socket.accept() out of system resource"]
