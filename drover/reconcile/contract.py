"""The contract of a capability for one managed cluster; pure, time is an argument.

A capability owns a slice of the state, which the log determines, and a cache of observations, which ends with the
ownership. It reads other slices, and changes its own by emitting events, never directly.
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
# The most partitions that one call names.
MAX_PARTITIONS_PER_CALL = 1000
# Why the outcome of a call is unknown, beside the driver's own words.
OWNER_CHANGED = "the owner changed while the call was open"
LEFT_OUT = "Kafka's answer leaves the partition out"


class Urgency(IntEnum):
    """How closely a cluster is watched: nothing to do, something waits, or something is in flight."""

    IDLE = 0
    WAITING = 1
    BUSY = 2


class Attention(Struct, frozen=True, gc=False):
    """The needs of a capability: what to observe, how urgently, and when to call it again.

    `partitions` are to be observed; `survey` asks for every partition of the cluster at once, `brokers` for the live
    brokers even if no partition is observed. At `due_ms` (monotonic) `reconcile` is called even if no input arrives.
    `is_pressing` says that a step or call could begin right after an observation, so that the next one does not wait
    its turn. `owes` says that calls are due whose intents are not in this batch: even an empty batch is appended then,
    because a valid one proves that this worker is still the owner and may call.
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
    """Combine the needs of several capabilities: all partitions, the earliest time, the highest urgency."""
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

    `partitions` lists once each partition that an event of its own is about; `ended`, those whose reassignment ended.
    """

    events: tuple[AnyEvent, ...]
    partitions: Collection[TopicPartition]
    ended: Collection[TopicPartition]


def changes_by(events: tuple[AnyEvent, ...]) -> Changes:
    """Return these events with the partitions that they change."""
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
    that a predecessor has left open. `state` is the speculative one: the log's, with the events of the batch under
    way. `observed` is shared by all capabilities of the cluster and read-only to them.

    Four hooks do its work. A fifth, `follow`, keeps its indexes, so that `reconcile` need not scan the whole state in
    every batch.
    """

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp) -> None:
        del now
        self.state = state
        self.observed = observed

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Handle an observation, the end of a call or a sample; observations hold only partitions that still count."""

    def follow(self, changes: Changes) -> None:
        """Update caches and indexes after events of any capability; the state is as it is after the last of them."""

    def reconcile(self, batch: BatchBuilder) -> None:
        """Compare state and observations, and emit the events that follow; none when they agree."""

    def effects(self, now: Timestamp, start_by_ms: int, lapsed: str | None) -> Iterable[Effect]:
        """Make the calls that are due, each once; none may start after `start_by_ms` (monotonic).

        Everything that was emitted is durable and valid by now (R6). If `lapsed` says why nothing may be sent to the
        cluster, calls that were intended end with that as their reason.
        """
        del now, start_by_ms, lapsed
        return ()

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Return what to observe and when to call again; changes nothing.

        `moves` are those that Kafka has just listed. It is None if no observation is about to begin: then no partitions
        need be chosen, so that the call costs the same however many of them wait.
        """
        del now, moves
        return NOTHING
