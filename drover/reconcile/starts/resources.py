"""The resources that a step needs room at."""

from enum import Enum
from typing import Literal, NamedTuple, Protocol

from drover.events.partitions import TopicPartition
from drover.state.ports import Port


class Uplink(NamedTuple):
    """One direction of a rack's uplink: copies into the rack from others, or out of it to others."""

    rack: str
    way: Literal["in", "out"]


class Budget(Enum):
    """A bound of the whole cluster."""

    COPIES = "max_replica_copies_in_flight"
    BYTES = "max_bytes_in_flight"
    LEADERS = "max_leader_movements"

    # Members are singletons, and Enum's own hash is a function in Python: it took a hundredth of a draft.
    __hash__ = object.__hash__


BUDGETS = tuple(Budget)


class Knowledge(Enum):
    """What must be known before a step begins."""

    SIZE = "size"


class Health(Enum):
    """A state of the whole cluster in which copies begin."""

    ENOUGH_IN_SYNC = "no partition below min.insync.replicas"


class RunningPlan(NamedTuple):
    """Leave for steps of a plan to begin: a paused plan gives none."""

    plan: str


class ReleasedPort(NamedTuple):
    """Leave for copies to begin this way into or out of a broker: a held broker gives none."""

    # The way comes first: a plain tuple of a `Port` is equal to one of the same fields.
    way: Literal["in", "out"]
    broker: int


# What can be full, or lacking: a way into or out of a broker, a rack's uplink, a budget, the health of the cluster, a
# size, a plan, the end of a hold, a topic's list of throttled replicas by its name.
Resource = Port | Uplink | Budget | Health | Knowledge | RunningPlan | ReleasedPort | str
# Everything that a step needs room at; a resource that it needs several times is there as often.
Needs = tuple[Resource, ...]


def amount(resource: Resource, share: int) -> int:
    """Return how much of a resource one copy takes: 1 of a budget, else its share of a slot in sixteenths."""
    return 1 if isinstance(resource, Budget) else share


class HasRoom(Protocol):
    """Room as the index asks for it."""

    def has_room(self, resource: Resource, share: int) -> bool:
        """Whether there is room for one more copy that takes this share of a slot."""
        ...

    def lacking(self, needs: Needs, key: TopicPartition, share: int) -> list[Resource]:
        """List the resources that have no room for what a reassignment needs."""
        ...
