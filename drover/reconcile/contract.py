"""The contract of a capability for one managed cluster; pure, time is an argument.

A capability owns a slice of the state (what the log says) and a cache of what was observed (gone with the ownership).
It reads other slices, and changes its own by emitting events, never directly.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from msgspec import Struct

from drover.events.base import PartitionEvent
from drover.events.partitions import TopicPartition
from drover.events.records import AnyEvent
from drover.facts import Move
from drover.fold.plans import ENDINGS
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.messages import Effect, Input, Timestamp
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState

# A predecessor's call starts within 1 s of its intent and ends within 4 s: after that its outcome is on the cluster.
TAKEOVER_WAIT_MS = 5000


class Urgency(IntEnum):
    """How closely a cluster is watched: nothing to do, something waits, or something is in flight."""

    IDLE = 0
    WAITING = 1
    BUSY = 2


class Attention(Struct, frozen=True, gc=False):
    """The needs of a capability: what to observe, how urgently, and when to call it again.

    `partitions` are to be looked at, for `survey` every partition of the cluster at once, and for `brokers` the live
    brokers even if no partition is. `due_ms` (monotonic) is when to reconcile although nothing arrives. `is_pressing`
    says that something could begin at once if it were looked at, so that the next look does not wait its turn. `owes`
    says that calls are due although their intents are not in this batch: even an empty batch is appended then, because
    a valid one proves that this worker is still the owner and may call.
    """

    partitions: Collection[TopicPartition] = ()
    survey: bool = False
    brokers: bool = False
    due_ms: int | None = None
    urgency: Urgency = Urgency.IDLE
    is_pressing: bool = False
    owes: bool = False


NOTHING = Attention()


def merged(parts: Iterable[Attention]) -> Attention:
    """Return what several capabilities need together: all partitions, the earliest time, the highest urgency."""
    partitions: set[TopicPartition] = set()
    survey = brokers = is_pressing = owes = False
    due_ms, urgency = None, Urgency.IDLE
    for part in parts:
        if part.partitions:
            partitions.update(part.partitions)
        survey, brokers = survey or part.survey, brokers or part.brokers
        is_pressing, owes = is_pressing or part.is_pressing, owes or part.owes
        urgency = max(urgency, part.urgency)
        if part.due_ms is not None and (due_ms is None or part.due_ms < due_ms):
            due_ms = part.due_ms
    return Attention(frozenset(partitions), survey, brokers, due_ms, urgency, is_pressing, owes)


@dataclass(frozen=True, slots=True)
class Changes:
    """Events that have changed the state, in their order.

    `partitions` are those that they name one by one, each once, and `ended` those of which a reassignment has ended.
    """

    events: tuple[AnyEvent, ...]
    partitions: Collection[TopicPartition]
    ended: Collection[TopicPartition]


def changes_by(events: tuple[AnyEvent, ...]) -> Changes:
    """Return these events with the partitions that they are about."""
    partitions: dict[TopicPartition, None] = {}
    ended: list[TopicPartition] = []
    for event in events:
        if isinstance(event, PartitionEvent):
            key = event.key
            partitions[key] = None
            if type(event) in ENDINGS:
                ended.append(key)
    return Changes(events, partitions, ended)


class Reconciler:
    """One capability of one managed cluster while its shard is owned; override the hooks that it needs.

    It is made when an ownership begins, at `now`: it builds its caches and indexes from the state, and expects calls
    that a predecessor has left open. `state` is the speculative one: what the log says, and what the batch under way
    adds. `observed` is shared by all capabilities of the cluster and read-only to them.

    Four hooks say what it does. A fifth, `follow`, keeps its indexes: a scan of the state in `reconcile` would cost as
    much as everything that waits, at every batch.
    """

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp) -> None:
        del now
        self.state = state
        self.observed = observed

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Handle an observation, the end of a call or a sample; observations hold only what still counts."""

    def follow(self, changes: Changes) -> None:
        """Update caches and indexes after events of any capability; the state is as it is after the last of them."""

    def reconcile(self, batch: BatchBuilder) -> None:
        """Compare state and observations, and emit what follows; emit nothing when they agree."""

    def effects(self, now: Timestamp, start_by_ms: int, lapsed: str | None) -> Iterable[Effect]:
        """Make the calls that are due, each once; none may start after `start_by_ms` (monotonic).

        Everything that was emitted is durable and valid by now (R6). If `lapsed` says why nothing may be sent to the
        cluster, calls that were intended end with that as their reason.
        """
        del now, start_by_ms, lapsed
        return ()

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Say what to look at and when to be called again; changes nothing.

        `moves` is what Kafka has just listed. It is None while nobody is about to look: then partitions need not be
        chosen, so that asking costs the same however many wait.
        """
        del now, moves
        return NOTHING
