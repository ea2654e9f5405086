"""The partitions whose leader or order may be wrong: to be observed, observed, or to be tried after a pause."""

from collections.abc import Iterable

from drover.events.partitions import TopicPartition
from drover.reconcile.backoff import Backoff
from drover.reconcile.observations import FRESH_MS, METADATA_LAG_MS, CachedObservation

LONG_PAUSE = 10
# A call that Kafka refuses, perhaps for a missing ACL, is tried after 4 s, and ever more seldom: each try is recorded.
REFUSED_FIRST, REFUSED_MOST_MS = 3, 60_000


class Worklist:
    """`candidates` are to be observed, `ready` were observed, and of `reordered` the reorder is done; each in order."""

    def __init__(self) -> None:
        self.candidates: dict[TopicPartition, None] = {}
        self.ready: dict[TopicPartition, None] = {}
        self.reordered: dict[TopicPartition, None] = {}
        self._backoff = Backoff()
        self._attempts: dict[TopicPartition, int] = {}
        # Moves that have just ended, and when (monotonic), oldest first.
        self._moved_ms: dict[TopicPartition, int] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no partition is to be observed or acted on."""
        return not (self.candidates or self.ready or self.reordered)

    def seen(self, key: TopicPartition) -> None:
        """Note that a partition was observed."""
        self.candidates.pop(key, None)
        self.ready[key] = None

    def try_later(self, key: TopicPartition, attempts: int, now_ms: int) -> None:
        """Observe a partition again after a pause, which is longer after more attempts."""
        self._backoff.delay(key, attempts, now_ms)
        self.candidates[key] = None

    def refused(self, key: TopicPartition, now_ms: int) -> None:
        """Observe a partition whose call Kafka has refused again, after a pause that grows."""
        self._backoff.delay(key, REFUSED_FIRST + self.failed(key), now_ms, REFUSED_MOST_MS)
        self.candidates[key] = None

    def failed(self, key: TopicPartition) -> int:
        """Count an attempt without effect; return how many there were in a row."""
        attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
        return attempts

    def succeeded(self, key: TopicPartition) -> None:
        """Forget the attempts."""
        self._attempts.pop(key, None)

    def may_try(self, key: TopicPartition, now_ms: int) -> bool:
        """Whether a partition's pause is over."""
        return self._backoff.may_try(key, now_ms)

    # -- recent moves, which brokers' metadata may not show yet

    def moved(self, keys: Iterable[TopicPartition], now_ms: int) -> None:
        """Note moves that have just ended; times are monotonic, in ms."""
        for key in keys:
            self._moved_ms.pop(key, None)
            self._moved_ms[key] = now_ms

    def is_behind(self, key: TopicPartition, seen: CachedObservation) -> bool:
        """Whether an observation may be older than the partition's last move, because brokers' metadata lags."""
        return seen.started_ms - self._moved_ms.get(key, -METADATA_LAG_MS) < METADATA_LAG_MS

    def forget_old(self, now_ms: int) -> None:
        """Drop the moves that every broker's metadata shows by now."""
        old_ms = now_ms - METADATA_LAG_MS - FRESH_MS
        while self._moved_ms and next(iter(self._moved_ms.values())) < old_ms:
            del self._moved_ms[next(iter(self._moved_ms))]
