"""Throttle settings as Kafka showed them: a topic's lists as sets, since single entries are looked up often."""

from dataclasses import dataclass
from typing import Self

from drover.events.throttles import Rates
from drover.facts import EVERY_REPLICA, BrokerRates, ThrottledReplicas


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


def shown_rates(shown: BrokerRates) -> Rates:
    """Return a broker's rates as the ledger has them."""
    return Rates(shown.leader_bytes_per_second, shown.follower_bytes_per_second)
