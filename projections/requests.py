"""Who answers what operators write to the nodes that are theirs as well; the writer asks before it writes over one."""

from typing import Protocol

from drover.events.records import Batch


class Requests(Protocol):
    """Reads requests and sees to them; `drover.projections.intake` is the one that does."""

    def recorded(self, offset: int, batch: Batch) -> None:
        """Take note of what a record says about commands."""
        ...

    async def see(self) -> None:
        """See to what stands there now, durably: after this it may be written over. Raises `DroverError`."""
        ...


class NoRequests:
    """Nobody reads them."""

    def recorded(self, offset: int, batch: Batch) -> None:
        """Note nothing."""

    async def see(self) -> None:
        """See nothing."""
