"""Who looks at a stream: how many at a time, from when they count, and how an answer ends that cannot go on."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from drover.local import wait_until
from drover.service.connections import Occupants
from drover.web import channels as web_channels
from drover.web import guards
from drover.web import server as web_server
from drover.web.page_server import listening
from drover.web.page_state import PageState
from drover.web.past import Past
from drover.web.server import MAX_VIEWERS, Server
from tests.web.scene import Scene
from tests.web.showing import showing


@asynccontextmanager
async def reading(page: PageState, viewers: Occupants | None = None) -> AsyncIterator[str]:
    """Serve a page whose log is still being read, until it is begun; yields the address of its stream."""
    past = Past(lambda *_: asyncio.sleep(0))  # type: ignore[arg-type]  # nobody travels
    server = Server(page, past, "test", viewers=Occupants(MAX_VIEWERS) if viewers is None else viewers)
    async with listening(server, "127.0.0.1", 0) as port:
        yield f"http://127.0.0.1:{port}/api/stream"


async def seen(response: aiohttp.ClientResponse, name: str) -> None:
    """Read up to an event of that name."""
    async with asyncio.timeout(60):
        while (await response.content.readline()).decode().rstrip("\n") != f"event: {name}":
            assert not response.content.at_eof(), f"the stream ended before {name}"


async def has_ended(response: aiohttp.ClientResponse) -> bool:
    """Whether a stream ends, in order or cut off."""
    async with asyncio.timeout(60):
        try:
            await response.read()
        except aiohttp.ClientError:
            return True
        return response.content.at_eof()


@pytest.mark.parametrize("is_read", [False, True], ids=["while the log is being read", "afterwards"])
async def test_where_all_places_are_taken_the_viewer_who_came_first_gives_way(is_read: bool) -> None:
    page, scene = PageState(), Scene()
    if is_read:
        page.begin(scene.view)
    event = "snapshot" if is_read else "beat"
    viewers = Occupants(2)
    async with reading(page, viewers) as stream, aiohttp.ClientSession() as http, AsyncExitStack() as stack:
        streams = []
        for _ in range(3):
            streams.append(await stack.enter_async_context(http.get(stream)))
            await seen(streams[-1], event)
        assert await has_ended(streams[0])
        if not is_read:
            page.begin(scene.view)
            await seen(streams[1], "snapshot")
        await wait_until(lambda: len(viewers) == 2, what="the others stay")


async def test_a_stream_ends_when_its_channel_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_channels, "MAX_CHANNELS", 1)
    page, scene = PageState(), Scene()
    page.begin(scene.view)
    async with reading(page) as stream, aiohttp.ClientSession() as http, http.get(f"{stream}?q=a") as first:
        await seen(first, "snapshot")
        async with http.get(f"{stream}?q=b") as second:
            await seen(second, "snapshot")
            assert await has_ended(first)


async def test_only_get_opens_a_stream() -> None:
    """The answer to HEAD has no body, and would never end."""
    async with showing(Scene()) as shown, aiohttp.ClientSession() as http:
        async with http.head(f"{shown.address}/api/stream") as response:
            assert response.status == 405
        assert len(shown.viewers) == 0
        async with http.head(f"{shown.address}/api/document") as response:
            assert response.status == 200


# More than both ends of a connection keep for a client that does not read.
LARGE = {"text": "x" * 16 * 1024 * 1024}


async def asked_and_left_unread(port: int, path: str) -> socket.socket:
    """Ask for something, and read nothing of it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return client


async def read_to_the_end(client: socket.socket) -> int:
    """Count the bytes that come until the server has closed the connection."""
    count = 0
    async with asyncio.timeout(60):
        while more := await asyncio.get_running_loop().sock_recv(client, 1024 * 1024):
            count += len(more)
    return count


@pytest.mark.parametrize("path", ["/api/stream", "/api/document"])
async def test_who_reads_nothing_of_what_is_sent_is_cut_off(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody else would be served any more once there are so many of them as there may be viewers, or connections."""
    is_cut, cut_when_idle = asyncio.Event(), guards._cut_when_idle

    async def noted(request: web.Request) -> None:
        await cut_when_idle(request)
        is_cut.set()

    monkeypatch.setattr(guards, "_cut_when_idle", noted)
    monkeypatch.setattr(guards, "TAKING_S", 0.3)
    monkeypatch.setattr(web_server, "document", lambda *_: LARGE)
    async with showing(Scene()) as shown:
        shown.page.channels.build = lambda _: LARGE
        with await asked_and_left_unread(shown.port, path) as client:
            async with asyncio.timeout(60):
                await is_cut.wait()
            await wait_until(lambda: len(shown.viewers) == 0, what="the viewer to be gone")
            assert 0 < await read_to_the_end(client) < len(LARGE["text"])
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


async def test_who_reads_slowly_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it takes several times as long as a client may take nothing."""
    monkeypatch.setattr(guards, "TAKING_S", 1.0)
    monkeypatch.setattr(web_server, "document", lambda *_: LARGE)
    loop = asyncio.get_running_loop()
    async with showing(Scene()) as shown:
        with await asked_and_left_unread(shown.port, "/api/document?x=") as client:
            began_s, count = loop.time(), 0
            async with asyncio.timeout(60):
                while more := await loop.sock_recv(client, 1024 * 1024):
                    count += len(more)
                    # As slow as a link that needs three seconds for all of it.
                    await asyncio.sleep(max(0.0, began_s + 3 * count / len(LARGE["text"]) - loop.time()))
                    if count > len(LARGE["text"]):
                        break
            assert count > len(LARGE["text"])
            assert loop.time() - began_s >= 3
