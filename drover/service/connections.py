"""The connections of an HTTP server: bounded in number, and in how long a client may keep its request back.

aiohttp takes as many connections as come, and waits an hour for a client that is silent. A server here has a number of
places. When they are taken, the connection that has been silent longest gives way to a new one.
"""

import asyncio
import resource
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from aiohttp import web

# A new connection must have sent the head of its request by then.
HEAD_TIMEOUT_S = 10.0
# An idle connection is kept for so long; proxies reuse theirs for a minute.
KEEP_ALIVE_S = 75.0
# Connections that wait to be accepted. asyncio writes a line for each of them while no descriptor is free.
BACKLOG = 64
REFUSALS_LOGGED_EVERY_S = 60.0
# How much is read of a connection at a time. With the 256 KiB of asyncio, a thousand clients with nonsense take 200 MB.
READ_BYTES = 8 * 1024
_NO_DESCRIPTOR = "socket.accept() out of system resource"
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Connection:
    """One connection: its peer's address, the end of its time, and whether a request of it is being answered."""

    transport: asyncio.Transport
    peer: str
    deadline: asyncio.TimerHandle
    is_answering: bool = False


class Connections:
    """The open connections of one server, that which has been silent longest first.

    There are at most `most` of them, and `most_per_peer` from one address, except from those that `is_proxy` names,
    behind which many clients are. A client that finds no place takes that of a silent connection; where all others are
    being answered, it is refused.
    """

    def __init__(
        self,
        most: int,
        most_per_peer: int,
        *,
        is_proxy: Callable[[str], bool] = lambda _: False,
        head_timeout_s: float = HEAD_TIMEOUT_S,
    ) -> None:
        self._most = most
        self._most_per_peer = most_per_peer
        self._is_proxy = is_proxy
        self._head_timeout_s = head_timeout_s
        self._open: dict[web.RequestHandler, _Connection] = {}
        self._peers: Counter[str] = Counter()

    def watch(self, server: web.Server) -> None:
        """Bound the connections that this server takes from now on."""
        take, lose, answer = server.connection_made, server.connection_lost, server.request_handler

        def connection_made(handler: web.RequestHandler, transport: asyncio.Transport) -> None:
            take(handler, transport)
            self._take(handler, transport)

        def connection_lost(handler: web.RequestHandler, exc: BaseException | None = None) -> None:
            self._forget(handler)
            lose(handler, exc)

        async def request_handler(request: Any) -> web.StreamResponse:
            self._begin_answer(request.protocol)
            try:
                return await answer(request)
            finally:
                self._end_answer(request.protocol)

        server.connection_made = connection_made  # type: ignore[method-assign] # aiohttp makes its own server
        server.connection_lost = connection_lost  # type: ignore[method-assign] # as above
        server.request_handler = request_handler

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._open)

    def _take(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        peer = str((transport.get_extra_info("peername") or ("",))[0])
        is_bounded = not self._is_proxy(peer)
        is_full = is_bounded and self._peers[peer] >= self._most_per_peer and not self._make_room(peer)
        if is_full or (len(self._open) >= self._most and not self._make_room(None)):
            # Not at once: aiohttp begins to serve the connection after this, and fails if it is gone by then.
            asyncio.get_running_loop().call_soon(transport.abort)
            return
        transport.max_size = READ_BYTES  # type: ignore[attr-defined] # asyncio's selector transports have it
        deadline = asyncio.get_running_loop().call_later(self._head_timeout_s, transport.abort)
        self._open[handler] = _Connection(transport, peer, deadline)
        self._peers[peer] += 1

    def _make_room(self, peer: str | None) -> bool:
        """Cut the connection that has been silent longest, of a peer or of all; False if there is none."""
        silent = (
            (handler, connection)
            for handler, connection in self._open.items()
            if not connection.is_answering and peer in {None, connection.peer}
        )
        handler, connection = next(silent, (None, None))
        if handler is None or connection is None:
            return False
        # A close in order would wait until the client has read what was sent.
        connection.transport.abort()
        self._forget(handler)
        return True

    def _forget(self, handler: web.RequestHandler) -> None:
        connection = self._open.pop(handler, None)
        if connection is None:
            return
        connection.deadline.cancel()
        self._peers[connection.peer] -= 1
        if not self._peers[connection.peer]:
            del self._peers[connection.peer]

    def _begin_answer(self, handler: web.RequestHandler) -> None:
        if (connection := self._open.get(handler)) is not None:
            connection.deadline.cancel()
            connection.is_answering = True

    def _end_answer(self, handler: web.RequestHandler) -> None:
        """From now on it is silent again: it goes to the end of the list."""
        if (connection := self._open.pop(handler, None)) is not None:
            connection.is_answering = False
            self._open[handler] = connection


class Occupants:
    """The connections that hold one of at most `most` places; that which came first gives way to a new one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._transports: dict[asyncio.Transport, None] = {}

    def __len__(self) -> int:
        """Return how many places are taken."""
        return len(self._transports)

    @contextmanager
    def place_for(self, transport: asyncio.Transport | None) -> Iterator[None]:
        """Hold a place for the length of a block. Raises `ConnectionResetError` for a client that has left (None)."""
        if transport is None:
            raise ConnectionResetError
        if len(self._transports) >= self._most:
            first = next(iter(self._transports))
            del self._transports[first]
            first.abort()
        self._transports[transport] = None
        try:
            yield
        finally:
            self._transports.pop(transport, None)


def places(wanted: int) -> int:
    """Return how many connections may be open: as many as wanted, but half of the process's descriptors at most."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, max(1, soft // 2))


def log_refusals_rarely(loop: asyncio.AbstractEventLoop) -> None:
    """Let the loop write one line a minute, without a traceback, while no descriptor is free for new connections.

    Everything else goes to the handler that the loop had before.
    """
    before = loop.get_exception_handler()
    last_s = -REFUSALS_LOGGED_EVERY_S

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal last_s
        if context.get("message") != _NO_DESCRIPTOR:
            if before is None:
                loop.default_exception_handler(context)
            else:
                before(loop, context)
            return
        if loop.time() - last_s >= REFUSALS_LOGGED_EVERY_S:
            last_s = loop.time()
            _log.error("connections are refused: the process has no free file descriptor", error=context["exception"])

    loop.set_exception_handler(handle)
