"""Browsers as far as a server notices them: `python -m bench.page_viewers ADDRESS COUNT` reads streams for ever."""

import asyncio
import sys

import aiohttp


async def read(address: str, viewers: int) -> None:
    """Read a stream with so many connections."""

    async def view(session: aiohttp.ClientSession) -> None:
        async with session.get(address) as response:
            async for _ in response.content.iter_any():
                pass

    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        await asyncio.gather(*(view(session) for _ in range(viewers)))


if __name__ == "__main__":
    asyncio.run(read(sys.argv[1], int(sys.argv[2])))
