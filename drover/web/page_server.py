"""Run the page until it is cancelled."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial

from aiohttp import web

from drover import __version__
from drover.client.time_travel import travel
from drover.errors import ConfigurationError
from drover.journal.connection import LogConnection
from drover.service.connections import BACKLOG, KEEP_ALIVE_S, Connections, Occupants, log_refusals_rarely, places
from drover.web.guards import LOOPBACK
from drover.web.identity import LOOPBACK_NETWORKS, Authorizer, Network
from drover.web.page_state import PageState
from drover.web.past import Past
from drover.web.server import MAX_VIEWERS, Server, Telemetry
from drover.web.sources import Sources
from drover.web.surveys import Looking, Surveys
from drover.web.writes import Writes, sender

SHUTDOWN_S = 1.0
MAX_CONNECTIONS = 1500
MAX_CONNECTIONS_PER_PEER = 100


@asynccontextmanager
async def listening(server: Server, host: str, port: int) -> AsyncIterator[int]:
    """Serve for the length of a block; yield the port. Raises `ConfigurationError` if the address cannot be used."""
    runner = web.AppRunner(
        server.application(), access_log=None, shutdown_timeout=SHUTDOWN_S, keepalive_timeout=KEEP_ALIVE_S
    )
    await runner.setup()
    assert runner.server is not None, "it was set up"
    connections = Connections(places(MAX_CONNECTIONS), MAX_CONNECTIONS_PER_PEER, is_proxy=server.is_proxy)
    connections.watch(runner.server)
    log_refusals_rarely(asyncio.get_running_loop())
    try:
        site = web.TCPSite(runner, host, port, backlog=BACKLOG)
        try:
            await site.start()
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {host}:{port} ({error.strerror or error}): choose another address with `web.listen` "
                "or `drover web --listen`; port 0 takes any"
            ) from error
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serving(
    connection: LogConnection,
    address: tuple[str, int],
    *,
    hosts: Collection[str] = (),
    telemetry: Telemetry | None = None,
    authorizer: Authorizer | None = None,
    looking: Looking | None = None,
    proxies: Sequence[Network] = LOOPBACK_NETWORKS,
) -> AsyncIterator[int]:
    """Follow the log and serve the page for the length of a block; yield the port.

    With a `authorizer`, the users whom it identifies may send commands. `looking` reads managed clusters. Many clients
    may be behind each of the `proxies`.
    """
    page = PageState()
    writes = None if authorizer is None else Writes(page, authorizer, sender(connection))
    surveys = None if looking is None else Surveys(page, looking)
    names = {*LOOPBACK, *(name.lower() for name in hosts), _host_name(address[0])}
    past = Past(partial(travel, connection))
    # A third of the connections is left for other requests.
    viewers = Occupants(min(MAX_VIEWERS, places(MAX_CONNECTIONS) * 2 // 3))
    server = Server(page, past, __version__, telemetry, names, writes, surveys, proxies, viewers)
    # Bind first, so that an unusable address is reported before the log is read.
    async with listening(server, *address) as port:
        following = asyncio.create_task(Sources(connection, page).run())
        try:
            yield port
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


def _host_name(host: str) -> str:
    return f"[{host}]" if ":" in host else host.lower()
