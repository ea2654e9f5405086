"""What clients who are nobody can do to the page: keep places, send slowly, and ask from other sites."""

import asyncio
import gc
import io
import json
import resource
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import aiohttp
import psutil
import pytest

from drover.client.time_travel import Point
from drover.web import bodies
from drover.web import past as pasts
from drover.web.past import Past, TooManyQuestionsError
from drover.web.surveys import MAX_WAITING, Looking
from tests.client.log import CLUSTER
from tests.web.scene import Scene
from tests.web.showing import Showing, showing

MEMORY_BYTES = 64 * 1024 * 1024
PATIENCE_S = 120.0


async def judging(*_: object) -> Mapping[str, Any]:
    return {"judged": True}


LOOKING = Looking(judging, judging)


@pytest.fixture
def collected() -> Iterator[None]:
    """Garbage is collected as it is in a page's process; the tests collect it rarely."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def memory_bytes() -> int:
    taken: int = psutil.Process().memory_info().rss
    return taken


def head(shown: Showing, path: str, body_bytes: int) -> bytes:
    lines = (
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{shown.port}",
        f"Origin: {shown.address}",
        "Content-Type: application/json",
        f"Content-Length: {body_bytes}",
    )
    return "\r\n".join((*lines, "", "")).encode()


@asynccontextmanager
async def sending(shown: Showing, sent: bytes) -> AsyncIterator[asyncio.StreamReader]:
    """A connection that has sent this, and nothing more while the context is open."""
    reader, writer = await asyncio.open_connection("127.0.0.1", shown.port)
    try:
        writer.write(sent)
        with suppress(ConnectionError):
            await writer.drain()
        yield reader
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def document_of(http: aiohttp.ClientSession, shown: Showing) -> int:
    async with asyncio.timeout(PATIENCE_S), http.get(f"{shown.address}/api/document") as response:
        await response.read()
        return response.status


async def review_of(http: aiohttp.ClientSession, shown: Showing) -> int:
    plan = {"cluster": CLUSTER, "text": json.dumps({"partitions": []})}
    headers = {"Origin": shown.address, "Content-Type": "application/json"}
    body = io.BytesIO(json.dumps(plan).encode())
    async with (
        asyncio.timeout(PATIENCE_S),
        http.post(f"{shown.address}/api/review", data=body, headers=headers) as response,
    ):
        return response.status


@pytest.mark.usefixtures("collected")
async def test_stalled_reviews_keep_nobody_waiting_and_little_memory() -> None:
    async with AsyncExitStack() as stack:
        shown = await stack.enter_async_context(showing(Scene(), looking=LOOKING))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        assert await review_of(http, shown) == 200
        before = memory_bytes()
        # One object: what the clients keep is not meant.
        stalled = head(shown, "/api/review", 8_000_000) + bytes(1024 * 1024)
        for _ in range(90):
            await stack.enter_async_context(sending(shown, stalled))
        assert await review_of(http, shown) == 200
        assert memory_bytes() - before < MEMORY_BYTES


async def test_a_body_that_does_not_come_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_TIMEOUT_S", 0.05)
    async with showing(Scene(), looking=LOOKING) as shown, sending(shown, head(shown, "/api/review", 10)) as answer:
        async with asyncio.timeout(PATIENCE_S):
            assert (await answer.readline()).startswith(b"HTTP/1.1 408 ")


async def test_no_more_reviews_are_begun_than_may_wait() -> None:
    may_judge = asyncio.Event()

    async def judging_later(*_: object) -> Mapping[str, Any]:
        await may_judge.wait()
        return {}

    async with (
        showing(Scene(), looking=Looking(judging_later, judging)) as shown,
        aiohttp.ClientSession() as http,
        asyncio.TaskGroup() as group,
    ):
        reviews = [group.create_task(review_of(http, shown)) for _ in range(MAX_WAITING + 3)]
        refused = 0
        for review in asyncio.as_completed(reviews):
            refused += await review == 503
            if refused == 3:
                may_judge.set()
    assert sorted(review.result() for review in reviews) == [200] * MAX_WAITING + [503] * 3


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200), (None, 200)]
)
async def test_the_api_does_not_answer_pages_of_other_sites(site: str | None, status: int) -> None:
    headers = {} if site is None else {"Sec-Fetch-Site": site}
    async with showing(Scene()) as shown, aiohttp.ClientSession(headers=headers) as http:
        assert await document_of(http, shown) == status
        # A link from another site may lead to the page itself.
        async with http.get(shown.address) as response:
            assert response.status == 200


async def test_one_user_does_not_take_all_questions_about_the_past(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasts, "MAX_ASKED_EACH", 2)
    shown, may_travel = Showing(Scene()), asyncio.Event()
    shown.begin()

    async def travel(cluster: str, points: Any) -> Any:
        await may_travel.wait()
        return await shown.travel(cluster, points)

    past, first, last = Past(travel), Point(offset=0), Point(offset=1)
    asked = [asyncio.create_task(past.difference(CLUSTER, first, last, "mallory")) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyQuestionsError, match="2 questions of mallory"):
        await past.difference(CLUSTER, first, last, "mallory")
    honest = asyncio.create_task(past.difference(CLUSTER, first, last, "ann"))
    may_travel.set()
    assert (await honest)["cluster"] == CLUSTER
    await asyncio.gather(*asked)
    assert (await past.difference(CLUSTER, first, last, "mallory"))["cluster"] == CLUSTER


@pytest.mark.story
@pytest.mark.usefixtures("collected")
async def test_a_thousand_connections_that_say_little_keep_nobody_out() -> None:
    """Silent ones, half a head, a slow body, nonsense, and streams that are not read: an honest viewer is served."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Both ends of each are in this process, and other tests have files open, too.
    count = min(1000, soft // 4)
    async with AsyncExitStack() as stack:
        shown = await stack.enter_async_context(showing(Scene(), looking=LOOKING))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        assert await document_of(http, shown) == 200
        before = memory_bytes()
        kinds = (
            b"",
            f"GET /api/document HTTP/1.1\r\nHost: 127.0.0.1:{shown.port}\r\n".encode(),
            head(shown, "/api/review", 8_000_000) + b"{",
            b"GET / HTTP/1.1\r\nX: " + bytes(64 * 1024),
            f"GET /api/stream?q={'x' * 10} HTTP/1.1\r\nHost: 127.0.0.1:{shown.port}\r\n\r\n".encode(),
        )
        for number in range(count):
            await stack.enter_async_context(sending(shown, kinds[number % len(kinds)]))
        for _ in range(3):
            assert await document_of(http, shown) == 200
            assert await review_of(http, shown) == 200
        assert memory_bytes() - before < MEMORY_BYTES
