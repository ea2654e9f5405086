"""Partitions whose intents are durable, gathered into few calls."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition

# While a call is under way so many begin another one, and fewer wait for its end, but no longer than that: with each
# call every broker works through new metadata, so that fifteen calls of a hundred take twice as long as three of 500.
WORTH_A_CALL, GATHER_MS = 500, 250


@dataclass(slots=True)
class CallGroups:
    """One kind of call in one cluster, from the intents to those that are called for. Times are monotonic."""

    _intended: list[TopicPartition] = field(default_factory=list)
    _under_way: set[TopicPartition] = field(default_factory=set)
    # When the first of them began to wait, and when its call must have begun.
    _since_ms: int | None = None
    _start_by_ms: int = 0

    def put(self, keys: Iterable[TopicPartition]) -> None:
        """Note intents."""
        self._intended += keys

    def is_due(self, now_ms: int) -> bool:
        """Whether there is something to call for now."""
        due_ms = self.due_ms(now_ms)
        return due_ms is not None and due_ms <= now_ms

    def due_ms(self, now_ms: int) -> int | None:
        """Tell when there is; None if nothing is intended."""
        if not self._intended:
            return None
        if not self._under_way or len(self._intended) >= WORTH_A_CALL or self._since_ms is None:
            return now_ms
        return self._since_ms + GATHER_MS

    def take(self, now_ms: int, start_by_ms: int) -> tuple[Sequence[TopicPartition], int]:
        """Take what is to be called for now, if that is worth a call, and when the call must have begun.

        It is under way until `ended` names it. `start_by_ms` is the limit of what was intended last; the call gets the
        limit of what waited longest.
        """
        if self._intended and self._since_ms is None:
            self._since_ms, self._start_by_ms = now_ms, start_by_ms
        if not self.is_due(now_ms):
            return (), start_by_ms
        taken = self.withdraw()
        self._under_way.update(taken)
        return taken, self._start_by_ms

    def withdraw(self) -> Sequence[TopicPartition]:
        """Take everything that is intended, and that nobody will call for."""
        taken, self._intended, self._since_ms = self._intended, [], None
        return taken

    def ended(self, keys: Iterable[TopicPartition]) -> None:
        """Note the end of a call; those of others are ignored."""
        self._under_way.difference_update(keys)
