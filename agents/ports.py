"""What the Faust side needs of a worker and offers to it; the runtime injects the one and uses the other."""

from collections.abc import Mapping, Sequence
from typing import NoReturn, Protocol

from drover.shard.messages import Arrival


class CommandHost(Protocol):
    """The worker, as the group's callbacks and the agents see it. Nothing here may raise into Faust."""

    def partitions_revoked(self) -> None:
        """Let go of every shard now; nothing of what was read is kept."""
        ...

    async def partitions_assigned(self, partitions: Mapping[str, Sequence[int]], generation: int) -> None:
        """Own the shards: the rebalance barrier, awaited before any position is set and anything flows.

        `partitions` holds the assigned partitions of each command topic, ascending.
        """
        ...

    def positions(self) -> Mapping[int, tuple[int, ...]]:
        """Return the next offset of each command topic per shard, as the log says (R4)."""
        ...

    def positions_set(self, positions: Mapping[int, tuple[int, ...]]) -> None:
        """The consumer now stands at these positions and has forgotten everything it had read."""
        ...

    def arrive(self, partition: int, arrival: Arrival, generation: int) -> None:
        """Take one command; never waits, since one waiting agent would stop them all."""
        ...

    def fail(self, reason: str, error: BaseException | None) -> NoReturn:
        """Log and end the process at once: Faust hangs or swallows what escapes into it."""
        ...


class CommandSource(Protocol):
    """The consumer group, as the worker sees it."""

    @property
    def generation(self) -> int:
        """The group generation of the present assignment."""
        ...

    def hold(self, topic_index: int, partition: int) -> None:
        """Read no more of this partition for now; what was fetched already still arrives."""
        ...

    def release(self, topic_index: int, partition: int) -> None:
        """Read on."""
        ...

    async def request_rejoin(self) -> None:
        """Join the group again, so that assignment and barrier happen anew."""
        ...
