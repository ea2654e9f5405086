"""Throttles that no reassignment needs, as a command names them: with their values, which may be deleted."""

from typing import Annotated

from msgspec import Meta, Struct

from drover.events.fields import BrokerId, ThrottledReplica, TopicName


class LeftoverRates(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The dynamic throttle rates that somebody has left on a broker, as they were seen; null where none is set."""

    broker: BrokerId
    leader: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    follower: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None

    def __post_init__(self) -> None:
        """Refuse an entry without values."""
        if self.leader is None and self.follower is None:
            raise ValueError("neither leader nor follower is given")


class LeftoverEntries(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Entries `partition:broker` that somebody has left in a topic's lists of throttled replicas."""

    topic: TopicName
    leader: tuple[ThrottledReplica, ...] = ()
    follower: tuple[ThrottledReplica, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an entry without values."""
        if not self.leader and not self.follower:
            raise ValueError("neither leader nor follower is given")
