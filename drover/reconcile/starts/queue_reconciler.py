"""Takes entries from the queue of KIP-236 in their order, once all that was accepted before has started."""

import heapq
import itertools
from collections.abc import Mapping

from drover.decide import queue_entries
from drover.decide.cancellation import is_untouched
from drover.decide.decision import Facts, OwnTopics
from drover.events.clusters import WindowClosed, WindowOpened
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanPaused, PlanResumed
from drover.events.queue_entries import QueueEntryAdded, QueueEntryRemoved
from drover.facts import Move, Observation
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Attention, Changes, Reconciler, Urgency
from drover.reconcile.gates import entry_passed_over, queue_closed
from drover.reconcile.messages import Input, Timestamp
from drover.reconcile.observations import FRESH_MS, FRESH_TO_START_MS, ObservationCache
from drover.state.cluster import ClusterState

# How many entries are observed and taken at a time.
AT_ONCE = 100


class QueueReconciler(Reconciler):
    """Takes entries while there is room; one whose partition was not observed yet holds up those behind it.

    Entries that later ones may pass are kept apart, so that their number does not slow down the choice of the next one.
    """

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp, own_topics: OwnTopics) -> None:
        super().__init__(state, observed, now)
        self._own_topics = own_topics
        self._needed: dict[TopicPartition, None] = {}
        self._numbers = itertools.count()
        self._number: dict[TopicPartition, int] = {}
        # Entries that none may pass, by place in the queue; removed ones are dropped when their turn comes.
        self._next: list[tuple[int, TopicPartition]] = []
        self._is_next: set[TopicPartition] = set()
        # The plan of each entry, and the entries of each plan: a pause or a window applies to all of them.
        self._plan: dict[TopicPartition, str] = {}
        self._of_plan: dict[str, dict[TopicPartition, None]] = {}
        self._plans_to_place: dict[str, None] = {}
        for key in state.queue:
            self._enter(key)

    def follow(self, changes: Changes) -> None:
        """Check again whether later entries may pass one whose partition or plan has changed."""
        queue = self.state.queue
        for event in changes.events:
            if type(event) is QueueEntryRemoved and event.key in self._number:
                self._leave(event.key)
            elif type(event) is QueueEntryAdded and event.key in queue:
                self._enter(event.key)
            elif (
                type(event) is PlanPaused
                or type(event) is PlanResumed
                or type(event) is WindowClosed
                or type(event) is WindowOpened
            ):
                # Placed once per batch: a plan may have thousands of entries.
                self._plans_to_place[event.plan] = None
        for key in changes.partitions if queue else ():
            if key in queue:
                self._place(key)

    def _enter(self, key: TopicPartition) -> None:
        plan = self.state.queue[key].plan
        self._number[key], self._plan[key] = next(self._numbers), plan
        self._of_plan.setdefault(plan, {})[key] = None
        self._place(key)

    def _leave(self, key: TopicPartition) -> None:
        self._needed.pop(key, None)
        self._number.pop(key, None)
        self._is_next.discard(key)
        plan = self._plan.pop(key)
        del self._of_plan[plan][key]
        if not self._of_plan[plan]:
            del self._of_plan[plan]

    def _place(self, key: TopicPartition) -> None:
        if entry_passed_over(key, self.state) is not None:
            self._is_next.discard(key)
        elif key not in self._is_next:
            self._is_next.add(key)
            heapq.heappush(self._next, (self._number[key], key))

    def next_entries(self, count: int) -> list[TopicPartition]:
        """List the first entries, in the order of the queue, that later ones may not pass."""
        numbers: dict[TopicPartition, int] = {}
        while self._next and len(numbers) < count:
            number, key = heapq.heappop(self._next)
            if key in self._is_next and self._number[key] == number:
                numbers[key] = number
        for key, number in numbers.items():
            heapq.heappush(self._next, (number, key))
        return list(numbers)

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Drop observed partitions from those to observe."""
        del batch
        if isinstance(entry, Observation):
            for key in entry.partitions:
                self._needed.pop(key, None)

    def reconcile(self, batch: BatchBuilder) -> None:
        """Take entries while there is room and their observations are fresh."""
        state, now_ms = self.state, batch.now.monotonic_ms
        plans, self._plans_to_place = self._plans_to_place, {}
        for plan in plans:
            for key in self._of_plan.get(plan, ()):
                self._place(key)
        if not state.queue or queue_closed(state) is not None:
            return
        waits = False
        room = min(AT_ONCE, state.limits.max_partitions_in_flight - len(state.moves.in_flight))
        for key in self.next_entries(room):
            if not self._is_seen(key, now_ms):
                self._needed[key] = None
                waits = True
            elif not waits:
                batch.emit_all(queue_entries.take(key, state, self._facts(key, now_ms)))

    def _is_seen(self, key: TopicPartition, now_ms: int) -> bool:
        """Whether the observations suffice to decide: of the partition, or of the live brokers if Drover is moving it.

        An untouched reassignment ends when its entry is taken, and its end names the present list: that must have been
        observed (S9).
        """
        observed = self.observed
        if observed.fresh(key, now_ms, FRESH_TO_START_MS) is not None:
            return True
        active = self.state.reassignments.get(key)
        if active is None or is_untouched(active) or observed.live_seen_ms is None:
            return False
        return now_ms - observed.live_seen_ms <= FRESH_MS and key.topic in observed.min_isr

    def _facts(self, key: TopicPartition, now_ms: int) -> Facts:
        observed = self.observed
        seen = observed.fresh(key, now_ms)
        return Facts(
            partitions={} if seen is None else {key: seen.facts},
            moves=observed.moves,
            live_brokers=observed.live,
            unreachable=observed.unreachable,
            registered=observed.registered,
            min_isr=observed.min_isr,
            own_topics=self._own_topics,
        )

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Observe the next entries at once: they are about to be taken."""
        del now, moves
        waits = Urgency.WAITING if self.state.queue else Urgency.IDLE
        return Attention(
            partitions=tuple(key for key in self._needed if key in self.state.queue),
            urgency=Urgency.BUSY if self._needed else waits,
            is_pressing=bool(self._needed),
        )
