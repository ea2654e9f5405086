"""The narrow view of throttling that starting steps needs."""

from typing import Protocol

from drover.reconcile.messages import Timestamp
from drover.state.reassignment import Block, Reassignment


class Throttles(Protocol):
    """The throttles of one cluster, as far as a step must wait for them."""

    @property
    def version(self) -> int:
        """A number that grows whenever a prepared step may have become ready."""
        ...

    def is_throttled(self, reassignment: Reassignment) -> bool:
        """Whether a throttle holds for the reassignment: its plan's, or the cluster's."""
        ...

    def is_ready(self, reassignment: Reassignment, now: Timestamp) -> bool:
        """Whether nothing more is to be set for a step that is prepared."""
        ...

    def refusal_block(self, reassignment: Reassignment, at_ms: int) -> Block | None:
        """Return the block of a prepared step of whose throttle Kafka refuses something; None if it does not."""
        ...

    def entries_of(self, topic: str) -> int:
        """Count the entries that a topic's list of leaders' throttled replicas needs."""
        ...
