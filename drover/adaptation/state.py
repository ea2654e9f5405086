"""The slice of the state that says what moves may do less than the limits allow."""

from dataclasses import dataclass

from msgspec import Struct

from drover.state.declared import ClusterSlice, index, items_by_key, recorded
from events.partitions import TopicPartition


class Allowance(Struct, frozen=True):
    """How often the slots of a broker are halved, since when (ms of log time), and the partition because of which."""

    halvings: int
    detail: str
    since_ms: int


class Suspension(Struct, frozen=True):
    """Since when (ms of log time) no copy begins, and how many partitions have too few replicas in sync.

    The first of them are named: their own copies begin.
    """

    count: int
    partitions: tuple[TopicPartition, ...]
    since_ms: int


@dataclass(eq=False)
class AdaptationState(ClusterSlice):
    """Brokers that may do less than the limits say, and whether any copy begins at all.

    `below_min_isr` are the partitions that the suspension names.
    """

    allowances: dict[int, Allowance] = recorded(
        "allowances",
        factory=dict,
        content=items_by_key,
        told_as=("allowance of broker", "lowered", "as the limits say"),
    )
    suspension: Suspension | None = recorded("suspension", told_as=("suspension of starts",))
    below_min_isr: frozenset[TopicPartition] = index(frozenset)

    def suspend(self, suspension: Suspension | None) -> None:
        """Set or end the suspension, and keep the index true."""
        self.suspension = suspension
        self.below_min_isr = frozenset(() if suspension is None else suspension.partitions)

    def rebuild_indexes(self) -> None:
        """Index the suspension anew."""
        super().rebuild_indexes()
        self.suspend(self.suspension)

    def slots_of(self, broker: int, limit: int) -> int:
        """Return how many of a broker's slots moves may use now: at least one."""
        known = self.allowances.get(broker)
        return limit if known is None else max(1, limit >> known.halvings)

    def is_suspended(self, key: TopicPartition) -> bool:
        """Whether no copy of a partition begins."""
        return self.suspension is not None and key not in self.below_min_isr
