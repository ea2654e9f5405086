"""The HTTP server of workers and projectors: /livez, /readyz and /metrics; it listens on loopback by default."""

import asyncio
import ipaddress
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Self

import structlog
from aiohttp import web

from drover.errors import ConfigurationError
from drover.service.connections import BACKLOG, Connections, log_refusals_rarely, places
from drover.service.metrics import CONTENT_TYPE, Metrics

# A connection is closed after this time, no matter what its client has sent or read.
CONNECTION_TIMEOUT_S = 5.0
# A scrape and two probes need three. When all are taken, the one that has been silent longest gives way.
MAX_CONNECTIONS = 64
SHUTDOWN_S = 1.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that must hold; `detail` describes its current state in a few words."""

    name: str
    ok: bool
    detail: str = ""


class HealthServer:
    """Serves while its context is open; calls `live` and `ready` for every request.

    Answers 200 when every check holds and 503 otherwise, with the checks as JSON:
    `{"status": "ok" | "failing", "checks": [{"name", "ok", "detail"}]}`. `remedy` names the setting and the flag that
    choose the address.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        live: Callable[[], Sequence[Check]],
        ready: Callable[[], Sequence[Check]],
        metrics: Metrics,
        remedy: str = "`worker.listen` or `drover worker --listen`",
    ) -> None:
        self._host, self._port = host, port
        self._remedy = remedy
        self._metrics = metrics
        self._checks: Mapping[str, Callable[[], Sequence[Check]]] = {"/livez": live, "/readyz": ready}
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        """Listen. Raises `ConfigurationError` if the address cannot be used."""
        server = web.Server(self._answer, access_log=None)
        connections = Connections(places(MAX_CONNECTIONS), MAX_CONNECTIONS, head_timeout_s=CONNECTION_TIMEOUT_S)
        connections.watch(server)
        log_refusals_rarely(asyncio.get_running_loop())
        runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port, backlog=BACKLOG).start()
        except (OSError, ValueError) as error:  # a malformed host name, such as 127.0.0..1, raises ValueError
            await runner.cleanup()
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(
                f"cannot listen on {self._host}:{self._port} ({reason}): choose another address with {self._remedy}; "
                "port 0 takes any"
            ) from error
        self._runner = runner
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
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        assert self._runner is not None, "the server is not listening"
        return int(self._runner.addresses[0][1])

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        if request.transport is not None:
            # Not a close in order: that waits until all is sent, for ever where the client does not read.
            asyncio.get_running_loop().call_later(CONNECTION_TIMEOUT_S, request.transport.abort)
        response = self._response(request.method, request.path)
        # One request per connection, which ends soon in any case.
        response.force_close()
        return response

    def _response(self, method: str, path: str) -> web.Response:
        if method not in {"GET", "HEAD"}:
            return web.Response(status=HTTPStatus.METHOD_NOT_ALLOWED, text="only GET\n", headers={"Allow": "GET, HEAD"})
        if path == "/metrics":
            return web.Response(body=self._metrics.render(), headers={"Content-Type": CONTENT_TYPE})
        if path in self._checks:
            return _checked(self._checks[path]())
        return web.Response(status=HTTPStatus.NOT_FOUND, text="there are /livez, /readyz and /metrics\n")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked(checks: Sequence[Check]) -> web.Response:
    ok = all(check.ok for check in checks)
    content = {
        "status": "ok" if ok else "failing",
        "checks": [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks],
    }
    status = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
    return web.Response(status=status, text=json.dumps(content) + "\n", content_type="application/json")
