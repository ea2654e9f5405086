"""Send occasional commands over a connection that opens with the first one, and again after a fault."""

import asyncio
import contextlib

from drover.client.client import Client
from drover.errors import LogUnavailableError
from drover.events.commands import AnyCommand
from drover.journal.connection import LogConnection


class CommandSender:
    """Sends commands, also concurrently. Raises as `Client` does; the same command may be sent again."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection = connection
        self._client: Client | None = None
        self._stack = contextlib.AsyncExitStack()
        # Guards opening and closing, so that there is only one connection, and a new one is not closed.
        self._changing = asyncio.Lock()

    async def send(self, command: AnyCommand) -> None:
        """Send a command, and return once it is durable."""
        client = await self._connected()
        try:
            await client.submit(command)
        except LogUnavailableError:
            await self._let_go(client)
            raise

    async def close(self) -> None:
        """Close the connection; idempotent."""
        async with self._changing:
            await self._disconnect()

    async def _connected(self) -> Client:
        async with self._changing:
            if self._client is None:
                self._client = await self._stack.enter_async_context(Client(self._connection))
            return self._client

    async def _let_go(self, client: Client) -> None:
        """Close this connection, unless another one has replaced it."""
        async with self._changing:
            if self._client is client:
                await self._disconnect()

    async def _disconnect(self) -> None:
        self._client = None
        await self._stack.aclose()
