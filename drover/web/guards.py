"""Headers of every response, the check of the Host header, and timeouts for clients that stop reading.

The headers let the page run only its own code, and forbid other pages to frame it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any

from aiohttp import web

from drover.web.identity import is_from_other_site

_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
)
HEADERS = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# A client that reads no byte for this long has vanished, or tries to block others.
TAKING_S = 30.0
LOOKS = 10
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Add the headers to a response before it is sent, streams included."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def host_guard(hosts: Collection[str]) -> Any:
    """Return middleware that refuses other hosts than these, so that other sites cannot point their names here."""

    @web.middleware
    async def check_host(request: web.Request, handler: Handler) -> web.StreamResponse:
        name = request.host.rpartition(":")[0] if _has_port(request.host) else request.host
        if name.lower() not in hosts:
            return web.json_response({"error": f"{name} is not a host of this page: add it to web.hosts"}, status=421)
        return await handler(request)

    return check_host


@web.middleware
async def site_guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer questions about the log only to this page, to programs, and to an address that a person has typed.

    Another site's page cannot read the answers, but each costs work, and a place among those who look.
    """
    if request.path.startswith("/api/") and is_from_other_site(request):
        return web.json_response({"error": "the request comes from another site's page"}, status=403)
    return await handler(request)


@contextlib.asynccontextmanager
async def taken(request: web.Request) -> AsyncIterator[None]:
    """Cut the connection of a client that stops reading during the block; the sender then gets a `ConnectionError`.

    A slow client may take as long as it needs.
    """
    cutting = asyncio.create_task(_cut_when_idle(request))
    try:
        yield
    finally:
        cutting.cancel()


async def _cut_when_idle(request: web.Request) -> None:
    # Count checks instead of time: while this process is stopped, no client can read.
    left = idle_looks = 0
    while (transport := request.transport) is not None:
        before, left = left, transport.get_write_buffer_size()
        idle_looks = idle_looks + 1 if left and left == before else 0
        if idle_looks == LOOKS:
            # Aborted, because an orderly close would wait for the client, too.
            transport.abort()
            return
        await asyncio.sleep(TAKING_S / LOOKS)


@web.middleware
async def send_while_taken(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Send the response here, so that a client that stops reading is cut off; aiohttp would wait for it for ever."""
    try:
        response = await handler(request)
    except ConnectionError:
        # The client left, or was cut off, before its request was complete; aiohttp would log a traceback.
        response = web.Response(status=400)
    # A stream has already sent its response.
    if not response.prepared:
        # A client may leave at any time; aiohttp handles that.
        with contextlib.suppress(ConnectionError):
            async with taken(request):
                await response.prepare(request)
                await response.write_eof()
    return response


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdecimal() and not host.endswith("]")
