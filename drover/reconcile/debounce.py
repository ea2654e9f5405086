"""Mismatches that were observed once; they are acted on only once they have persisted."""

from collections.abc import Iterable

from drover.events.partitions import TopicPartition
from drover.reconcile.observations import METADATA_LAG_MS, MOST_METADATA_LAG_MS, CachedObservation

CONFIRM_AFTER_MS = METADATA_LAG_MS
CERTAIN_AFTER_MS = MOST_METADATA_LAG_MS


class Debounce:
    """Since when the observations of partitions have not matched the state (monotonic)."""

    def __init__(self) -> None:
        self._since_ms: dict[TopicPartition, int] = {}

    def has_persisted(
        self, key: TopicPartition, seen: CachedObservation | None, for_ms: int = CONFIRM_AFTER_MS
    ) -> bool:
        """Whether the last observation began at least `for_ms` after the first mismatch was observed.

        Its beginning counts, because an observation may take long and show the cluster as it was then.
        """
        since_ms = self._since_ms.get(key)
        return since_ms is not None and seen is not None and seen.started_ms - since_ms >= for_ms

    def note(self, key: TopicPartition, ended_ms: int, *, unconfirmed: bool) -> None:
        """Remember whether the observation that ended at this time was a mismatch."""
        if unconfirmed:
            self._since_ms.setdefault(key, ended_ms)
        else:
            self._since_ms.pop(key, None)

    def forget(self, key: TopicPartition) -> None:
        """Drop a partition."""
        self._since_ms.pop(key, None)

    def partitions(self) -> Iterable[TopicPartition]:
        """List the partitions that must be observed again soon."""
        return tuple(self._since_ms)
