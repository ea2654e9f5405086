"""The interfaces of shard hosting to the managed clusters and the projection; the composition root injects them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from drover.events.partitions import TopicPartition
from drover.reconcile.messages import Effect
from drover.service.health import Check
from drover.shard.core import ShardCore


class ClusterSide(Protocol):
    """The managed clusters: facts in, effects out; it hides their drivers."""

    async def gather(self, core: ShardCore, needed: Mapping[str, frozenset[TopicPartition]]) -> Mapping[str, str]:
        """Observe the partitions and deliver; return the reason for each cluster that failed. Takes at most 10 s."""
        ...

    def start(self, core: ShardCore, effects: Sequence[Effect], wake: Callable[[], None]) -> None:
        """Run the effects as tasks, deliver their results, and call `wake` after each; if none, wake the watchers."""
        ...

    def own(self, core: ShardCore, wake: Callable[[], None]) -> None:
        """Start observing the clusters of a shard that is owned now."""
        ...

    def disown(self, core: ShardCore) -> None:
        """Stop observing; later results are dropped."""
        ...

    async def close(self) -> None:
        """Close every cluster; idempotent."""
        ...


class BesideWorker(Protocol):
    """The projection, which runs in the worker's process and must never delay it."""

    def start(self) -> None:
        """Begin; returns at once."""
        ...

    def notes(self) -> tuple[Check, ...]:
        """Return its state for `/readyz`; its faults do not make the worker unready."""
        ...

    def end(self) -> None:
        """Start to end it, without waiting. Idempotent."""
        ...

    async def close(self) -> None:
        """End it; wait briefly, counted from the first call of `end`. Idempotent."""
        ...
