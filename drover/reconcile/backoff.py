"""Pauses between calls that have no effect."""

from drover.events.partitions import TopicPartition

RETRY_FIRST_MS, RETRY_MAX_MS = 250, 5000


class Backoff:
    """When the next call about a partition may be tried (monotonic)."""

    def __init__(self) -> None:
        self._not_before_ms: dict[TopicPartition, int] = {}

    def delay(self, key: TopicPartition, attempts: int, now_ms: int, most_ms: int = RETRY_MAX_MS) -> None:
        """Delay the next try, longer after every failed one, but no longer than `most_ms`."""
        self._not_before_ms[key] = now_ms + min(RETRY_FIRST_MS << min(attempts, 10), most_ms)

    def may_try(self, key: TopicPartition, now_ms: int) -> bool:
        """Whether a partition's pause is over."""
        return self._not_before_ms.get(key, 0) <= now_ms

    def due_ms(self, key: TopicPartition) -> int:
        """Tell when a partition's pause is over; 0 if there is none."""
        return self._not_before_ms.get(key, 0)

    def forget(self, key: TopicPartition) -> None:
        """Drop a partition."""
        self._not_before_ms.pop(key, None)

    def next_due_ms(self, now_ms: int) -> int | None:
        """Tell when the next pause will be over."""
        return min((due for due in self._not_before_ms.values() if due > now_ms), default=None)
