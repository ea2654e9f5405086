"""Headers of every response, and the check of the Host: the page runs its own code only, and nobody may frame it."""

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from aiohttp import web

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
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Add the headers to an answer before it is sent, streams included."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def host_guard(hosts: Collection[str]) -> Any:
    """Answer only who asked for one of these hosts: another name that leads here is somebody else's page."""

    @web.middleware
    async def check_host(request: web.Request, handler: Handler) -> web.StreamResponse:
        name = request.host.rpartition(":")[0] if _has_port(request.host) else request.host
        if name.lower() not in hosts:
            return web.json_response({"error": f"{name} is not a host of this page: add it to web.hosts"}, status=421)
        return await handler(request)

    return check_host


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdecimal() and not host.endswith("]")
