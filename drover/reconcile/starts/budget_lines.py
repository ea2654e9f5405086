"""The lines in front of cluster-wide budgets, for moves that have room on their brokers but not in a budget."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from drover.reconcile.starts.lanes import Lanes
from drover.reconcile.starts.lazy_queue import LazyQueue, Turn
from drover.reconcile.starts.rank import Lane, Rank
from drover.reconcile.starts.resources import Budget, Needs, Resource

# Moves that need the same resources, and the same share of a slot.
Group = tuple[Needs, int]
# How many groups may leave the lines in one batch because a broker has filled up; the next batch continues.
MAX_LEAVING = 100


@dataclass(slots=True)
class _Line:
    """The line of one budget: groups by rank within each plan, and plans in turn."""

    by_lane: dict[Lane, LazyQueue[Rank, Group]] = field(default_factory=dict)
    queue: LazyQueue[Turn, Lane] = field(default_factory=LazyQueue)


@dataclass(slots=True)
class BudgetLines:
    """Groups that lacked nothing but a budget when they were last checked; each is in at most one line.

    A group leaves its line when its first move lacks anything else, and rejoins once there is room for that. While a
    budget is used up, a freed broker slot is therefore not offered to moves that cannot start anyway.
    """

    turn_of: Callable[[Rank], Turn]
    # The parked moves of each group.
    parked: Mapping[Group, Lanes]
    _lines: dict[Budget, _Line] = field(default_factory=dict)
    _budget_of: dict[Group, Budget] = field(default_factory=dict)
    _left: int = 0

    def begin(self) -> None:
        """Start counting for a new batch."""
        self._left = 0

    @property
    def is_behind(self) -> bool:
        """Whether `MAX_LEAVING` groups have left the lines in this batch."""
        return self._left >= MAX_LEAVING

    def budget_of(self, group: Group) -> Budget | None:
        """Return the budget that a group is in line for; None if it is in no line."""
        return self._budget_of.get(group)

    def join(self, group: Group, full: Sequence[Resource]) -> Budget | None:
        """Put a group in line if `full`, the resources that its first move lacks, are all budgets.

        Return the budget that it is in line for, whether it joined now or earlier; None if it is in no line.
        """
        if group not in self._budget_of and full and isinstance(full[0], Budget) and _are_budgets(full):
            self._budget_of[group] = full[0]
            for lane in self.parked[group].lanes():
                self.follow(group, lane)
        return self._budget_of.get(group)

    def follow(self, group: Group, lane: Lane) -> None:
        """Update the place of a group in its line, if it has one, after the first move of this lane has changed."""
        budget = self._budget_of.get(group)
        rank = None if budget is None else self.parked[group].first_rank(lane)
        if budget is not None and rank is not None:
            line = self._lines.setdefault(budget, _Line())
            line.by_lane.setdefault(lane, LazyQueue()).push(group, rank)
            first = line.by_lane[lane].first(lambda one: self._rank_in(budget, lane, one))
            if first is not None and first[1] == group:
                line.queue.push(lane, self.turn_of(rank))

    def first(self, budget: Budget) -> Group | None:
        """Return the group whose turn it is in the line of a budget; None if nobody waits there."""
        line = self._lines.get(budget)
        if line is None:
            return None
        found = line.queue.first(lambda lane: self._turn_in(budget, line, lane))
        if found is None:
            return None
        _, lane = found
        first = line.by_lane[lane].first(lambda group: self._rank_in(budget, lane, group))
        return None if first is None else first[1]

    def leave(self, group: Group) -> None:
        """Take a group out of its line."""
        del self._budget_of[group]
        self._left += 1

    def _turn_in(self, budget: Budget, line: _Line, lane: Lane) -> Turn | None:
        first = line.by_lane[lane].first(lambda group: self._rank_in(budget, lane, group))
        if first is None:
            del line.by_lane[lane]
            return None
        return self.turn_of(first[0])

    def _rank_in(self, budget: Budget, lane: Lane, group: Group) -> Rank | None:
        """Return the rank of a group's first move in a lane; None if it has none there or has left the line."""
        if self._budget_of.get(group) is not budget:
            return None
        lanes = self.parked.get(group)
        if lanes is None:
            del self._budget_of[group]
            return None
        return lanes.first_rank(lane)


def _are_budgets(resources: Iterable[Resource]) -> bool:
    return all(isinstance(one, Budget) for one in resources)
