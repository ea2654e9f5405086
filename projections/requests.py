"""The interface to the reader of operators' requests; the writer calls it before it overwrites a shared node."""

from typing import Protocol

from drover.events.records import Batch


class Requests(Protocol):
    """Reads and handles requests; implemented by `drover.projections.intake`."""

    def recorded(self, offset: int, batch: Batch) -> None:
        """Collect the outcomes of commands in a record."""
        ...

    async def see(self) -> None:
        """Handle the current requests durably, so that their nodes may be overwritten. Raises `DroverError`."""
        ...


class NoRequests:
    """The reader of requests where they are not read."""

    def recorded(self, offset: int, batch: Batch) -> None:
        """Do nothing."""

    async def see(self) -> None:
        """Do nothing."""
