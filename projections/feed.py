"""PURE: the events of a cluster between the tree and the end of the log, and the groups in which they are written.

The view is at `place`; later events wait in order. A group takes events from the front for as long as their documents
fit one transaction. It may end within a record, but never within an event, so that a tree is always the fold of a
prefix of the events.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

import msgspec

from drover.events.base import PartitionEvent
from drover.events.healing import HealAssignment, HealChunkPlanned, HealEnded, HealPlanned
from drover.events.queue_entries import QueueEntryAdded, QueueEntryRemoved
from drover.events.reassignments import ReassignmentAdopted, ReassignmentCreated
from drover.events.records import AnyEvent, Batch
from drover.fold.moves import EVOLVING
from drover.fold.plans import Ending
from drover.projections.documents import (
    CHUNK_LIMIT_BYTES,
    PLAN_LIMIT_BYTES,
    SMALL_LIMIT_BYTES,
    TOPIC_LIMIT_BYTES,
    documents,
    standing,
)
from drover.projections.entries import Entries
from drover.projections.position import START, Place
from drover.projections.store import MOST_BYTES, MOST_OPERATIONS, OPERATION_OVERHEAD_BYTES
from drover.projections.view import CHUNK_PARTITIONS, ClusterView, Scope, chunk_of

# One event changes at most its reassignment (twice), its topic's three nodes, its pieces, plans and the single nodes;
# only those that end a heal's plan change more, see `_most_operations`.
EVENT_OPERATIONS = 14
# An event by which no partition comes or goes: its reassignment (twice), its topic's three nodes, a plan and the cancel
# node.
EVOLVING_OPERATIONS = 7
# The bytes of a document without people's texts, and the most bytes per character of these texts (escapes).
DOCUMENT_BYTES = 500
CHARACTER_BYTES = 6
# The bytes of a partition's entry without the topic's name, and those of each replica in a list.
ENTRY_BYTES = 60
BROKER_BYTES = 8
OPERATION_BYTES = OPERATION_OVERHEAD_BYTES + DOCUMENT_BYTES

COMES = ReassignmentCreated | ReassignmentAdopted
ENDS = Ending
WAITS = QueueEntryAdded | QueueEntryRemoved
SPEAKING = frozenset(kind for kind in get_args(AnyEvent) if {"reason", "detail"} & {*kind.__struct_fields__})


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """One event, the place behind it, and the record's epoch and time."""

    event: AnyEvent
    place: Place
    epoch: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Group:
    """Some events for one transaction: the documents that they may change, as they are at `last.place`.

    `first_ms` is the time of its first event; `standing` are the shared nodes that exist at its end.
    """

    start: Place
    last: Recorded
    events: int
    documents: dict[str, bytes | None]
    first_ms: int
    standing: tuple[str, ...]

    @property
    def end(self) -> Place:
        """The place behind its last event."""
        return self.last.place


class Feed:
    """One cluster's events on their way into its tree."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.view = ClusterView(cluster)
        self.last: Recorded | None = None
        self.waiting: deque[Recorded] = deque()

    @property
    def place(self) -> Place:
        """The place of the view in the log."""
        return START if self.last is None else self.last.place

    def offer(self, offset: int, batch: Batch) -> int:
        """Add a valid record; return the number of its events about this cluster."""
        count = 0
        last = len(batch.events)
        for number, event in enumerate(batch.events, start=1):
            if event.cluster == self.cluster:
                place = Place(offset + 1, 0) if number == last else Place(offset, number)
                self.waiting.append(Recorded(event, place, batch.epoch, batch.at_ms))
                count += 1
        return count

    def advance(self, place: Place) -> int:
        """Fold waiting events up to a place without documents, which the tree already has; return their number."""
        count = 0
        scope = Scope()
        while self.waiting and self.waiting[0].place <= place:
            self._fold(scope)
            count += 1
        return count

    def advance_all(self) -> int:
        """Fold all waiting events without their documents; return their number."""
        return self.advance(self.waiting[-1].place) if self.waiting else 0

    def next_group(self) -> Group | None:
        """Fold as many events as fit one transaction and return their documents; None if no event waits."""
        if not self.waiting:
            return None
        start, scope, count = self.place, Scope(), 0
        first_ms = self.waiting[0].at_ms
        # Lower bounds of the remaining operations and bytes; computed again only when they seem to be used up.
        operations, left = MOST_OPERATIONS, MOST_BYTES
        while self.waiting:
            event = self.waiting[0].event
            most = _most_operations(self.view, event)
            if count and operations <= most:
                operations = MOST_OPERATIONS - scope.most_operations
                if operations <= most:
                    break
            needed = most * OPERATION_BYTES + _weigh_next(self.view, scope, event)
            if count and left < needed:
                left = MOST_BYTES - weigh(self.view, scope)
                if left < needed:
                    break
            operations -= most
            left -= needed
            self._fold(scope)
            count += 1
        assert self.last is not None, "an event was folded"
        contents = dict(documents(self.view, scope))
        return Group(start, self.last, count, contents, first_ms, standing(self.view))

    def everything(self) -> dict[str, bytes | None]:
        """Return every document there is at `place`."""
        contents = documents(self.view, self.view.everything())
        return {path: data for path, data in contents if data is not None}

    def _fold(self, scope: Scope) -> None:
        self.last = self.waiting.popleft()
        self.view.apply(self.last.event, self.last.at_ms, scope)


def weigh(view: ClusterView, scope: Scope) -> int:
    """Return an upper estimate of the bytes of the documents in a scope."""
    state = view.state
    total = scope.most_operations * OPERATION_BYTES
    total += scope.accepted * _weigh_plan(view.accepted) + scope.queue * _weigh_plan(view.queue)
    total += sum(_weigh_topic(view, topic) for topic in scope.topics)
    total += sum(min(CHUNK_LIMIT_BYTES, view.chunks[chunk].size) for chunk in scope.chunks if chunk in view.chunks)
    for name in scope.plans:
        plan = state.plans.get(name)
        total += 0 if plan is None else _weigh_words(plan.by, plan.reason)
    for key in scope.partitions:
        reassignment = state.reassignments.get(key)
        if reassignment is not None:
            block = reassignment.block
            total += BROKER_BYTES * (2 * len(reassignment.target) + 2 * len(reassignment.original))
            total += 0 if block is None else _weigh_words(block.detail)
    total += sum(
        _weigh_heal_chunk(state.heal_chunks[chunk_number].assignments)
        for chunk_number in scope.heal_chunks & state.heal_chunks.keys()
    )
    if scope.freeze and state.freeze is not None:
        total += _weigh_words(state.freeze.by, state.freeze.reason)
    return total


def _most_operations(view: ClusterView, event: AnyEvent) -> int:
    """Return the most changes of nodes that an event may need."""
    if type(event) in EVOLVING:
        return EVOLVING_OPERATIONS
    # The chunks that have not begun go at once.
    return EVENT_OPERATIONS + (len(view.state.heal_chunks) if isinstance(event, HealPlanned | HealEnded) else 0)


def _weigh_next(view: ClusterView, scope: Scope, event: AnyEvent) -> int:
    """Return an upper estimate of the bytes of the large documents that another event would add to the scope."""
    total = 0
    if type(event) in SPEAKING:
        # Its own words may become part of a document.
        total += _weigh_words(getattr(event, "reason", ""), getattr(event, "detail", ""))
    if isinstance(event, HealChunkPlanned):
        total += _weigh_heal_chunk(event.assignments)
    if not isinstance(event, PartitionEvent):
        return total
    if event.topic not in scope.topics:
        total += _weigh_topic(view, event.topic)
    if type(event) in EVOLVING:
        return total  # by far the most: nothing comes or goes
    if isinstance(event, COMES | ENDS):
        total += 0 if scope.accepted else _weigh_plan(view.accepted)
        if isinstance(event, COMES):
            chunk = (event.plan, view.state.next_number // CHUNK_PARTITIONS)
        else:
            chunk = chunk_of(view.state.reassignments[event.key])
        entries = view.chunks.get(chunk)
        if entries is not None and chunk not in scope.chunks:
            total += min(CHUNK_LIMIT_BYTES, entries.size)
    elif isinstance(event, WAITS) and not scope.queue:
        total += _weigh_plan(view.queue)
    return total


def _weigh_plan(entries: Entries) -> int:
    return min(PLAN_LIMIT_BYTES, entries.size + DOCUMENT_BYTES)


def _weigh_topic(view: ClusterView, topic: str) -> int:
    listed, running = view.topics.get(topic), view.batch.get(topic)
    total = 0 if listed is None else min(TOPIC_LIMIT_BYTES, listed.size)
    return total + (0 if running is None else min(SMALL_LIMIT_BYTES, running.members.size))


def _weigh_heal_chunk(assignments: Iterable[HealAssignment]) -> int:
    entries = sum(
        ENTRY_BYTES + len(assignment.topic) + BROKER_BYTES * len(assignment.target) for assignment in assignments
    )
    return min(CHUNK_LIMIT_BYTES, entries)


def _weigh_words(*words: str) -> int:
    return min(SMALL_LIMIT_BYTES, CHARACTER_BYTES * sum(map(len, words)))
