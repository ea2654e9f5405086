"""What shard hosting needs of the managed clusters; the composition root injects it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from drover.events.partitions import TopicPartition
from drover.reconcile.messages import Effect
from drover.service.health import Check
from drover.shard.core import ShardCore


class ClusterSide(Protocol):
    """The managed clusters: facts in, effects out. Only it knows their drivers."""

    async def gather(self, core: ShardCore, needed: Mapping[str, frozenset[TopicPartition]]) -> Mapping[str, str]:
        """Observe and deliver; returns why each cluster that could not be observed was unavailable. At most 10 s."""
        ...

    def start(self, core: ShardCore, effects: Sequence[Effect], wake: Callable[[], None]) -> None:
        """Run the effects as tasks, deliver their results, and call `wake` after each; if none, wake the watchers."""
        ...

    def own(self, core: ShardCore, wake: Callable[[], None]) -> None:
        """Start observing the clusters of a shard that is owned now."""
        ...

    def disown(self, core: ShardCore) -> None:
        """Stop observing; results still to come are dropped."""
        ...

    async def close(self) -> None:
        """Close every cluster; idempotent."""
        ...


class BesideWorker(Protocol):
    """The projection: it runs in the worker's process and must never hold it up."""

    def start(self) -> None:
        """Begin; returns at once."""
        ...

    def notes(self) -> tuple[Check, ...]:
        """Tell how it is, for `/readyz`; its faults do not make the worker unready."""
        ...

    def end(self) -> None:
        """Tell it to end; returns at once. Idempotent."""
        ...

    async def close(self) -> None:
        """End it; waits a little, from when it was told first. Idempotent."""
        ...
