"""The narrow view of throttles that the starter needs."""

from typing import Protocol

from drover.reconcile.messages import Timestamp
from drover.state.reassignment import Block, Reassignment


class Throttles(Protocol):
    """The throttles of one cluster that steps wait for."""

    @property
    def version(self) -> int:
        """A number that grows whenever a prepared step may have become ready."""
        ...

    def is_throttled(self, reassignment: Reassignment) -> bool:
        """Whether a throttle holds for the reassignment: its plan's, or the cluster's."""
        ...

    def is_ready(self, reassignment: Reassignment, now: Timestamp) -> bool:
        """Whether every throttle of a prepared step is set."""
        ...

    def refusal_block(self, reassignment: Reassignment, at_ms: int) -> Block | None:
        """Return the block of a prepared step whose throttle Kafka refuses to set or show; None if it does not."""
        ...

    def entries_of(self, topic: str) -> int:
        """Count the entries that a topic's list of leaders' throttled replicas needs."""
        ...
