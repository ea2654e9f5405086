"""An index of what waits, and room as the tests have it."""

from collections import Counter
from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition
from drover.events.plans import Priority
from drover.reconcile.starts.candidates import Candidates
from drover.reconcile.starts.rank import Rank
from drover.reconcile.starts.resources import Budget, HasRoom, Needs, Resource, amount
from drover.reconcile.starts.shares import Shares
from drover.state.ports import Port
from drover.state.slot_share import WHOLE_SLOT

LIMIT = 2
LEADERS = Budget.LEADERS


def key_of(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def way(broker: int) -> Resource:
    return Port(broker, "in")


def ways(*brokers: int) -> Needs:
    return tuple(map(way, brokers))


def rank(number: int, tier: int = 1, plan: str = "p") -> Rank:
    return Rank(tier, 0, 0, number, plan)


def index(max_looks: int = 0, **priorities: Priority) -> Candidates:
    return Candidates(Shares(lambda plan: priorities.get(plan, Priority.NORMAL)), max_looks)


@dataclass
class Rooms:
    """Room as the tests have it: what is full, or what is taken in sixteenths, and nothing that is kept for others."""

    candidates: Candidates
    full: set[Resource] = field(default_factory=set)
    taken: Counter[Resource] = field(default_factory=Counter)

    def has_room(self, resource: Resource, share: int) -> bool:
        most = LIMIT if isinstance(resource, Budget) else LIMIT * WHOLE_SLOT
        return resource not in self.full and self.taken[resource] + amount(resource, share) <= most

    def lacking(self, needs: Needs, key: TopicPartition, share: int) -> list[Resource]:
        reserved = self.candidates.reserved
        return [one for one in needs if not self.has_room(one, share) or reserved.get(one, key) != key]


def wake(candidates: Candidates, room: HasRoom) -> None:
    """Wake what may start, as when something has become free anywhere."""
    candidates.free_all()
    candidates.wake_parked(room)


def tried(candidates: Candidates) -> list[int]:
    found = []
    for candidate in candidates.ready():
        found.append(candidate.key.partition)
        candidates.drop(candidate.key)
    return found
