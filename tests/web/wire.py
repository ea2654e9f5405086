"""A wire between a browser and the page's server, which can be cut."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

EVENT = re.compile(rb"id: (\S+)\nevent: (\w+)\n")


@dataclass
class Wire:
    """Passes bytes on in both directions; `carried` is what each connection has brought to the browser."""

    server_port: int
    port: int = 0
    carried: list[bytearray] = field(default_factory=list)
    is_cut: bool = False
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Close every connection, and refuse others until it is mended."""
        self.is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        self.is_cut = False

    def events(self) -> list[tuple[str, str]]:
        """The ids and the names of all events of streams that came to the browser, in their order."""
        return [(id_.decode(), name.decode()) for bytes_ in self.carried for id_, name in EVENT.findall(bytes_)]

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        answers, asks = await asyncio.open_connection("127.0.0.1", self.server_port)
        carried = bytearray()
        self.carried.append(carried)
        ends = {writer, asks}
        self._writers |= ends
        try:
            await asyncio.gather(_pipe(reader, asks), _pipe(answers, writer, carried))
        finally:
            self._writers -= ends
            for end in ends:
                end.close()


async def _pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter, carried: bytearray | None = None) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65_536):
            if carried is not None:
                carried += data
            sink.write(data)
            await sink.drain()
    sink.close()


@asynccontextmanager
async def wire_to(server_port: int) -> AsyncIterator[Wire]:
    """Listen on any port and pass on to the server while the context is open."""
    wire = Wire(server_port)
    listening = await asyncio.start_server(wire.pass_on, "127.0.0.1", 0)
    wire.port = listening.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        wire.cut()
        listening.close()
        await listening.wait_closed()
