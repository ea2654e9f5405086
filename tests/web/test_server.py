"""What the server answers without a browser: headers, hosts, errors, documents, streams."""

import asyncio
import gzip
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import aiohttp.web
import pytest
import pytest_asyncio

from drover.errors import ConfigurationError
from drover.events.topics import TopicNames
from drover.journal.connection import LogConnection
from drover.web.changes import apply
from drover.web.page_server import listening, serving
from drover.web.page_state import PageState
from drover.web.past import Past
from drover.web.server import Server
from drover.web.sources import Sources
from tests.client.log import CLUSTER
from tests.web.scene import Scene, busy, freeze, keys
from tests.web.showing import Showing, showing

STATIC = Path(__file__).parents[2] / "drover" / "web" / "static"
VENDORED = (STATIC / "vendor" / "vendor.lock.json", Path(__file__).parent / "vendor" / "vendor.lock.json")


@pytest_asyncio.fixture(loop_scope="session")
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session


async def document(http: aiohttp.ClientSession, shown: Showing, **query: str) -> Any:
    async with http.get(f"{shown.address}/api/document", params=query) as response:
        assert response.status == 200, await response.text()
        return json.loads(gzip.decompress(await response.read()))


@pytest.mark.parametrize(
    "path", ["/", "/static/page.js", "/api/document", "/api/stream", "/nothing", "/static/../base.css"]
)
async def test_every_answer_forbids_foreign_code(http: aiohttp.ClientSession, shown: Showing, path: str) -> None:
    async with http.get(shown.address + path) as response:
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_name_that_leads_here_by_a_trick_is_refused(http: aiohttp.ClientSession, shown: Showing) -> None:
    for host, status in (("evil.example", 421), (f"evil.example:{shown.port}", 421), (f"localhost:{shown.port}", 200)):
        async with http.get(f"{shown.address}/api/document", headers={"Host": host}) as response:
            assert response.status == status


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/document?view=nonsense", 400),
        ("/api/document?page=0", 400),
        ("/api/document?page=9999999", 400),
        ("/api/document?show=x", 400),
        ("/api/document?q=" + "x" * 301, 400),
        ("/api/document?at=yesterday", 400),
        ("/api/difference?from=1", 400),
        ("/api/strip?cluster=elsewhere", 404),
        ("/api/telemetry", 404),
        ("/static/secret.txt", 404),
    ],
)
async def test_what_means_nothing_is_refused_in_words(
    http: aiohttp.ClientSession, shown: Showing, path: str, status: int
) -> None:
    async with http.get(shown.address + path) as response:
        assert response.status == status
        if path.startswith("/api"):
            assert (await response.json())["error"]


async def test_nothing_can_be_changed(http: aiohttp.ClientSession, shown: Showing) -> None:
    for path in ("/", "/api/document", "/api/stream"):
        async with http.post(shown.address + path) as response:
            assert response.status == 405


async def test_files_are_sent_once_and_compressed(http: aiohttp.ClientSession, shown: Showing) -> None:
    async with http.get(f"{shown.address}/static/page.js", headers={"Accept-Encoding": "gzip"}) as response:
        content = gzip.decompress(await response.read())
        assert content == (STATIC / "page.js").read_bytes()
        etag = response.headers["ETag"]
    async with http.get(f"{shown.address}/static/page.js", headers={"If-None-Match": etag}) as response:
        assert response.status == 304


async def test_a_document_of_the_present_and_of_the_past(http: aiohttp.ClientSession, shown: Showing) -> None:
    now = await document(http, shown, view="plan", plan="friday-drain", show="blocked")
    assert [move["key"] for move in now["moves"]] == [
        "payments:2",
        "payments:4",
        "payments:5",
        "payments:8",
        "payments:11",
    ]
    assert now["moves"][0]["why"] == "dead-destination"
    then = await document(http, shown, view="plan", at="@3")
    assert then["head"]["offset"] == 3
    assert then["matching"] == 166
    async with http.get(f"{shown.address}/api/difference", params={"from": "@3", "to": "@6"}) as response:
        changes = json.loads(gzip.decompress(await response.read()))["changes"]
    assert {(change["kind"], change["what"]) for change in changes} >= {("reassignment", "ended")}


async def test_filters_and_pages_are_the_servers(http: aiohttp.ClientSession, shown: Showing) -> None:
    everything = await document(http, shown, view="plan")
    assert (len(everything["moves"]), everything["pages"]) == (100, -(-everything["matching"] // 100))
    some = await document(http, shown, view="plan", q="AUDIT-log:1")
    assert {move["topic"] for move in some["moves"]} == {"audit-log"}
    of_broker = await document(http, shown, view="plan", q="broker:4")
    assert all(4 in (*move["original"], *move["target"]) for move in of_broker["moves"])
    last = await document(http, shown, view="plan", page=str(everything["pages"]))
    assert 0 < len(last["moves"]) <= 100


async def next_event(response: aiohttp.ClientResponse) -> tuple[str, str, Any]:
    fields: dict[str, str] = {}
    async with asyncio.timeout(60):
        while line := (await response.content.readline()).decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            fields[name] = value
    return fields.get("id", ""), fields.get("event", ""), json.loads(fields.get("data", "null"))


async def next_news(response: aiohttp.ClientResponse) -> tuple[str, str, Any]:
    while (event := await next_event(response))[1] in {"", "beat"}:
        pass
    return event


async def test_a_stream_that_was_cut_goes_on_where_it_was(http: aiohttp.ClientSession) -> None:
    scene = Scene()
    scene.open_plan("p", "ann", "why", None, keys("orders", 3))
    async with showing(scene) as shown:
        address = f"{shown.address}/api/stream?view=plan"
        async with http.get(address) as response:
            id_, name, seen = await next_news(response)
            assert (name, len(seen["moves"])) == ("snapshot", 3)
        for key in keys("orders", 3):
            scene.start(key)
            shown.refresh()
        async with http.get(address, headers={"Last-Event-ID": id_}) as response:
            for _ in range(3):
                id_, name, change = await next_news(response)
                assert name == "change"
                seen = apply(seen, change)
        assert [move["state"] for move in seen["moves"]] == ["copying"] * 3
        # A browser that makes a new connection names the last event in the address.
        freeze(scene)
        shown.refresh()
        async with http.get(f"{address}&after={id_}") as response:
            _, name, change = await next_news(response)
            assert name == "change"
        assert apply(seen, change)["head"]["frozen"] == [{"by": "ann", "reason": "incident 7"}]
        async with http.get(f"{address}&after=somebody-elses-7") as response:
            assert (await next_news(response))[1] == "snapshot"


async def test_a_viewer_who_leaves_before_the_first_byte_is_no_error(
    http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left = asyncio.Event()

    async def leaving(*_: object) -> None:
        left.set()
        raise ConnectionResetError("Cannot write to closing transport")

    async with showing(Scene()) as shown:
        monkeypatch.setattr(aiohttp.web.StreamResponse, "prepare", leaving)
        with pytest.raises(aiohttp.ClientError):
            await http.get(f"{shown.address}/api/stream")
        assert left.is_set()
        monkeypatch.undo()
    assert caplog.records == []


async def test_before_the_log_was_read_the_page_says_so_and_then_shows_it(http: aiohttp.ClientSession) -> None:
    page, scene = PageState(), Scene()
    async with listening(Server(page, Past(lambda *_: asyncio.sleep(0)), "test"), "127.0.0.1", 0) as port:  # type: ignore[arg-type]  # nobody travels
        async with http.get(f"http://127.0.0.1:{port}/api/document") as response:
            assert response.status == 503
        async with http.get(f"http://127.0.0.1:{port}/api/stream?view=now") as response:
            _, name, beat = await next_event(response)
            assert (name, beat["is_reading"]) == ("beat", True)
            page.begin(scene.view)
            assert (await next_news(response))[2]["head"]["cluster"] == CLUSTER


async def test_an_address_in_use_is_said_before_the_log_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = asyncio.Event()

    async def look(_: Sources) -> None:
        looked.set()

    monkeypatch.setattr(Sources, "run", look)
    nowhere = LogConnection("127.0.0.1:1", TopicNames())
    async with serving(nowhere, ("127.0.0.1", 0)) as port:
        await looked.wait()
        looked.clear()
        with pytest.raises(ConfigurationError, match="cannot listen on"):
            async with serving(nowhere, ("127.0.0.1", port)):
                pass
    assert not looked.is_set()


async def test_a_log_that_is_lost_is_told_with_every_beat(http: aiohttp.ClientSession) -> None:
    async with showing(Scene()) as shown, http.get(f"{shown.address}/api/stream") as response:
        await next_news(response)
        assert (await next_event(response))[2]["cut_since_ms"] is None
        shown.page.cut("ends", "it does not answer")
        beat = (await next_event(response))[2]
        assert (beat["cut_since_ms"] is not None, beat["cut_why"]) == (True, "it does not answer")
        shown.page.restore("ends")
        assert (await next_event(response))[2]["cut_since_ms"] is None


@pytest.mark.parametrize("lock", VENDORED, ids=lambda lock: lock.parts[-4])
def test_what_others_wrote_is_what_was_pinned(lock: Path) -> None:
    files = json.loads(lock.read_text(encoding="utf-8"))["files"]
    assert {file.name for file in lock.parent.iterdir()} == {*files, lock.name}
    for name, entry in files.items():
        assert hashlib.sha256((lock.parent / name).read_bytes()).hexdigest() == entry["sha256"]


async def test_first_rows_of_ten_thousand_moves_take_little_work(http: aiohttp.ClientSession) -> None:
    async with showing(busy(10_000)) as shown:
        found = await document(http, shown, view="plan")
        assert (found["matching"] > 8_000, len(found["moves"])) == (True, 100)
        assert len((await document(http, shown, view="now"))["plan_moves"]) <= 8 * 4
