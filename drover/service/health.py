"""The worker's HTTP server: /livez, /readyz and /metrics, on loopback unless told otherwise; it changes nothing."""

import asyncio
import ipaddress
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Self

import structlog

from drover.errors import ConfigurationError
from drover.service.metrics import CONTENT_TYPE, Metrics
from drover.time_limits import time_limit

REQUEST_TIMEOUT_S = 5.0
# More are closed at once: a scrape and two probes need three.
MAX_CONNECTIONS = 64
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """One condition that must hold; `detail` says in a few words what was found."""

    name: str
    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of one path."""

    status: HTTPStatus
    content_type: str
    body: bytes


class HealthServer:
    """Serves while its context is open; `live` and `ready` are asked at every request.

    Answers 200 when every check holds and 503 otherwise, with the checks as JSON:
    `{"status": "ok" | "failing", "checks": [{"name", "ok", "detail"}]}`.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        live: Callable[[], Sequence[Check]],
        ready: Callable[[], Sequence[Check]],
        metrics: Metrics,
    ) -> None:
        self._host, self._port = host, port
        self._metrics = metrics
        self._checks: Mapping[str, Callable[[], Sequence[Check]]] = {"/livez": live, "/readyz": ready}
        self._server: asyncio.Server | None = None
        self._connections = 0

    async def __aenter__(self) -> Self:
        """Listen. Raises `ConfigurationError` if the address cannot be used."""
        try:
            self._server = await asyncio.start_server(self._serve, self._host, self._port)
        except (OSError, ValueError) as error:  # a malformed host name, such as 127.0.0..1, raises ValueError
            said = getattr(error, "strerror", None) or error
            raise ConfigurationError(
                f"cannot listen on {self._host}:{self._port} ({said}): "
                "choose another address with `worker.listen` or `drover worker --listen`; port 0 takes any"
            ) from error
        if not _is_loopback(self._host):
            _log.warning(
                "health and metrics are served without a password, to whoever can reach this address",
                host=self._host,
                port=self.port,
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        assert self._server is not None, "the server is not listening"
        return int(self._server.sockets[0].getsockname()[1])

    def reply(self, method: str, path: str) -> Reply:
        """Answer one request."""
        if method not in {"GET", "HEAD"}:
            return Reply(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", b"only GET\n")
        path = path.partition("?")[0]
        if path == "/metrics":
            return Reply(HTTPStatus.OK, CONTENT_TYPE, self._metrics.render())
        if path in self._checks:
            return _checked(self._checks[path]())
        return Reply(HTTPStatus.NOT_FOUND, "text/plain", b"there are /livez, /readyz and /metrics\n")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._connections >= MAX_CONNECTIONS:
            writer.close()
            return
        self._connections += 1
        try:
            await self._answer(reader, writer)
        finally:
            self._connections -= 1

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # One request per connection; a connection without a proper one in time is closed.
        try:
            async with time_limit(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, *_ = [*head.decode("latin-1").partition("\r\n")[0].split(" "), "", ""]
                reply = self.reply(method, path)
                writer.write(_encoded(reply, with_body=method != "HEAD"))
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # nobody is there to be told
        finally:
            writer.close()
            if writer.transport.get_write_buffer_size():
                # A close waits until all is sent, which is for ever where nobody reads.
                writer.transport.abort()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked(checks: Sequence[Check]) -> Reply:
    ok = all(check.ok for check in checks)
    content = {
        "status": "ok" if ok else "failing",
        "checks": [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks],
    }
    status = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
    return Reply(status, "application/json", json.dumps(content).encode() + b"\n")


def _encoded(reply: Reply, *, with_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {reply.status.value} {reply.status.phrase}\r\nContent-Type: {reply.content_type}\r\n"
        f"Content-Length: {len(reply.body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (reply.body if with_body else b"")
