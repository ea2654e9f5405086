"""A queue of queues, ordered by the first item of each; an outdated order is corrected only at the head."""

import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from drover.reconcile.starts.rank import Rank

# What comes first: in flight before pending, the plan that was served least, the rank.
Turn = tuple[int, int, Rank]
Order = TypeVar("Order", Turn, Rank)
Name = TypeVar("Name", bound=Hashable)


@dataclass(slots=True)
class LazyQueue(Generic[Order, Name]):
    """The names of queues, ordered by the first item of each.

    The order under which a name is queued may be too early: a plan may have been served, or what was first may have
    gone. It is never too late, so `first` corrects it when the name comes first.
    """

    # The number breaks ties, since names cannot be compared: an item that has just moved is known under two of them.
    _heap: list[tuple[Order, int, Name]] = field(default_factory=list)
    _number: int = 0
    # The order under which each is queued: what is queued under another one was queued anew since.
    _orders: dict[Name, Order] = field(default_factory=dict)

    def push(self, name: Name, order: Order) -> None:
        """Queue a name, also one that is queued and now has something earlier."""
        if self._orders.get(name) != order:
            self._orders[name] = order
            self._number += 1
            heapq.heappush(self._heap, (order, self._number, name))

    def first(self, order_of: Callable[[Name], Order | None]) -> tuple[Order, Name] | None:
        """Return what comes first; `order_of` tells the order of a name by now, None if it is to be dropped."""
        while self._heap:
            known, number, name = self._heap[0]
            if self._orders.get(name) is not known:
                heapq.heappop(self._heap)
                continue
            order = order_of(name)
            if order is None:
                heapq.heappop(self._heap)
                del self._orders[name]
            elif order <= known:
                return order, name
            else:
                self._orders[name] = order
                heapq.heapreplace(self._heap, (order, number, name))
        return None
