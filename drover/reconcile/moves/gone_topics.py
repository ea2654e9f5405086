"""Ends waiting partitions of deleted topics as soon as the deletion is observed, not when their turn comes."""

from collections.abc import Iterator, Mapping
from itertools import islice

from drover.decide.queue_entries import leave
from drover.decide.verdict import event_name, is_gone
from drover.events.partitions import TopicPartition
from drover.events.queue_entries import QueueExit
from drover.events.reassignments import FailureReason, ReassignmentFailed
from drover.events.records import AnyEvent
from drover.events.refusals import RefusalCode
from drover.facts import Move, Observation
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Attention, Changes, Reconciler
from drover.reconcile.debounce import CERTAIN_AFTER_MS, Debounce
from drover.reconcile.messages import Input, Timestamp
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState

# One partition of each topic is observed this often, and of so many topics in one observation.
EVERY_MS = 5_000
TOPICS_AT_ONCE = 50
# So many end in one record.
ENDS_AT_ONCE = 1_000


class GoneTopics(Reconciler):
    """Ends pending and queued partitions of a topic's incarnation that no longer exists.

    One partition stands for its topic: a topic never loses partitions, so one that is gone shows that the incarnation
    is. Reassignments in flight are judged by `ReassignmentReconciler`.
    """

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp) -> None:
        super().__init__(state, observed, now)
        # Waiting partitions by topic; the topics in the order in which they are observed next.
        self._waiting: dict[str, dict[TopicPartition, None]] = {}
        self._observed_ms: dict[str, int] = {}
        self._debounce = Debounce()
        # Topics with the incarnations of them that are known to be gone.
        self._gone: dict[str, str] = {}
        for key in (*state.moves.pending, *state.queue):
            self._waiting.setdefault(key.topic, {})[key] = None

    def follow(self, changes: Changes) -> None:
        """Follow the partitions that begin and cease to wait; a new entry may follow one that has ended."""
        pending, queue = self.state.moves.pending, self.state.queue
        for key in changes.ended:
            self._leave(key)
        for key in changes.partitions:
            if key in pending or key in queue:
                self._waiting.setdefault(key.topic, {})[key] = None
            else:
                self._leave(key)

    def _leave(self, key: TopicPartition) -> None:
        of_topic = self._waiting.get(key.topic)
        if of_topic is not None and key in of_topic:
            del of_topic[key]
            self._debounce.forget(key)
            if not of_topic:
                del self._waiting[key.topic]
                self._observed_ms.pop(key.topic, None)
                self._gone.pop(key.topic, None)

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Note waiting partitions that do not exist, or are of another incarnation."""
        del batch
        if not isinstance(entry, Observation):
            return
        pending, queue = self.state.moves.pending, self.state.queue
        for key, facts in entry.partitions.items():
            # Most observed partitions are being copied, and do not wait.
            expected = self._expected(key) if key in pending or key in queue else None
            if expected is None:
                continue
            # The topic goes to the end of the line.
            self._observed_ms[key.topic] = entry.ended_ms
            self._waiting[key.topic] = self._waiting.pop(key.topic)
            if facts is not None and facts.topic_id == expected:
                self._debounce.forget(key)
                continue
            seen = self.observed.partitions.get(key)
            is_deleted = is_gone(
                facts,
                persisted=self._debounce.has_persisted(key, seen),
                is_certain=self._debounce.has_persisted(key, seen, CERTAIN_AFTER_MS),
            )
            self._debounce.note(key, entry.ended_ms, unconfirmed=not is_deleted)
            if is_deleted:
                self._gone[key.topic] = expected

    def _expected(self, key: TopicPartition) -> str | None:
        """Return the incarnation of the topic for which a partition waits; None if it does not wait."""
        if key in self.state.moves.pending:
            return self.state.reassignments[key].topic_id
        entry = self.state.queue.get(key)
        return None if entry is None else entry.topic_id

    def reconcile(self, batch: BatchBuilder) -> None:
        """End the partitions that wait for an incarnation that is gone."""
        room = ENDS_AT_ONCE
        for topic, topic_id in tuple(self._gone.items()):
            dead = [key for key in self._waiting.get(topic, ()) if self._expected(key) == topic_id]
            for key in dead[:room]:
                batch.emit(self._end(key))
            if len(dead) > room:
                return
            room -= len(dead)
            self._gone.pop(topic, None)

    def _end(self, key: TopicPartition) -> AnyEvent:
        detail = f"{key}: the topic was deleted"
        pending = self.state.reassignments.get(key) if key in self.state.moves.pending else None
        if pending is None:
            code = RefusalCode.UNKNOWN_TOPIC_OR_PARTITION
            return leave(key, QueueExit.REFUSED, self.state.name, f"{code}: {detail}")
        name = event_name(self.state.name, key)
        return ReassignmentFailed(**name, why=FailureReason.PARTITION_GONE, detail=detail, replicas=pending.current)

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Wake at once while partitions are left to end."""
        now_ms = now.monotonic_ms
        return Attention(
            partitions=() if moves is None else tuple(self._to_observe(now_ms)),
            due_ms=now_ms if self._gone else None,
        )

    def _to_observe(self, now_ms: int) -> Iterator[TopicPartition]:
        """Choose one partition of each topic once in a while, and soon again one that was not there."""
        yield from (key for key in self._debounce.partitions() if self._expected(key) is not None)
        for topic, keys in islice(self._waiting.items(), TOPICS_AT_ONCE):
            if self._observed_ms.get(topic, -EVERY_MS) + EVERY_MS > now_ms:
                return
            yield next(iter(keys))
