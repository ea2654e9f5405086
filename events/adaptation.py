"""Events about what moves may do while partitions lose replicas."""

from enum import StrEnum

from events.base import Event
from events.partitions import PartitionReference


class AllowanceReason(StrEnum):
    """Why a broker may do less than its limits say, or more than before."""

    LOSING_REPLICAS = "losing-replicas"
    RECOVERED = "recovered"
    SWITCHED_OFF = "switched-off"


class BrokerAllowanceChanged(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-allowance-changed"):
    """The slots of a broker are halved so many times from here on, and one is always left; 0 is all of them.

    What runs goes on. `detail` names a partition that has lost a replica which no move explains.
    """

    broker: int
    halvings: int
    previous_halvings: int
    why: AllowanceReason
    detail: str


class StartsSuspended(Event, frozen=True, kw_only=True, omit_defaults=True, tag="starts-suspended"):
    """No copy begins from here on, except copies of the partitions named: it may repair them.

    They have fewer replicas in sync than min.insync.replicas. `count` is how many there are; the first are named.
    """

    count: int
    partitions: tuple[PartitionReference, ...]


class StartsResumed(Event, frozen=True, kw_only=True, omit_defaults=True, tag="starts-resumed"):
    """Copies may begin again."""


AdaptationEvent = BrokerAllowanceChanged | StartsSuspended | StartsResumed
