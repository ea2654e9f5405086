"""Leaders: who comes first in the lists, changed in as few partitions as possible."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from heapq import heappop, heappush

from drover.planner.bands import ROUNDING, water_level
from drover.planner.budget import Budget
from drover.planner.layout import Layout

Came = dict[int, tuple[int, int]]
"""How a broker was reached: from which broker, over which partition."""


class Leading:
    """Balances preferred leaders by order alone, in the partitions that it may reorder.

    A broker may lead from `low` to `high` partitions; `mean` is its fair share. Only brokers that may receive replicas
    are given leaders, and none that should not lead.
    """

    def __init__(self, layout: Layout, partitions: Iterable[int]) -> None:
        self.layout = layout
        self.able = layout.may_lead
        self._demoted = {(broker.id, topic) for broker in layout.model.brokers for topic in broker.demoted_topics}
        self.mean = _fair_share(layout, self._demoted)
        self.high = max(math.ceil(self.mean - ROUNDING), math.floor(self.mean * (1 + layout.limits.leaders_above)))
        self.low = math.floor(self.mean * (1 - layout.limits.below))
        # By giver and by taker the partitions that one leads and the other could, the first on top of each heap; one
        # that another broker leads by now is dropped when it comes to the top.
        self._takers: dict[int, dict[int, list[int]]] = {number: {} for number in layout.count}
        self._givers: dict[int, dict[int, list[int]]] = {number: {} for number in layout.count}
        for partition in sorted(partitions):
            self._link(partition)

    def _link(self, partition: int) -> None:
        """Take note of who could lead a partition instead of its leader."""
        giver = self.layout.first[partition]
        for taker in self.layout.replicas[partition]:
            if taker != giver and self.may_lead(partition, taker):
                heap = self._takers[giver].setdefault(taker, [])
                self._givers[taker][giver] = heap
                heappush(heap, partition)

    def choose(self, partitions: Collection[int], budget: Budget) -> None:
        """Choose the leader of partitions that lose theirs, so that the fewest lead more than others."""
        changed = True
        while changed and budget.spend(len(partitions)):
            changed = False
            for partition in sorted(partitions):
                present = self.layout.first[partition]
                allowed = [broker for broker in self.layout.replicas[partition] if self.may_lead(partition, broker)]
                if not allowed:
                    continue
                leaders = self.layout.leaders
                best = min(
                    allowed, key=lambda broker: (leaders[broker] - (broker == present), broker != present, broker)
                )
                if (
                    best != present
                    and leaders[best] + 1 < leaders[present] + (not self.may_lead(partition, present)) * 10**9
                ):
                    self._lead(partition, best)
                    changed = True

    def even_out(self, budget: Budget) -> None:
        """Bring every broker between `low` and `high`, as far as orders can, by the shortest chains of reorders."""
        leaders = self.layout.leaders
        for broker in sorted(self.able, key=lambda number: (-leaders[number], number)):
            while leaders[broker] > self.high and self._hand_on(broker, budget):
                pass
        for broker in sorted(self.able, key=lambda number: (leaders[number], number)):
            while leaders[broker] < self.low and self._take_over(broker, budget):
                pass

    def _hand_on(self, start: int, budget: Budget) -> bool:
        """Pass one leadership on from a broker, over others if need be, to the one with the most room for it."""
        leaders = self.layout.leaders
        goals, came = self._reach(start, self._successors, lambda broker: leaders[broker] < self.high, budget)
        if not goals:
            return False
        for giver, partition, taker in _way(start, min(goals, key=lambda broker: (leaders[broker], broker)), came):
            assert self.layout.first[partition] == giver
            self._lead(partition, taker)
        return True

    def _take_over(self, start: int, budget: Budget) -> bool:
        """Give one more leadership to a broker, over others if need be, from the one that can spare it best."""
        leaders = self.layout.leaders
        spare = max(self.low, leaders[start] + 1)
        goals, came = self._reach(start, self._predecessors, lambda broker: leaders[broker] > spare, budget)
        if not goals:
            return False
        for taker, partition, giver in _way(start, max(goals, key=lambda broker: (leaders[broker], -broker)), came):
            assert self.layout.first[partition] == giver
            self._lead(partition, taker)
        return True

    def _successors(self, broker: int, budget: Budget) -> list[tuple[int, int]] | None:
        """Return who could lead instead of a broker, each with the first such partition; None beyond the budget."""
        return self._first_links(self._takers[broker], lambda _: broker, budget)

    def _predecessors(self, broker: int, budget: Budget) -> list[tuple[int, int]] | None:
        """Return whom a broker could lead instead of, each with the first such partition; None beyond the budget."""
        return self._first_links(self._givers[broker], lambda giver: giver, budget)

    def _first_links(
        self, heaps: Mapping[int, list[int]], leader_of: Callable[[int], int], budget: Budget
    ) -> list[tuple[int, int]] | None:
        if not budget.spend(len(heaps)):
            return None
        first, replicas = self.layout.first, self.layout.replicas
        found: list[tuple[int, int]] = []
        for other, heap in heaps.items():
            leader = leader_of(other)
            while heap and first[heap[0]] != leader:
                heappop(heap)
            if heap:
                found.append((heap[0], other))
        found.sort(key=lambda link: (link[0], replicas[link[0]].index(link[1])))
        return found

    def _reach(
        self,
        start: int,
        neighbours: Callable[[int, Budget], Iterable[tuple[int, int]] | None],
        is_goal: Callable[[int], bool],
        budget: Budget,
    ) -> tuple[list[int], Came]:
        """Search breadth first for the nearest brokers that are a goal; also return how each broker was reached.

        No goals are returned when none can be reached, or when the budget is spent.
        """
        came: Came = {}
        frontier = [start]
        while frontier:
            reached: list[int] = []
            for broker in frontier:
                edges = neighbours(broker, budget)
                if edges is None:
                    return [], came
                for partition, other in edges:
                    if other != start and other not in came:
                        came[other] = (broker, partition)
                        reached.append(other)
            goals = [broker for broker in reached if is_goal(broker)]
            if goals:
                return goals, came
            frontier = reached
        return [], came

    def may_lead(self, partition: int, broker: int) -> bool:
        """Whether a replica can lead, and should: it is in sync, or will be since it is copied anew."""
        facts = self.layout.model.partitions[partition]
        if broker not in self.able or (self._demoted and (broker, facts.topic) in self._demoted):
            return False
        return broker in facts.isr or broker not in self.layout.original[partition]

    def _lead(self, partition: int, broker: int) -> None:
        self.layout.lead(partition, broker)
        self._link(partition)

    def restore(self, partitions: Iterable[int]) -> None:
        """Put back the original leader wherever no broker is further outside its bounds for it."""
        for partition in partitions:
            first = self.layout.original[partition][0]
            present = self.layout.first[partition]
            if first == present or first not in self.layout.replicas[partition]:
                continue
            before = self._outside(first) + self._outside(present)
            if self._outside(first, 1) + self._outside(present, -1) <= before:
                self._lead(partition, first)

    def _outside(self, broker: int, more: int = 0) -> int:
        """Return how many leaders a broker has outside its bounds, with so many more than it has."""
        leaders = self.layout.leaders[broker] + more
        return max(0, leaders - self.high) + max(0, self.low - leaders)

    def outside(self) -> Iterable[tuple[int, int]]:
        """Return the brokers that lead more or fewer partitions than they should, and how many."""
        for broker in sorted(self.able):
            if self._outside(broker):
                yield broker, self.layout.leaders[broker]


def _fair_share(layout: Layout, demoted: Collection[tuple[int, str]]) -> float:
    """Return how many partitions a broker leads if leaders are as even as orders can make them.

    Brokers that cannot be given leaders are no part of it; what they head stays with them, unless they are being
    emptied. Nobody leads more partitions than it has replicas of that it should lead: the others lead what a nearly
    empty one cannot. `demoted` are brokers with topics that they should not lead.
    """
    able = layout.may_lead
    total = sum(layout.leaders.get(number, 0) for number in layout.may_head | layout.leaving)
    mean = total / max(1, len(able))
    kept = Counter(
        broker
        for facts, replicas in zip(layout.model.partitions if demoted else (), layout.replicas, strict=False)
        for broker in replicas
        if (broker, facts.topic) in demoted
    )
    held = [layout.count[number] - kept[number] for number in able]
    if sum(held) <= total or min(held) >= mean:
        return mean
    return water_level(held, sum(held) - total)


def _way(start: int, goal: int, came: Came) -> Iterable[tuple[int, int, int]]:
    """Yield the links of the way from the start to a goal, the last first: broker, partition, next broker."""
    while goal != start:
        broker, partition = came[goal]
        yield broker, partition, goal
        goal = broker


def lead_elsewhere(layout: Layout, partitions: Iterable[int], budget: Budget) -> None:
    """Let another replica lead where the first has changed to one that should not, if there is one that should."""
    leading = Leading(layout, ())
    changed = [each for each in partitions if layout.first[each] != layout.original[each][0]]
    leading.choose([each for each in changed if not leading.may_lead(each, layout.first[each])], budget)
