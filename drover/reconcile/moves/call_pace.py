"""How many partitions may be sent to a controller at once, by the time that it took to answer the last calls.

A controller handles one call after the other, in ZooKeeper mode one partition after the other. A call that is not
answered within its four seconds has an unknown outcome.
"""

from drover.events.partitions import TopicPartition
from drover.reconcile.contract import MAX_PARTITIONS_PER_CALL
from drover.reconcile.messages import AlterPartitions, CallEnded

LARGEST, SMALLEST, FIRST_IN_ZOOKEEPER_MODE = MAX_PARTITIONS_PER_CALL, 50, 100
# A call should take no longer than this, so that one which takes four times as long is still answered in time.
GOAL_MS = 1000


def next_size(size: int, sent: int, took_ms: int | None) -> int:
    """Return how many partitions may be sent at once after a call of `sent` took `took_ms`; None: no answer came.

    Never below `SMALLEST`, nor above `LARGEST`. It shrinks to the number that fits into `GOAL_MS`, to a quarter without
    an answer, and doubles after a call of at least half the size that took at most half of that time.
    """
    if took_ms is None:
        return max(SMALLEST, size // 4)
    if took_ms > GOAL_MS:
        return max(SMALLEST, min(size, sent * GOAL_MS // took_ms)) if sent >= SMALLEST else size
    if took_ms * 2 <= GOAL_MS and sent * 2 >= size:
        return min(LARGEST, size * 2)
    return size


class CallPace:
    """The open calls of one cluster, and how large the next ones may be."""

    def __init__(self) -> None:
        self._size: int | None = None
        self._open: set[TopicPartition] = set()
        self._started: dict[TopicPartition, tuple[int, int]] = {}

    def begin(self, *, zookeeper_mode: bool) -> None:
        """Set the first size, by the speed of the controller's mode; a measured size stays."""
        if self._size is None:
            self._size = FIRST_IN_ZOOKEEPER_MODE if zookeeper_mode else LARGEST

    @property
    def size(self) -> int:
        """How many partitions one call may name."""
        return LARGEST if self._size is None else self._size

    @property
    def room(self) -> int:
        """How many more calls may be intended now; at the largest size open ones do not count."""
        return LARGEST if self.size == LARGEST else max(0, self.size - len(self._open))

    @property
    def has_open(self) -> bool:
        """Whether a call is open."""
        return bool(self._open)

    def intended(self, key: TopicPartition) -> None:
        """Count a call that will be made."""
        self._open.add(key)

    def over(self, key: TopicPartition) -> None:
        """Forget a call that is no longer open."""
        self._open.discard(key)

    def starts(self, call: AlterPartitions, now_ms: int) -> None:
        """Note when a call was handed to the driver (monotonic)."""
        self._started[next(iter(call.requests))] = now_ms, len(call.requests)

    def ended(self, ended: CallEnded) -> None:
        """Adapt the size to the time that a call took; one that was never sent is ignored."""
        started_ms, sent = self._started.pop(ended.partitions[0], (0, 0))
        if sent != len(ended.partitions):
            return
        if ended.results is not None:
            self._size = next_size(self.size, sent, ended.ended_ms - started_ms)
        elif ended.lost:
            self._size = next_size(self.size, sent, None)
