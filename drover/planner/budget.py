"""How much work a planner may still do."""

from collections.abc import Callable

ASK_EVERY = 256


class Budget:
    """Counts candidates that were tried, and asks `stop` every few hundred; once it is spent it stays spent."""

    def __init__(self, work: int | None, stop: Callable[[], bool]) -> None:
        self._left = work
        self._stop = stop
        self._until_asked = 0
        self.spent = False

    def part(self, work: int) -> "Budget":
        """Set so much work aside for one search, so that others are not left without; it counts here as well."""
        return Budget(work, lambda: not self.spend(ASK_EVERY))

    def spend(self, candidates: int) -> bool:
        """Take note of candidates that are about to be tried; whether there is work left for them."""
        if self.spent:
            return False
        if self._left is not None:
            self._left -= candidates
            self.spent = self._left < 0
        self._until_asked -= candidates
        if self._until_asked <= 0:
            self._until_asked = ASK_EVERY
            self.spent = self.spent or self._stop()
        return not self.spent
