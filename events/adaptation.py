"""Events that restrict moves while replicas lag, and that end the restrictions."""

from enum import StrEnum

from drover.events.base import Event
from drover.events.partitions import PartitionReference


class AllowanceReason(StrEnum):
    """The cause of a change in a broker's number of slots."""

    LOSING_REPLICAS = "losing-replicas"
    RECOVERED = "recovered"
    SWITCHED_OFF = "switched-off"


class BrokerAllowanceChanged(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-allowance-changed"):
    """A broker has fewer or more slots from here on: those of the limits, halved `halvings` times, and at least one.

    Copies that run go on. `detail` is a sentence for a person: which replica lags, or why the broker gets slots back.
    """

    broker: int
    halvings: int
    previous_halvings: int
    why: AllowanceReason
    detail: str


class StartsSuspended(Event, frozen=True, kw_only=True, omit_defaults=True, tag="starts-suspended"):
    """Partitions are below min.insync.replicas: from here on no copy begins, except of these partitions.

    `count` is how many there are, and `partitions` names the first of them: a copy may repair them.
    """

    count: int
    partitions: tuple[PartitionReference, ...]


class StartsResumed(Event, frozen=True, kw_only=True, omit_defaults=True, tag="starts-resumed"):
    """No partition is below min.insync.replicas any more: copies may begin again."""


AdaptationEvent = BrokerAllowanceChanged | StartsSuspended | StartsResumed
