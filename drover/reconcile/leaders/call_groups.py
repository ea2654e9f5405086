"""Partitions whose intents are durable, gathered into few calls."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition

# While a call is under way, so many partitions begin another one; fewer wait for its end, but at most this long. Every
# call makes all brokers apply new metadata: fifteen calls of 100 partitions take twice as long as three of 500.
WORTH_A_CALL, GATHER_MS = 500, 250


@dataclass(slots=True)
class CallGroups:
    """The calls of one kind in one cluster, from their intents to their ends. Times are monotonic."""

    _intended: list[TopicPartition] = field(default_factory=list)
    _under_way: set[TopicPartition] = field(default_factory=set)
    # When the first intended one began to wait, and when its call must have begun.
    _since_ms: int | None = None
    _start_by_ms: int = 0

    def put(self, keys: Iterable[TopicPartition]) -> None:
        """Note intents."""
        self._intended += keys

    def is_due(self, now_ms: int) -> bool:
        """Whether a call is to begin now."""
        due_ms = self.due_ms(now_ms)
        return due_ms is not None and due_ms <= now_ms

    def due_ms(self, now_ms: int) -> int | None:
        """Tell when one is to begin; None if nothing is intended."""
        if not self._intended:
            return None
        if not self._under_way or len(self._intended) >= WORTH_A_CALL or self._since_ms is None:
            return now_ms
        return self._since_ms + GATHER_MS

    def take(self, now_ms: int, start_by_ms: int) -> tuple[Sequence[TopicPartition], int]:
        """Take the partitions to call for now, if they are worth a call, and the time by which it must have begun.

        They are under way until `ended` names them. `start_by_ms` is the limit of the last intents; the call gets the
        limit of those that waited longest.
        """
        if self._intended and self._since_ms is None:
            self._since_ms, self._start_by_ms = now_ms, start_by_ms
        if not self.is_due(now_ms):
            return (), start_by_ms
        taken = self.withdraw()
        self._under_way.update(taken)
        return taken, self._start_by_ms

    def withdraw(self) -> Sequence[TopicPartition]:
        """Take all intended partitions; no call follows for them."""
        taken, self._intended, self._since_ms = self._intended, [], None
        return taken

    def ended(self, keys: Iterable[TopicPartition]) -> None:
        """Note the end of a call; other partitions are ignored."""
        self._under_way.difference_update(keys)
