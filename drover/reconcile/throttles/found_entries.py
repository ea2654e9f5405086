"""A topic's throttled replica lists as they were read, as sets: they are asked for single entries, again and again."""

from dataclasses import dataclass
from typing import Self

from drover.facts import EVERY_REPLICA, ThrottledReplicas


@dataclass(frozen=True, slots=True)
class FoundEntries:
    """The entries of both lists; `has_star` says that one of them throttles every replica."""

    leader: frozenset[str]
    follower: frozenset[str]
    has_star: bool

    @classmethod
    def of(cls, lists: ThrottledReplicas) -> Self:
        """Take over what was read."""
        leader, follower = frozenset(lists.leader), frozenset(lists.follower)
        return cls(leader, follower, EVERY_REPLICA in leader or EVERY_REPLICA in follower)
