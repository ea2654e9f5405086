"""Sending commands now and then, over a connection that is opened by the first one and again after a fault."""

import contextlib

from drover.client.client import Client
from drover.errors import LogUnavailableError
from drover.journal.connection import LogConnection
from events.commands import AnyCommand


class CommandSender:
    """Sends one command after another. Raises what `Client` raises; the same command may be sent again."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection = connection
        self._client: Client | None = None
        self._stack = contextlib.AsyncExitStack()

    async def send(self, command: AnyCommand) -> None:
        """Return once the command is durable."""
        if self._client is None:
            self._client = await self._stack.enter_async_context(Client(self._connection))
        try:
            await self._client.submit(command)
        except LogUnavailableError:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connection; idempotent."""
        self._client = None
        await self._stack.aclose()
