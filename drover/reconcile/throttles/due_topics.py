"""Topics to compare again at a set time, so that no batch scans those that only wait."""

import heapq


class DueTopics:
    """Each waiting topic once, by the time (monotonic) at which it is due."""

    def __init__(self) -> None:
        self._due: list[tuple[int, str]] = []
        self._waiting: set[str] = set()

    def put(self, topic: str, due_ms: int) -> None:
        """Let a topic be due at this time, unless it already waits for another."""
        if topic not in self._waiting:
            self._waiting.add(topic)
            heapq.heappush(self._due, (due_ms, topic))

    def due(self, now_ms: int) -> list[str]:
        """Take out the topics whose time has come."""
        due: list[str] = []
        while self._due and self._due[0][0] <= now_ms:
            due.append(heapq.heappop(self._due)[1])
        self._waiting.difference_update(due)
        return due

    def due_ms(self, now_ms: int) -> int | None:
        """Tell when the next topic is due; None if none waits, or if one is due already."""
        return self._due[0][0] if self._due and self._due[0][0] > now_ms else None
