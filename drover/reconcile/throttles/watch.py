"""Reads again the settings that Drover has set, because other clients change them and a removed rate unbinds a copy.

Kafka notifies no client of such a change: the stock tool's `--verify` and `--cancel` delete every broker's rates, also
those of moves that go on. Times are monotonic.
"""

from collections import deque
from itertools import islice
from typing import TypeVar

from drover.reconcile.throttles.demand import Demand
from drover.state.throttles import ThrottlingState

T = TypeVar("T")

# Each broker and topic that moves need is read again at this interval.
WATCH_MS = 10_000
# One reading asks for so many of each, so that neither the cluster nor a batch has to handle thousands at once.
PORTION = 100


class Watch:
    """The settings to read again: all in force that moves need, in rounds."""

    def __init__(self) -> None:
        self._next_round_ms = 0
        self._brokers: deque[int] = deque()
        self._topics: deque[str] = deque()

    def portion(self, now_ms: int, state: ThrottlingState, demand: Demand) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Return the brokers and topics to read now; a new round begins when its time has come."""
        if now_ms >= self._next_round_ms and demand.brokers and not (self._brokers or self._topics):
            self._next_round_ms = now_ms + WATCH_MS
            self._brokers.extend(sorted(demand.brokers & state.broker_throttles.keys()))
            self._topics.extend(sorted(demand.topics.keys() & state.topic_throttles.keys()))
        return _taken(self._brokers), _taken(self._topics)

    def due_ms(self, now_ms: int, demand: Demand) -> int | None:
        """Tell when the next round begins; None if none will, or if it waits for a call that is under way."""
        return self._next_round_ms if demand.brokers and self._next_round_ms > now_ms else None


def _taken(waiting: deque[T]) -> tuple[T, ...]:
    portion = tuple(islice(waiting, PORTION))
    for _ in portion:
        waiting.popleft()
    return portion
