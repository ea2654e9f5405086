"""How many steps may begin in a second: small copies share slots, so that slots alone could overload the controller."""

from collections import deque

from drover.reconcile.contract import MAX_PARTITIONS_PER_CALL

# As many as one call may name: a controller gets no more in a second than in one full request.
MOST_STARTS, WINDOW_MS = MAX_PARTITIONS_PER_CALL, 1000


class StartPace:
    """The steps that began within the last second; they end with the ownership. Times are monotonic."""

    def __init__(self) -> None:
        self._begun: deque[tuple[int, int]] = deque()
        self._count = 0

    def room(self, now_ms: int) -> int:
        """Return how many may begin now."""
        while self._begun and self._begun[0][0] <= now_ms - WINDOW_MS:
            self._count -= self._begun.popleft()[1]
        return MOST_STARTS - self._count

    def begin(self, count: int, now_ms: int) -> None:
        """Count steps that begin."""
        if count:
            self._begun.append((now_ms, count))
            self._count += count

    def due_ms(self, now_ms: int) -> int | None:
        """Tell when more may begin; None if some may now."""
        return None if self.room(now_ms) > 0 else self._begun[0][0] + WINDOW_MS
