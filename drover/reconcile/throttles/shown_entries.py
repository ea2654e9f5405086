"""A topic's throttled replica lists as Kafka showed them, as sets, since single entries are looked up often."""

from dataclasses import dataclass
from typing import Self

from drover.facts import EVERY_REPLICA, ThrottledReplicas


@dataclass(frozen=True, slots=True)
class ShownEntries:
    """The entries of both lists; `has_star` says that one of them throttles every replica."""

    leader: frozenset[str]
    follower: frozenset[str]
    has_star: bool

    @classmethod
    def of(cls, lists: ThrottledReplicas) -> Self:
        """Convert the lists that were read."""
        leader, follower = frozenset(lists.leader), frozenset(lists.follower)
        return cls(leader, follower, EVERY_REPLICA in leader or EVERY_REPLICA in follower)
