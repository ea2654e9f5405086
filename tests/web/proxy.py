"""A proxy that shows the page below a path and names the user, as nginx and others do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from tests.web.showing import USER_HEADER

# Those of one connection, which no proxy passes on, and what aiohttp writes by itself.
_OF_A_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"})


@asynccontextmanager
async def proxy(server_port: int, path: str, user: str) -> AsyncIterator[str]:
    """Pass on what is below `path`, without it; yields the address of the page."""
    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def pass_on(request: web.Request) -> web.StreamResponse:
            asked = f"http://127.0.0.1:{server_port}{request.raw_path.removeprefix(path.rstrip('/'))}"
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_A_CONNECTION}
            headers[USER_HEADER] = user
            body = await request.read()
            async with session.request(request.method, asked, headers=headers, data=body) as answer:
                response = web.StreamResponse(status=answer.status)
                for name, value in answer.headers.items():
                    if name.lower() not in _OF_A_CONNECTION:
                        response.headers.add(name, value)
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    await response.write(piece)
            return response

        application = web.Application()
        application.router.add_route("*", path + "{rest:.*}", pass_on)
        runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}{path}"
        finally:
            await runner.cleanup()
            await asyncio.sleep(0)
