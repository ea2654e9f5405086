"""The HTTP server of the page: its files, the documents of its views, and the stream that keeps them up to date."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2
import msgspec
from aiohttp import web

from drover.client.time_travel import Point
from drover.errors import ConfigurationError, LogUnavailableError
from drover.service.connections import Occupants
from drover.time_limits import time_limit
from drover.web.assets import Asset, make_asset, read_assets
from drover.web.bodies import Reply, SlowBodyError
from drover.web.channels import Channel, encode_event
from drover.web.documents import document
from drover.web.guards import LOOPBACK, Handler, add_headers, host_guard, send_while_taken, site_guard, taken
from drover.web.identity import LOOPBACK_NETWORKS, Denied, Network, is_within
from drover.web.page_state import PageState
from drover.web.past import Past, TooManyQuestionsError
from drover.web.present import Present
from drover.web.query import parse_query
from drover.web.surveys import Surveys
from drover.web.writes import Writes

BEAT_S = 2.0
MAX_VIEWERS = 1000
STRIP_BUCKETS = 120
HTML = "text/html; charset=utf-8"
# How long a browser waits before it reconnects to a stream.
RETRY = b"retry: 1000\n\n"

Telemetry = Callable[[str | None], Mapping[str, Any]]
Answering = Callable[[web.Request], Awaitable[Reply]]


@dataclass(slots=True)
class Server:
    """Answers the requests of the page; `telemetry` reads Spark's tables and may block.

    Without `writes` it is read-only: there is no route for commands. Many clients may be behind each of the `proxies`.
    Of the `viewers`, who follow a view, the first is cut off for one too many; its browser reconnects.
    """

    page: PageState
    past: Past
    version: str
    telemetry: Telemetry | None = None
    hosts: Collection[str] = LOOPBACK
    writes: Writes | None = None
    surveys: Surveys | None = None
    proxies: Sequence[Network] = LOOPBACK_NETWORKS
    viewers: Occupants = field(default_factory=lambda: Occupants(MAX_VIEWERS))
    _assets: dict[str, Asset] = field(default_factory=read_assets)
    _page: Asset = field(init=False)

    def __post_init__(self) -> None:
        loader = jinja2.PackageLoader("drover.web", "templates")
        environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
        page = environment.get_template("index.html").render(version=self.version)
        self._page = make_asset(HTML, page.encode())

    def application(self) -> web.Application:
        """Return the application without starting it."""
        application = web.Application(middlewares=[send_while_taken, host_guard(self.hosts), site_guard, _say_errors])
        application.on_response_prepare.append(add_headers)
        asked: dict[str, Answering] = {}
        if self.surveys is not None:
            asked |= {"/api/review": self.surveys.answer_review, "/api/throttles": self.surveys.answer_throttles}
        if self.writes is not None:
            asked |= {"/api/trial": self.writes.answer_trial, "/api/command": self.writes.answer_command}
        application.add_routes([web.post(path, _answering(answer)) for path, answer in asked.items()])
        application.add_routes(
            [
                web.get("/", self._show_page),
                web.get("/static/{path:.+}", self._show_file),
                # A stream without a body would never end.
                web.get("/api/stream", self._stream, allow_head=False),
                web.get("/api/document", self._document),
                web.get("/api/strip", self._strip),
                web.get("/api/plots", self._plots),
                web.get("/api/difference", self._difference),
                web.get("/api/telemetry", self._telemetry),
                web.get("/api/session", self._session),
                web.get("/livez", _live),
            ]
        )
        return application

    def is_proxy(self, peer: str) -> bool:
        """Whether many clients come from this address."""
        return is_within(peer, self.proxies)

    def _asker(self, request: web.Request) -> str | None:
        """Name who asks: the user, or else the address; None for somebody behind a proxy that names no users."""
        if self.writes is not None and not isinstance(user := self.writes.authorizer.user_of(request), Denied):
            return user
        return None if self.is_proxy(request.remote or "") else request.remote

    async def _show_page(self, request: web.Request) -> web.Response:
        return _file(request, self._page)

    async def _show_file(self, request: web.Request) -> web.Response:
        asset = self._assets.get(request.match_info["path"])
        if asset is None:
            raise web.HTTPNotFound
        return _file(request, asset)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        query = parse_query(request.query)
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        # A viewer may leave at any time, even before the first byte.
        with contextlib.suppress(ConnectionError), self.viewers.place_for(request.transport):
            await self._ready(request, response)
            if not response.prepared:
                await response.prepare(request)
            await self._follow(request, response, self.page.channels.channel(query))
        return response

    async def _follow(self, request: web.Request, response: web.StreamResponse, channel: Channel) -> None:
        version = channel.version_of(request.headers.get("Last-Event-ID") or request.query.get("after"))
        with channel.viewer():
            # One guard for the whole stream, because a task per write would cost as much as the write.
            async with taken(request):
                await response.write(RETRY)
                while not channel.is_ended:
                    fresh, news, version = channel.fresh, channel.since(version), channel.version
                    # A heartbeat with every piece, so that viewers can tell how fresh the figures are.
                    await response.write(news + encode_event("beat", self.page.standing))
                    with contextlib.suppress(TimeoutError):
                        async with time_limit(BEAT_S):
                            await fresh.wait()

    async def _ready(self, request: web.Request, response: web.StreamResponse) -> None:
        """Send heartbeats to a viewer until the log has been read."""
        while not self.page.is_ready:
            if not response.prepared:
                await response.prepare(request)
            async with taken(request):
                await response.write(encode_event("beat", {**self.page.standing, "is_reading": True}))
            await asyncio.sleep(BEAT_S / 4)

    async def _document(self, request: web.Request) -> web.Response:
        present = self._present()
        query = parse_query(request.query)
        point = _point(request.query.get("at"))
        if point is not None:
            present = await self.past.at(self._cluster(query.cluster), point, present.archive, self._asker(request))
        return _json(request, document(present, query))

    async def _strip(self, request: web.Request) -> web.Response:
        archive = self._present().archive
        cluster = self._cluster(request.query.get("cluster"))
        times = archive.times(cluster)
        now_ms = self.page.standing["now_ms"]
        first_ms = times[0] if times else now_ms
        last_ms = max(now_ms, first_ms + 1)
        span = {"first_ms": first_ms, "last_ms": last_ms, "is_complete": archive.is_complete}
        return _json(request, {**span, "counts": archive.counts(cluster, first_ms, last_ms, STRIP_BUCKETS)})

    async def _plots(self, request: web.Request) -> web.Response:
        return _json(request, self.page.plots.of(self._cluster(request.query.get("cluster") or None)))

    async def _difference(self, request: web.Request) -> web.Response:
        first, last = _point(request.query.get("from")), _point(request.query.get("to"))
        if first is None or last is None:
            raise ValueError("from and to must be times in ms since the epoch, or @offset")
        cluster = self._cluster(request.query.get("cluster"))
        return _json(request, await self.past.difference(cluster, first, last, self._asker(request)))

    async def _telemetry(self, request: web.Request) -> web.Response:
        if self.telemetry is None:
            return _error(404, "this page was started without Spark's tables")
        tables = await asyncio.to_thread(self.telemetry, request.query.get("cluster"))
        return _json(request, tables)

    async def _session(self, request: web.Request) -> web.Response:
        nobody = {"user": None, "token": None, "why": None}
        return _json(request, nobody if self.writes is None else self.writes.authorizer.session(request))

    def _present(self) -> Present:
        if self.page.present is None:
            raise LogUnavailableError("the log is still being read")
        return self.page.present

    def _cluster(self, name: str | None) -> str:
        located = self._present().cluster(name)
        if located is None:
            raise ConfigurationError(f"the log has no entry for cluster {name or ''}")
        return located[0].name


def _answering(answer: Answering) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        status, content = await answer(request)
        return _json(request, content, status)

    return handle


async def _live(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


@web.middleware
async def _say_errors(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
    try:
        response: web.StreamResponse = await handler(request)
    except ValueError as error:
        return _error(400, str(error))
    except ConfigurationError as error:
        return _error(404, str(error))
    except SlowBodyError as error:
        return _error(408, str(error))
    except (LogUnavailableError, TooManyQuestionsError) as error:
        return _error(503, str(error))
    return response


def _point(text: str | None) -> Point | None:
    """Parse a time in ms since the epoch, or `@offset`."""
    if not text:
        return None
    number = text.removeprefix("@")
    if not (number.isascii() and number.isdecimal() and len(number) <= 15):
        raise ValueError(f"{text!r} is neither a time in ms since the epoch nor @offset")
    return Point(offset=int(number)) if text.startswith("@") else Point(at_ms=int(number))


def _error(status: int, why: str) -> web.Response:
    return web.json_response({"error": why}, status=status, headers={"Cache-Control": "no-store"})


def _json(request: web.Request, content: Mapping[str, Any], status: int = 200) -> web.Response:
    body = msgspec.json.encode(content)
    headers = {"Cache-Control": "no-store"}
    response = web.Response(status=status, body=body, content_type="application/json", headers=headers)
    if _takes_gzip(request):
        response.enable_compression(web.ContentCoding.gzip)
    return response


def _takes_gzip(request: web.Request) -> bool:
    return "gzip" in request.headers.get("Accept-Encoding", "")


def _file(request: web.Request, asset: Asset) -> web.Response:
    headers = {"Content-Type": asset.content_type, "ETag": asset.etag, "Cache-Control": "no-cache"}
    headers["Vary"] = "Accept-Encoding"
    if request.headers.get("If-None-Match") == asset.etag:
        return web.Response(status=304, headers=headers)
    if _takes_gzip(request):
        return web.Response(body=asset.compressed, headers={**headers, "Content-Encoding": "gzip"})
    return web.Response(body=asset.content, headers=headers)
