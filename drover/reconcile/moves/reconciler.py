"""Reassignments in flight: judges observations, makes the calls that follow, and records their ends."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from drover.decide.copy_pace import SizeSample
from drover.decide.late_calls import expired_calls
from drover.decide.verdict import NOTHING
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallIntended, CallRejected, ReassignmentCreated
from drover.events.records import ReassignmentEvent
from drover.facts import Move, Observation, PartitionFacts
from drover.reconcile.backoff import Backoff
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import (
    LEFT_OUT,
    OWNER_CHANGED,
    TAKEOVER_WAIT_MS,
    Attention,
    Changes,
    Reconciler,
    Urgency,
)
from drover.reconcile.debounce import Debounce
from drover.reconcile.gates import CHANGE_GATES, lapse
from drover.reconcile.messages import AlterPartitions, BytesSampled, CallEnded, Effect, Input, Timestamp
from drover.reconcile.moves import calls
from drover.reconcile.moves.call_pace import CallPace
from drover.reconcile.moves.context import context_of
from drover.reconcile.moves.copy_sizes import CopySizes
from drover.reconcile.moves.reconcile import reconcile
from drover.reconcile.observations import FRESH_MS, CachedObservation, ObservationCache
from drover.state.cluster import ClusterState
from drover.state.phase import CANCELLED_PHASES, Phase
from drover.state.reassignment import Reassignment

# Observations that cover all copies once: each takes this part of them. Kafka's list shows at once that a copy has
# ended; a reason that holds one up may be observed some seconds later.
OBSERVATIONS_PER_ROUND = 30
_AWAITING_A_STEP = frozenset({Phase.PENDING, Phase.PREPARED, Phase.CONFIRMED})


@dataclass(frozen=True, slots=True)
class _Basis:
    """The inputs of a verdict about a copy; the first three are replaced as a whole when they change."""

    reassignment: Reassignment
    live: frozenset[int]
    sizes: tuple[SizeSample, ...]
    rate: int | None
    facts: PartitionFacts | None


class ReassignmentReconciler(Reconciler):
    """Carries reassignments from one observation to the next call; those that wait for a step are `Starter`'s."""

    def __init__(
        self,
        state: ClusterState,
        observed: ObservationCache,
        now: Timestamp,
        backoff: Backoff,
        sizes: CopySizes,
        pace: CallPace,
    ) -> None:
        super().__init__(state, observed, now)
        self._backoff = backoff
        self._pace = pace
        self._sizes = sizes
        self._debounce = Debounce()
        # The basis on which a copy was judged to be as expected: it is judged again only when that has changed.
        self._as_expected: dict[TopicPartition, _Basis] = {}
        # By partition: the list that an open call of this owner replaces.
        self._before: dict[TopicPartition, tuple[int, ...]] = {}
        # Copies of which a log directory has failed or come back since the last judgement.
        self._failing: set[TopicPartition] = set()
        self._intended: list[TopicPartition] = []
        self._withheld: list[CallEnded] = []
        self._take_over(now)

    def _take_over(self, now: Timestamp) -> None:
        """Wait until a predecessor's open calls have ended; then adopt the moves that run, without a cancel.

        The log tells which list each call has left: so old metadata does not count after a takeover, either.
        """
        until_ms = now.monotonic_ms + TAKEOVER_WAIT_MS
        for key in self.state.moves.pending:
            self._sizes.waits(key)
        left = {key: replicas for key, (replicas, _) in self.state.recent_lists(now.wall_ms).items()}
        for key in self.state.moves.in_flight:
            reassignment = self.state.reassignments[key]
            # After a restore that was not sent, or refused, the log does not tell which list the call before it left.
            is_between = reassignment.restoring is not None and reassignment.phase is not Phase.RESTORING
            if reassignment.call_open or is_between:
                self.observed.predecessor_calls(key, until_ms)
            left.pop(key, None)
            if reassignment.phase is Phase.RESTORING and reassignment.restoring is not None:
                # In all other phases an old list is unexpected, or must persist before it counts.
                left[key] = reassignment.restoring
        for key, replicas in left.items():
            self.observed.call_made(key, replicas, now.monotonic_ms)

    # -- in

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Judge observations, and handle the ends of calls and samples of sizes."""
        match entry:
            case Observation():
                if batch.now.monotonic_ms - entry.ended_ms > FRESH_MS:
                    # The owner stood still since, and the cluster may have changed: it is observed again.
                    return
                for key, facts in entry.partitions.items():
                    reassignment = self.state.reassignments.get(key)
                    if reassignment is None or self._is_as_expected(reassignment, facts):
                        continue
                    if self._is_judged(reassignment, batch.at_ms):
                        self._judge(reassignment, entry.ended_ms, batch)
            case CallEnded():
                self._pace.ended(entry)
                self._call_ended(entry, batch)
            case BytesSampled():
                self._failing |= set(self._sizes.sample(entry, self.state))
            case _:
                return

    def _is_judged(self, reassignment: Reassignment, at_ms: int) -> bool:
        return reassignment.in_flight or expired_calls(self.state, reassignment.key, at_ms) is not None

    def _judge(self, reassignment: Reassignment, ended_ms: int, batch: BatchBuilder) -> None:
        state, key, now_ms = self.state, reassignment.key, batch.now.monotonic_ms
        if (state.name, key) in batch.intended:
            # An earlier input of this batch has led to a call: observations from before it no longer count.
            return
        if reassignment.call_open:
            # A predecessor's call, which has ended: partitions with an open call of this owner are not observed.
            batch.emit_all(calls.lost(reassignment, OWNER_CHANGED, state.name))
            reassignment = state.reassignments[key]
        if reassignment.attempts and not self._backoff.may_try(key, now_ms):
            return
        seen = self.observed.partitions[key]
        context = context_of(state, reassignment, self.observed, self._sizes, self._debounce, batch.at_ms)
        self._failing.discard(key)
        verdict = reconcile(reassignment, seen.facts, context)
        if not self._pace.room and any(isinstance(event, CallIntended) for event in verdict.events):
            # The controller has enough to do: the next observation is judged anew.
            return
        if verdict == NOTHING and reassignment.phase in _AWAITING_A_STEP:
            # The starter judges reassignments that wait for a step.
            self._debounce.forget(key)
            return
        if verdict == NOTHING and reassignment.phase is Phase.COPYING and reassignment.block is None:
            # Not a blocked one: it may be given up after a time, although nothing changes.
            self._as_expected[key] = self._basis(reassignment, seen)
        self._debounce.note(key, ended_ms, unconfirmed=verdict.unconfirmed)
        self._emit(reassignment, verdict.events, batch)
        if key not in state.reassignments and seen.facts is not None:
            # A lagging broker may still show the list from before or during the move, whichever client ended it.
            self.observed.call_made(key, seen.facts.replicas, ended_ms)

    def _is_as_expected(self, reassignment: Reassignment, facts: PartitionFacts | None) -> bool:
        """Whether a copy was judged to be as expected before, and the basis of that has not changed.

        Checked first, for every copy in every observation, so that the usual case is cheap.
        """
        basis = self._as_expected.get(reassignment.key)
        return (
            basis is not None
            and reassignment.key not in self._failing
            and basis.reassignment is reassignment
            and basis.live is self.observed.live
            and basis.sizes is self._sizes.of_step(reassignment.key)
            and basis.rate == self.state.rate_of(reassignment.plan)
            and basis.facts == facts
        )

    def _basis(self, reassignment: Reassignment, seen: CachedObservation) -> _Basis:
        rate = self.state.rate_of(reassignment.plan)
        return _Basis(reassignment, self.observed.live, self._sizes.of_step(reassignment.key), rate, seen.facts)

    def _call_ended(self, ended: CallEnded, batch: BatchBuilder) -> None:
        for key in ended.partitions:
            reassignment = self.state.reassignments.get(key)
            if not self.observed.is_calling(key) or reassignment is None or not reassignment.call_open:
                continue
            self.observed.call_ends(key, ended.ended_ms, calls.effect_of(reassignment, ended))
            before, result = self._before.pop(key, None), (ended.results or {}).get(key)
            if before is not None and result is not None and result.accepted:
                self.observed.call_replaced(key, before, ended.ended_ms)
            events = _end_of(reassignment, ended)
            for event in events:
                if isinstance(event, CallRejected) and event.unregistered is not None:
                    self.observed.see_unregistered(event.unregistered)
            self._emit(reassignment, events, batch)

    def _emit(self, before: Reassignment, events: Iterable[ReassignmentEvent], batch: BatchBuilder) -> None:
        """Emit the events; a call that had no effect is tried again after a pause."""
        batch.emit_all(events)
        after = self.state.reassignments.get(before.key)
        if after is not None and after.attempts > before.attempts:
            self._backoff.delay(before.key, after.attempts, batch.now.monotonic_ms)

    def follow(self, changes: Changes) -> None:
        """Collect intended calls, and drop reassignments that have ended."""
        for key in changes.ended:
            self.observed.forget(key)
            self._backoff.forget(key)
            self._sizes.forget(key)
            self._debounce.forget(key)
            self._as_expected.pop(key, None)
            self._failing.discard(key)
            self._before.pop(key, None)
        for event in changes.events:
            if type(event) is CallIntended:
                self._intend(event)
            elif type(event) is ReassignmentCreated:
                self._sizes.waits(event.key)
        if self._pace.has_open:
            for key in changes.partitions:
                reassignment = self.state.reassignments.get(key)
                if reassignment is None or not reassignment.call_open:
                    self._pace.over(key)

    def _intend(self, event: CallIntended) -> None:
        """Note a call that is made once its intent is durable, and the list that it replaces.

        A cancel replaces the list only if the step was adding replicas.
        """
        key, step = event.key, self.state.reassignments[event.key].step
        self._intended.append(key)
        self._pace.intended(key)
        adds = step is not None and bool(step.adding)
        if adds if event.replicas is None else event.replicas != event.expected:
            self._before[key] = event.expected

    def reconcile(self, batch: BatchBuilder) -> None:
        """Record the ends of calls that were withheld."""
        if self.state.traits is not None:
            self._pace.begin(zookeeper_mode=self.state.traits.zookeeper_mode)
        withheld, self._withheld = self._withheld, []
        for ended in withheld:
            self._call_ended(ended, batch)

    # -- out

    def effects(self, now: Timestamp, start_by_ms: int, lapsed: str | None) -> Iterator[Effect]:
        """Make the intended calls, each small enough for the controller to answer in time.

        A gate may have been shut between an intent and its call: that holds back steps, but no rollback (R236-9).
        """
        requests: dict[TopicPartition, tuple[int, ...] | None] = {}
        step_lapsed = lapsed or lapse(self.state, CHANGE_GATES)
        for key, reassignment in self._starting():
            detail = step_lapsed if reassignment.phase is Phase.INTENDED else lapsed
            if detail is None:
                requests[key] = _list_to_send(reassignment)
            else:
                self._withheld.append(CallEnded(self.state.name, (key,), now.monotonic_ms, None, detail=detail))
        items = list(requests.items())
        size = self._pace.size
        for first in range(0, len(items), size):
            call = AlterPartitions(self.state.name, dict(items[first : first + size]), start_by_ms)
            self._pace.starts(call, now.monotonic_ms)
            yield call

    def _starting(self) -> Iterator[tuple[TopicPartition, Reassignment]]:
        """Take the intended calls; observations of their partitions do not count until the calls have ended."""
        intended, self._intended = self._intended, []
        for key in intended:
            reassignment = self.state.reassignments.get(key)
            if reassignment is not None and reassignment.call_open:
                self.observed.call_starts(key)
                self._sizes.call_starts(key)
                yield key, reassignment

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Watch reassignments in flight closely; wake when a pause is over, or a predecessor's call has ended."""
        now_ms = now.monotonic_ms
        times = (
            self._backoff.next_due_ms(now_ms),
            self.observed.predecessors_end_ms(now_ms),
            now_ms if self._withheld else None,
        )
        urgency = Urgency.WAITING if self.state.reassignments else Urgency.IDLE
        return Attention(
            partitions=() if moves is None else tuple(self._to_observe(moves, now_ms)),
            due_ms=min((due for due in times if due is not None), default=None),
            urgency=Urgency.BUSY if self.state.moves.in_flight else urgency,
        )

    def _to_observe(self, moves: Mapping[TopicPartition, Move], now_ms: int) -> Iterator[TopicPartition]:
        """Choose some copies at a time, and all reassignments that Kafka no longer lists or that are cancelled."""
        room = 1 + len(self.state.moves.in_flight) // OBSERVATIONS_PER_ROUND
        yield from (key for key in self._debounce.partitions() if key in self.state.reassignments)
        for key in self.state.moves.in_flight:
            phase = self.state.reassignments[key].phase
            if self.observed.is_calling(key) or self.observed.call_ended_ms(key) > now_ms:
                continue
            seen = self.observed.partitions.get(key)
            # A cancelled one is observed every time, also while Kafka lists it.
            at_once = phase in CANCELLED_PHASES or key in self._failing
            at_once = at_once or (key not in moves and phase is not Phase.CONFIRMED)
            if at_once or seen is None:
                yield key
            elif room and now_ms - seen.ended_ms > FRESH_MS:
                room -= 1
                yield key


def _list_to_send(reassignment: Reassignment) -> tuple[int, ...] | None:
    """Return the list that an intended call sends; None cancels."""
    if reassignment.phase is Phase.CANCEL_INTENDED:
        return None
    if reassignment.phase is Phase.RESTORE_INTENDED:
        return reassignment.original if reassignment.restoring is None else reassignment.restoring
    assert reassignment.step is not None, f"{reassignment.key} has an intent without a step"
    return reassignment.step.replicas


def _end_of(reassignment: Reassignment, ended: CallEnded) -> tuple[ReassignmentEvent, ...]:
    if ended.results is None:
        end = calls.lost if ended.lost else calls.never_sent
        return end(reassignment, ended.detail, ended.cluster)
    result = ended.results.get(reassignment.key)
    if result is None:
        return calls.lost(reassignment, LEFT_OUT, ended.cluster)
    return calls.answered(reassignment, result, ended.cluster)
