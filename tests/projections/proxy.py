"""A cable to a ZooKeeper that can be cut at the worst moment."""

import asyncio
from enum import Enum


class Cut(Enum):
    """What gets through before the connection ends."""

    REQUEST = "request"
    ANSWER = "answer"


class Proxy:
    """Listens on a port of its own; `hosts` is what clients connect to."""

    def __init__(self, hosts: str) -> None:
        self._target = hosts
        self._server: asyncio.Server | None = None
        self._cut: Cut | None = None
        self._relays: set[asyncio.Task[None]] = set()
        self.cuts = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    @property
    def hosts(self) -> str:
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut_next(self, cut: Cut) -> None:
        """Lose the next transaction's request, or the next answer after it."""
        self._cut = cut

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for relay in self._relays:
            relay.cancel()
        if self._relays:
            await asyncio.wait(self._relays)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self._target.partition(":")
        try:
            onward_reader, onward = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        lost = asyncio.Event()
        relays = [
            asyncio.create_task(self._relay(reader, onward, lost, is_request=True)),
            asyncio.create_task(self._relay(onward_reader, writer, lost, is_request=False)),
        ]
        self._relays.update(relays)
        await asyncio.wait(relays, return_when=asyncio.FIRST_COMPLETED)
        for relay in relays:
            relay.cancel()
        await asyncio.wait(relays)
        self._relays.difference_update(relays)
        writer.close()
        onward.close()

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: asyncio.Event, *, is_request: bool
    ) -> None:
        """Pass on until an end or the cut; of a transaction more than one packet's worth is sent at once."""
        try:
            while data := await reader.read(1 << 20):
                # Several reads sent at once are as large as a transaction; the code of the operation tells them apart.
                if is_request and self._cut is not None and data[8:12] == MULTI:
                    if self._cut is Cut.REQUEST:
                        return self._done()
                    lost.set()
                elif not is_request and lost.is_set():
                    return self._done()
                writer.write(data)
                await writer.drain()
        except OSError:
            return None

    def _done(self) -> None:
        self._cut = None
        self.cuts += 1


# The code of a transaction, behind the length of the request and its number.
MULTI = (14).to_bytes(4, "big")
