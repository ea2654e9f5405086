"""How plans share free slots: the plan that was served least comes first; a higher priority makes a start cost less.

Start-time fair queueing: each start costs its plan `HIGHEST_WEIGHT / weight` per copy, and a plan that begins to wait
enters at the cost that is served now. So no plan waits for ever: between two starts of one plan, another one starts at
most as many copies as its weight is larger.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from drover.events.plans import Priority

WEIGHTS: Mapping[Priority, int] = {Priority.HIGH: 100, Priority.NORMAL: 10, Priority.LOW: 1}
HIGHEST_WEIGHT = max(WEIGHTS.values())


@dataclass(slots=True)
class Shares:
    """The cost that each waiting plan was served; it ends with the ownership. `priority_of` is called at each start."""

    priority_of: Callable[[str], Priority]
    _served: dict[str, int] = field(default_factory=dict)
    _waiting: dict[str, int] = field(default_factory=dict)
    _expected: dict[str, int] = field(default_factory=dict)
    _now: int = 0

    def enter(self, plan: str) -> None:
        """Note that one more move of a plan waits."""
        waiting = self._waiting.get(plan, 0)
        self._waiting[plan] = waiting + 1
        if not waiting:
            self._served[plan] = max(self._served.get(plan, 0), self._now)

    def leave(self, plan: str) -> None:
        """Note that a move of a plan waits no longer; a plan without any is forgotten once others have caught up."""
        self._waiting[plan] -= 1
        if not self._waiting[plan]:
            del self._waiting[plan]
            if self._served[plan] <= self._now or not self._waiting:
                del self._served[plan]

    def served(self, plan: str) -> int:
        """Return the cost that a plan was served and is expected to be; the least comes first."""
        return self._served.get(plan, self._now) + self._expected.get(plan, 0)

    def begin(self) -> None:
        """Begin a pass, without expected starts."""
        self._expected.clear()

    def expect(self, plan: str, copies: int) -> None:
        """Count a start of a plan that is expected once its partition was observed."""
        self._expected[plan] = self._expected.get(plan, 0) + self._cost(plan, copies)

    def _cost(self, plan: str, copies: int) -> int:
        return max(1, copies) * HIGHEST_WEIGHT // WEIGHTS[self.priority_of(plan)]

    def start(self, plan: str, copies: int) -> None:
        """Charge a plan for a start."""
        before = self._served.get(plan, self._now)
        self._now = max(self._now, before)
        self._served[plan] = before + self._cost(plan, copies)
