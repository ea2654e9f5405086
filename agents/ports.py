"""The two interfaces between Faust and a worker: `CommandHost` is the worker, `CommandSource` the group."""

from collections.abc import Mapping, Sequence
from typing import NoReturn, Protocol

from drover.shard.messages import Arrival


class CommandHost(Protocol):
    """The worker, for the group's callbacks and the agents; no method may raise into Faust."""

    def partitions_revoked(self) -> None:
        """Give up every shard now, and drop all records that were read."""
        ...

    async def partitions_assigned(self, partitions: Mapping[str, Sequence[int]], generation: int) -> None:
        """Acquire the shards: the rebalance barrier, awaited before positions are set and records flow.

        `partitions` holds the assigned partitions of each command topic, ascending.
        """
        ...

    def positions(self) -> Mapping[int, tuple[int, ...]]:
        """Return the next offset of each command topic per shard, from the log (R4)."""
        ...

    def positions_set(self, positions: Mapping[int, tuple[int, ...]]) -> None:
        """Note that the consumer was set to these positions, and has dropped all records."""
        ...

    def arrive(self, partition: int, arrival: Arrival, generation: int) -> None:
        """Accept a command without waiting, because one waiting agent would stop all of them."""
        ...

    def fail(self, reason: str, error: BaseException | None) -> NoReturn:
        """Log and end the process at once, because Faust hangs on exceptions or swallows them."""
        ...


class CommandSource(Protocol):
    """The consumer group, for the worker."""

    @property
    def generation(self) -> int:
        """The group generation of the present assignment."""
        ...

    def hold(self, topic_index: int, partition: int) -> None:
        """Read no more of this partition for now; records that were fetched already still arrive."""
        ...

    def release(self, topic_index: int, partition: int) -> None:
        """Read on."""
        ...

    async def request_rejoin(self) -> None:
        """Join the group again, so that assignment and barrier happen anew."""
        ...
