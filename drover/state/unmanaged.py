"""The slice of the state with moves that Drover does not manage."""

from dataclasses import dataclass

from msgspec import Struct

from drover.events.partitions import TopicPartition
from drover.state.declared import ClusterSlice, items_by_key, recorded


class UnmanagedMove(Struct, frozen=True, gc=False, omit_defaults=True):
    """A move that somebody else started, as last seen."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    since_ms: int

    @property
    def never_ends(self) -> tuple[int, ...]:
        """The brokers that are being both added and removed: with one of them Kafka may list the move for ever."""
        return tuple(broker for broker in self.adding if broker in self.removing)


@dataclass(eq=False)
class UnmanagedState(ClusterSlice):
    """Moves of others, by partition."""

    unmanaged: dict[TopicPartition, UnmanagedMove] = recorded(
        "unmanaged", factory=dict, content=items_by_key, described_as=("unmanaged move", "seen", "ended")
    )
