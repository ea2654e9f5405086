"""PURE: whether a broker lives, is out of reach, is gone or is not registered; everything else asks this module.

Metadata lists only brokers that offer the listener by which it was asked. "Not listed" is therefore not "dead": the
proof of life is the ISR, since the controller removes a broker from every ISR when it fences it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from drover.facts import PartitionFacts


class BrokerStanding(Enum):
    """The standing of a broker in its cluster.

    `ALIVE`: Metadata lists it. `UNREACHABLE`: it is not listed, but is in the ISR of a partition that another broker
    leads, or leads itself: it lives, and does not offer the listener by which the cluster was asked. `GONE`: neither.
    `UNREGISTERED`: gone, and Kafka has no registration for it, so that it refuses every replica list that names it.
    """

    ALIVE = "alive"
    UNREACHABLE = "unreachable"
    GONE = "gone"
    UNREGISTERED = "unregistered"


@dataclass(frozen=True, slots=True)
class Brokers:
    """The brokers of a cluster as it was last seen.

    `live` are those that Metadata lists, `unreachable` those that live unlisted. `registered` are those that
    DescribeCluster lists, fenced ones included (KIP-1073); None where the cluster does not say, before Kafka 4.0.
    """

    live: frozenset[int] = frozenset()
    unreachable: frozenset[int] = frozenset()
    registered: frozenset[int] | None = None

    def standing(self, broker: int) -> BrokerStanding:
        """Tell what a broker is."""
        if broker in self.live:
            return BrokerStanding.ALIVE
        if broker in self.unreachable:
            return BrokerStanding.UNREACHABLE
        if self.registered is not None and broker not in self.registered:
            return BrokerStanding.UNREGISTERED
        return BrokerStanding.GONE

    def dead(self, brokers: Iterable[int]) -> tuple[int, ...]:
        """Return those that do not live: gone or unregistered, in their order."""
        return tuple(broker for broker in brokers if broker not in self.live and broker not in self.unreachable)

    def unregistered(self, brokers: Iterable[int]) -> tuple[int, ...]:
        """Return those that Kafka refuses to see in any replica list, in their order."""
        return tuple(broker for broker in brokers if self.standing(broker) is BrokerStanding.UNREGISTERED)


NO_BROKERS = Brokers()
"""The brokers of a cluster that was not seen."""


def hidden_leaders(facts: PartitionFacts, live: Collection[int]) -> tuple[int, ...]:
    """Return the brokers of which one leads a partition without being listed; empty where the leader is seen, or none.

    Where only one of the ISR is not listed, that is who leads.
    """
    if not facts.leader_lacks_listener:
        return ()
    return tuple(broker for broker in facts.isr if broker not in live)


def unreachable_brokers(live: Collection[int], partitions: Iterable[PartitionFacts | None]) -> frozenset[int]:
    """Return the brokers that these partitions show to live although Metadata does not list them.

    Where somebody leads, every member of the ISR lives. Where nobody does, the last member of an ISR may be dead: it
    stays there. A leader that lacks the listener of the request is shown as none, with LISTENER_NOT_FOUND.
    """
    listed = frozenset(live)
    unlisted: set[int] = set()
    for facts in partitions:
        if facts is None or (facts.leader is None and not facts.leader_lacks_listener):
            continue
        if not listed.issuperset(facts.isr):
            unlisted.update(facts.isr)
    return frozenset(unlisted - listed)
