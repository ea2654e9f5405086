"""The slice of the state with the last lists of partitions, for as long as brokers' metadata may be outdated."""

from dataclasses import dataclass

from drover.events.partitions import TopicPartition
from drover.state.declared import ClusterSlice, recorded

# Brokers' metadata lags by two seconds at most; the rest is for clocks that differ.
LISTS_KEPT_MS = 10_000


@dataclass(eq=False)
class ListsState(ClusterSlice):
    """The last list of each partition with a move or reorder that has ended lately, with its time (ms of log time).

    A new owner recognises outdated observations by it. The fold does not depend on it, so no hash covers it; snapshots
    keep it. `lists_left` are the lists since `lists_dropped_ms`, `LISTS_KEPT_MS` at most, and `lists_before` those of
    the period before, so that old lists are dropped without a search; `recent_lists` leaves out those that are too old.
    """

    lists_left: dict[TopicPartition, tuple[tuple[int, ...], int]] = recorded("lists_left", factory=dict, hashed=False)
    lists_before: dict[TopicPartition, tuple[tuple[int, ...], int]] = recorded(
        "lists_before", factory=dict, hashed=False
    )
    lists_dropped_ms: int = recorded("lists_dropped_ms", 0, hashed=False)

    def leave_list(self, key: TopicPartition, replicas: tuple[int, ...], at_ms: int) -> None:
        """Remember the last list of a partition; from time to time, drop those that are too old."""
        passed_ms = at_ms - self.lists_dropped_ms
        if passed_ms > LISTS_KEPT_MS or passed_ms < -LISTS_KEPT_MS:
            self.lists_before, self.lists_left = self.lists_left, {}
            self.lists_dropped_ms = at_ms
        self.lists_left[key] = replicas, at_ms

    def recent_lists(self, at_ms: int) -> dict[TopicPartition, tuple[tuple[int, ...], int]]:
        """Return the lists that are recent enough, without those that a wrong clock has dated far ahead."""
        first_ms, last_ms = at_ms - LISTS_KEPT_MS, at_ms + LISTS_KEPT_MS
        lists = {**self.lists_before, **self.lists_left}
        return {key: left for key, left in lists.items() if first_ms <= left[1] <= last_ms}
