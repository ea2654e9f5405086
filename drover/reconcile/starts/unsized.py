"""Which waiting partitions are held back until their sizes are known: the first starts follow the order, too."""

from drover.events.partitions import TopicPartition
from drover.reconcile.moves.copy_sizes import CopySizes
from drover.state.cluster import ClusterState

# How long nothing begins for want of a size (monotonic): sizes are read every second.
PATIENCE_MS = 2000


class Unsized:
    """Pending partitions of unknown size, while more is pending than one broker takes at a time.

    Where everything may begin at once, its order does not matter. Where nobody reads sizes, nothing is held. A size
    that has not come by the deadline is waited for no longer.
    """

    def __init__(self, state: ClusterState, sizes: CopySizes) -> None:
        self._state = state
        self._sizes = sizes
        self._held: dict[TopicPartition, None] = {}
        self._given_up: dict[TopicPartition, None] = {}
        self._due_ms: int | None = None

    def holds(self, key: TopicPartition) -> bool:
        """Whether a partition is held back; notes that it is."""
        limits, pending = self._state.limits, self._state.moves.pending
        is_ready = key not in pending or key in self._given_up or self._sizes.copy_bytes(key) is not None
        if is_ready or not self._sizes.is_read or len(pending) <= min(limits.max_incoming, limits.max_outgoing):
            self._held.pop(key, None)
            return False
        self._held[key] = None
        return True

    def forget(self, key: TopicPartition) -> None:
        """Drop what waits no longer."""
        self._held.pop(key, None)
        self._given_up.pop(key, None)

    def due_ms(self, now_ms: int) -> int | None:
        """Tell when those that are held now are waited for no longer; the first one sets it."""
        if not self._held:
            self._due_ms = None
        elif self._due_ms is None:
            self._due_ms = now_ms + PATIENCE_MS
        return self._due_ms

    def overdue(self, now_ms: int) -> list[TopicPartition]:
        """Take those whose sizes did not come by the deadline."""
        due_ms = self.due_ms(now_ms)
        if due_ms is None or now_ms < due_ms:
            return []
        found, self._held, self._due_ms = list(self._held), {}, None
        self._given_up.update(dict.fromkeys(found))
        return found
