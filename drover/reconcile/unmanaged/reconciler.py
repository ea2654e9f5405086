"""Reconciler for partitions that Drover is not moving: moves of others, late effects of its own calls."""

from collections.abc import Iterator, Mapping

from drover.decide.late_calls import expired_calls
from drover.decide.unmanaged_moves import ENDLESS_AFTER_MS, correct_late, record, repair_unasked, unrecorded
from drover.events.partitions import TopicPartition
from drover.facts import Move, Observation
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Attention, Changes, Reconciler, Urgency
from drover.reconcile.debounce import CONFIRM_AFTER_MS, Debounce
from drover.reconcile.messages import Identified, Input, Timestamp
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState


class UnmanagedReconciler(Reconciler):
    """Records moves of others, and takes over those that must be cancelled."""

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp) -> None:
        super().__init__(state, observed, now)
        self._debounce = Debounce()
        self._watched: frozenset[TopicPartition] = frozenset()
        # Partitions that Kafka lists and Drover does not have in flight. Kept between observations, because nearly
        # every move that Kafka lists is Drover's own.
        self._others: set[TopicPartition] = set()
        # Moves that differ from the recorded ones (None: it ended), and since when (monotonic).
        self._unrecorded: dict[TopicPartition, tuple[Move | None, int]] = {}

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Judge observations, and record moves of others once they have persisted."""
        if isinstance(entry, Observation):
            for key in entry.partitions:
                if key not in self.state.reassignments:
                    self._judge(key, entry.ended_ms, batch)
        # A List by itself does not say which cluster answered.
        if isinstance(entry, Observation | Identified) and entry.moves is not None:
            in_flight = self.state.moves.in_flight
            listed = (*self._others, *self.observed.begun)
            self._others = {key for key in listed if key in entry.moves and key not in in_flight}
            self._record_moves(entry.moves, entry.ended_ms, batch)

    def follow(self, changes: Changes) -> None:
        """Follow listed moves that become Drover's, or cease to be."""
        moves, in_flight = self.observed.moves, self.state.moves.in_flight
        for key in changes.partitions if moves else ():
            if key in moves:
                (self._others.discard if key in in_flight else self._others.add)(key)

    def _judge(self, key: TopicPartition, ended_ms: int, batch: BatchBuilder) -> None:
        """Take over a move that must be cancelled, once it has persisted."""
        cached = self.observed.partitions.get(key)
        if cached is None or cached.facts is None:
            return
        late = correct_late(self.state, key, cached.facts, batch.at_ms)
        events = late or repair_unasked(self.state, key, cached.facts)
        persisted = self._debounce.has_persisted(key, cached, CONFIRM_AFTER_MS if late else ENDLESS_AFTER_MS)
        self._debounce.note(key, ended_ms, unconfirmed=bool(events) and not persisted)
        if persisted:
            batch.emit_all(events)

    def _record_moves(self, moves: Mapping[TopicPartition, Move], ended_ms: int, batch: BatchBuilder) -> None:
        """Record moves that were started, changed or ended, once that has persisted for 2 s."""
        before, self._unrecorded = self._unrecorded, {}
        for key, move in unrecorded(self.state, moves, self._others, batch.at_ms).items():
            earlier = before.get(key)
            self._unrecorded[key] = earlier if earlier is not None and earlier[0] == move else (move, ended_ms)
        for key, (move, since_ms) in sorted(self._unrecorded.items(), key=lambda item: item[0]):
            if ended_ms - since_ms >= CONFIRM_AFTER_MS:
                batch.emit(record(self.state, key, move))

    def reconcile(self, batch: BatchBuilder) -> None:
        """Choose the partitions to observe although Drover is not moving them, or has them only pending."""
        state = self.state
        watched = {key for key in state.expired_calls if expired_calls(state, key, batch.at_ms) is not None}
        if state.limits.repairs_by_itself:
            watched.update(key for key, move in state.unmanaged.items() if move.never_ends)
        still_watched = frozenset(key for key in watched if key not in state.moves.in_flight)
        for key in self._watched - still_watched:
            # Mismatches are forgotten with the watch, so that they do not count when it begins again.
            self._debounce.forget(key)
        self._watched = still_watched

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Wait for watched partitions, and for moves of others to persist or to end."""
        waits = self.state.unmanaged or self._watched or self._unrecorded
        return Attention(
            partitions=() if moves is None else tuple(self._to_observe(now.monotonic_ms)),
            urgency=Urgency.WAITING if waits else Urgency.IDLE,
        )

    def _to_observe(self, now_ms: int) -> Iterator[TopicPartition]:
        """Choose the watched partitions whose last observation is old or was a mismatch."""
        yield from (key for key in self._debounce.partitions() if key in self._watched)
        yield from (key for key in self._watched if self.observed.fresh(key, now_ms) is None)
