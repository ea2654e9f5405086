"""PURE: one cluster's state at a place of the log, and the documents that each event may change.

The fold is `drover.fold.moves`, event by event. Beside the state this keeps the encoded pieces of documents, so that
the cost of an event does not grow with the work under way; `Scope` says which documents may differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from drover.events.base import PartitionEvent
from drover.events.brokers import BlacklistSet, BrokerFailureRecorded, BrokerReturnRecorded
from drover.events.healing import (
    BrokerOutageEnded,
    BrokerOutageNoted,
    HealChunkBegun,
    HealChunkPlanned,
    HealEnded,
    HealPlanned,
)
from drover.events.leadership import LeaderBalanceBegun, LeaderBalanceEnded
from drover.events.partitions import TopicPartition
from drover.events.plans import PlansForgotten
from drover.events.queue_entries import QueueEntryAdded, QueueEntryRemoved
from drover.events.reassignments import TargetReplaced
from drover.events.records import AnyEvent, FreezeEvent, PlanEvent
from drover.fold.evolve import apply
from drover.fold.moves import EVOLVING
from drover.projections.entries import Entries
from drover.projections.listings import (
    BatchEntry,
    Listing,
    TopicBatch,
    TopicListings,
    is_shown_alike,
    keep,
    listing_of,
    step_of,
)
from drover.state.cluster import ClusterState
from drover.state.reassignment import Reassignment
from drover.state.scheduling import QueueEntry

# A plan's partitions are shown in pieces of this size, by order of acceptance, so that pieces are never rearranged.
CHUNK_PARTITIONS = 256
# The events that change the failed brokers.
_BROKER_EVENTS = (BrokerFailureRecorded, BrokerReturnRecorded, BrokerOutageNoted, BrokerOutageEnded)
_encoder = msgspec.json.Encoder(order="sorted")

Chunk = tuple[str, int]


@dataclass(slots=True)
class Scope:
    """The things that events have touched; every document that may differ belongs to one of them."""

    partitions: set[TopicPartition] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    plans: set[str] = field(default_factory=set)
    chunks: set[Chunk] = field(default_factory=set)
    brokers: set[int] = field(default_factory=set)
    heal_chunks: set[int] = field(default_factory=set)
    accepted: bool = False
    cancelled: bool = False
    queue: bool = False
    freeze: bool = False
    blacklist: bool = False

    @property
    def most_operations(self) -> int:
        """The most operations for these documents; a partition's may be deleted and created again."""
        flags = self.accepted + self.cancelled + self.queue + self.freeze + 2 * self.blacklist
        return (
            2 * len(self.partitions)
            + 3 * len(self.topics)
            + len(self.plans)
            + len(self.chunks)
            + len(self.brokers)
            + len(self.heal_chunks)
            + flags
        )


class ClusterView:
    """One managed cluster after the events that were applied, with the pieces of its documents."""

    __slots__ = ("accepted", "batch", "cancelled", "chunks", "queue", "state", "topics", "under_way")

    def __init__(self, name: str) -> None:
        self.state = ClusterState(name)
        self.accepted = Entries()
        self.queue = Entries()
        self.chunks: dict[Chunk, Entries] = {}
        # The listing in each topic's znode, and the number of each topic's reassignments, without moves of others.
        self.topics: dict[str, TopicListings] = {}
        self.under_way: dict[str, int] = {}
        # The running steps, by topic.
        self.batch: dict[str, TopicBatch] = {}
        self.cancelled = 0

    def apply(self, event: AnyEvent, at_ms: int, scope: Scope) -> None:
        """Fold one event of this cluster, and add the things that it touches to `scope`."""
        state = self.state
        if not isinstance(event, PartitionEvent):
            if isinstance(event, HealEnded | HealPlanned):
                scope.heal_chunks.update(state.heal_chunks)
            apply(state, event, at_ms)
            self._touch_rare(event, scope)
            return
        # A plain pair equals a TopicPartition as a key, and takes a fraction of the time to make.
        before = state.reassignments.get((event.topic, event.partition))  # type: ignore[call-overload]  # see above
        if before is not None and type(event) in EVOLVING:
            # The most frequent by far: nothing comes or goes.
            apply(state, event, at_ms)
            key = before.key
            after = state.reassignments[key]
            self._changed(key, before, after, scope)
            if not is_shown_alike(before, after):
                self._step(key, step_of(after), scope)
                self._list(key, listing_of(after, None), scope)
            return
        self._apply_rarer(event, at_ms, scope)

    def _apply_rarer(self, event: PartitionEvent, at_ms: int, scope: Scope) -> None:
        state, key = self.state, event.key
        before, waited, moved = state.reassignments.get(key), state.queue.get(key), state.unmanaged.get(key)
        apply(state, event, at_ms)  # type: ignore[arg-type]  # it is one of the union
        after = state.reassignments.get(key)
        if before is not after:
            self._changed(key, before, after, scope)
            self._step(key, None if after is None else step_of(after), scope)
        if isinstance(event, QueueEntryAdded | QueueEntryRemoved):
            self._queued(key, waited, state.queue.get(key), scope)
        elif isinstance(event, TargetReplaced):
            scope.plans.add(event.plan)
        if before is not after or moved is not state.unmanaged.get(key):
            self._list(key, listing_of(after, state.unmanaged.get(key)), scope)

    def everything(self) -> Scope:
        """Return the scope of all documents."""
        state = self.state
        return Scope(
            partitions=set(state.reassignments),
            topics={*self.topics, *self.under_way},
            plans=set(state.plans),
            chunks=set(self.chunks),
            brokers={*state.failed_brokers, *state.absent_brokers},
            heal_chunks=set(state.heal_chunks),
            accepted=True,
            cancelled=True,
            queue=True,
            freeze=True,
            blacklist=True,
        )

    def _touch_rare(self, event: AnyEvent, scope: Scope) -> None:
        if isinstance(event, PlansForgotten):
            scope.plans.update(event.plans)
        elif isinstance(event, PlanEvent):
            scope.plans.add(event.plan)
        elif isinstance(event, _BROKER_EVENTS):
            scope.brokers.add(event.broker)
        elif isinstance(event, HealChunkPlanned | HealChunkBegun):
            scope.heal_chunks.add(event.chunk)
        elif isinstance(event, BlacklistSet | LeaderBalanceBegun | LeaderBalanceEnded):
            scope.blacklist = True
        elif isinstance(event, FreezeEvent):
            scope.freeze = True

    def _changed(
        self, key: TopicPartition, before: Reassignment | None, after: Reassignment | None, scope: Scope
    ) -> None:
        scope.partitions.add(key)
        cancelled = (after is not None and after.is_cancelled) - (before is not None and before.is_cancelled)
        if cancelled:
            self.cancelled += cancelled
            scope.cancelled = True
        if before is not None and before.replacement is not None:
            scope.plans.add(before.replacement.plan)
        if before is None and after is not None:
            self._accept(key, after, scope)
        elif before is not None and after is None:
            self._end(key, before, scope)

    def _accept(self, key: TopicPartition, after: Reassignment, scope: Scope) -> None:
        entry = entry_of(key, after.target, after.original)
        chunk = chunk_of(after)
        self.accepted.put(key, entry)
        self.chunks.setdefault(chunk, Entries()).put(key, entry)
        self.under_way[key.topic] = self.under_way.get(key.topic, 0) + 1
        self._came_or_went(key, after, chunk, scope)

    def _end(self, key: TopicPartition, before: Reassignment, scope: Scope) -> None:
        chunk = chunk_of(before)
        self.accepted.drop(key)
        entries = self.chunks[chunk]
        entries.drop(key)
        if not entries.by_key:
            del self.chunks[chunk]
        self.under_way[key.topic] -= 1
        if not self.under_way[key.topic]:
            del self.under_way[key.topic]
        self._came_or_went(key, before, chunk, scope)

    def _step(self, key: TopicPartition, step: BatchEntry | None, scope: Scope) -> None:
        running = self.batch.get(key.topic) or TopicBatch()
        if running.show(key.partition, step):
            scope.topics.add(key.topic)
            keep(self.batch, key.topic, running)

    def _came_or_went(self, key: TopicPartition, reassignment: Reassignment, chunk: Chunk, scope: Scope) -> None:
        scope.accepted = True
        scope.topics.add(key.topic)
        scope.plans.add(reassignment.plan)
        scope.chunks.add(chunk)

    def _queued(self, key: TopicPartition, before: QueueEntry | None, after: QueueEntry | None, scope: Scope) -> None:
        scope.queue = True
        for entry in (before, after):
            if entry is not None:
                scope.plans.add(entry.plan)
        if after is None:
            self.queue.drop(key)
        else:
            self.queue.put(key, entry_of(key, after.target, None))

    def _list(self, key: TopicPartition, listing: Listing | None, scope: Scope) -> None:
        listed = self.topics.get(key.topic) or TopicListings()
        if listed.show(key.partition, listing):
            scope.topics.add(key.topic)
            keep(self.topics, key.topic, listed)


def chunk_of(reassignment: Reassignment) -> Chunk:
    """Return the piece of its plan in which a reassignment is shown."""
    return reassignment.plan, reassignment.number // CHUNK_PARTITIONS


def entry_of(key: TopicPartition, replicas: Iterable[int], original: Iterable[int] | None) -> bytes:
    """Encode one partition of a plan in KIP-236's form (R236-3); without `original` as in the queue (R236-12)."""
    entry: dict[str, object] = {"topic": key.topic, "partition": key.partition, "replicas": tuple(replicas)}
    if original is not None:
        entry["original_replicas"] = tuple(original)
    return _encoder.encode(entry)
