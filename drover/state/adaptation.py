"""The slice of the state with the restrictions while replicas lag: brokers' slots, and suspensions of new copies."""

from dataclasses import dataclass

from msgspec import Struct

from drover.events.partitions import TopicPartition
from drover.state.declared import ClusterSlice, index, items_by_key, recorded


class Allowance(Struct, frozen=True, gc=False):
    """How often the slots of a broker are halved, since when (ms of log time), and which replica caused it."""

    halvings: int
    detail: str
    since_ms: int


class Suspension(Struct, frozen=True, gc=False):
    """A suspension of new copies: its start (ms of log time), and the number of partitions below min.insync.replicas.

    `partitions` are the first of these; their own copies may still begin.
    """

    count: int
    partitions: tuple[TopicPartition, ...]
    since_ms: int


@dataclass(eq=False)
class AdaptationState(ClusterSlice):
    """The brokers with fewer slots than the limits give them, and the suspension of new copies, if there is one.

    `below_min_isr` are the partitions that the suspension names.
    """

    allowances: dict[int, Allowance] = recorded(
        "allowances",
        factory=dict,
        content=items_by_key,
        described_as=("allowance of broker", "lowered", "as the limits say"),
    )
    suspension: Suspension | None = recorded("suspension", described_as=("suspension of starts",))
    below_min_isr: frozenset[TopicPartition] = index(frozenset)

    def suspend(self, suspension: Suspension | None) -> None:
        """Set or end the suspension, and update the index."""
        self.suspension = suspension
        self.below_min_isr = frozenset(() if suspension is None else suspension.partitions)

    def rebuild_indexes(self) -> None:
        """Rebuild the index of the partitions that the suspension names."""
        super().rebuild_indexes()
        self.suspend(self.suspension)

    def slots_of(self, broker: int, limit: int) -> int:
        """Return the number of a broker's slots that moves may use now, at least one."""
        allowance = self.allowances.get(broker)
        return limit if allowance is None else max(1, limit >> allowance.halvings)

    def is_suspended(self, key: TopicPartition) -> bool:
        """Whether a copy of this partition has to wait until the suspension ends."""
        return self.suspension is not None and key not in self.below_min_isr
