"""The contract of a capability for one managed cluster; pure, time is an argument.

A capability owns a slice of the state (what the log says) and a cache of what was observed (gone with the ownership).
It reads other slices, and changes its own by emitting events, never directly.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum

from drover.events.partitions import TopicPartition
from drover.events.records import AnyEvent
from drover.facts import Move
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.messages import Effect, Input, Moment
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState

# A predecessor's call starts within 1 s of its intent and ends within 4 s: after that its outcome is on the cluster.
TAKEOVER_WAIT_MS = 5000


class Urgency(IntEnum):
    """How closely a cluster is watched: nothing to do, something waits, or something is in flight."""

    IDLE = 0
    WAITING = 1
    BUSY = 2


class Reconciler:
    """One capability of one managed cluster while its shard is owned; override the methods that it needs.

    `state` is the speculative one: what the log says, and what the batch under way adds. `observed` is shared by all
    capabilities of the cluster and read-only to them.
    """

    def __init__(self, state: ClusterState, observed: ObservationCache) -> None:
        self.state = state
        self.observed = observed

    def begin(self, now: Moment) -> None:
        """Begin an ownership: build caches and indexes from the state; a predecessor may have left calls open."""

    def handle(self, entry: Input, batch: BatchBuilder) -> None:
        """Handle an observation, the end of a call or a sample; observations hold only what still counts."""

    def applied(self, event: AnyEvent) -> None:
        """Update caches and indexes after an event of any capability has changed the state."""

    def reconcile(self, batch: BatchBuilder) -> None:
        """Compare state and observations, and emit what follows; emit nothing when they agree."""

    def committed(self) -> None:
        """Note that everything emitted is durable and valid: its calls may be made (R6)."""

    def wanted(self, moves: Mapping[TopicPartition, Move], now: Moment) -> Iterable[TopicPartition]:
        """List the partitions to look at now, given the moves that Kafka has just listed."""
        del moves, now
        return ()

    def wants_brokers(self, now: Moment) -> bool:
        """Whether the live brokers must be looked up although no partition is wanted."""
        del now
        return False

    def wants_survey(self, now: Moment) -> bool:
        """Whether every partition of the cluster must be looked at now, in one request."""
        del now
        return False

    def owes(self, now: Moment) -> bool:
        """Whether calls are due although their intents are not in this batch.

        Even an empty batch is appended then: if it is valid, this worker is still the owner and may call.
        """
        del now
        return False

    def effects(self, now: Moment, start_by_ms: int) -> Iterable[Effect]:
        """Make the calls whose intents are durable, each once; none may start after `start_by_ms` (monotonic)."""
        del now, start_by_ms
        return ()

    def withhold(self, now: Moment, why: str) -> None:
        """Let the calls whose intents are durable lapse: nothing may be sent to the cluster; `why` is recorded."""

    def due_ms(self, now: Moment) -> int | None:
        """Tell when (monotonic) to reconcile although nothing arrives; None if never."""
        del now
        return None

    def urgency(self) -> Urgency:
        """Tell how closely the cluster should be watched for this capability's sake."""
        return Urgency.IDLE

    def is_pressing(self, now: Moment) -> bool:
        """Whether something could begin at once if it were looked at, so that the next look does not wait its turn."""
        del now
        return False
