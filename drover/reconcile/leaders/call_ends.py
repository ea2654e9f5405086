"""Records the ends of order calls and elections, and decides what follows: an election, another try, or nothing."""

from collections import defaultdict

from drover.events.leadership import ElectionOutcome, LeaderElectionsEnded, LeaderWaitReason, OrderOutcome
from drover.events.partitions import TopicPartition
from drover.facts import PREFERRED_LEADER_NOT_AVAILABLE
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.gates import changes_nothing
from drover.reconcile.leaders.elections import ElectionEnd, Elections
from drover.reconcile.leaders.judgement import Wait
from drover.reconcile.leaders.judgement_events import events_of
from drover.reconcile.leaders.order_calls import Answer, OrderCalls, answered
from drover.reconcile.leaders.worklist import Worklist
from drover.state.cluster import ClusterState

# How many ends of each kind are recorded in one batch.
MAX_ENDS = 250
_AS_IT_SHOULD_BE = frozenset({ElectionOutcome.ELECTED, ElectionOutcome.NOT_NEEDED})
_ELECTING = Answer(OrderOutcome.ELECTING)


class CallEnds:
    """Records the ends of one cluster's order calls and elections."""

    def __init__(self, state: ClusterState, calls: OrderCalls, elections: Elections, work: Worklist) -> None:
        self._state = state
        self._calls = calls
        self._elections = elections
        self._work = work

    def record(self, batch: BatchBuilder) -> bool:
        """Record some of them; return whether these were the last leaders on their way."""
        changed = self._record_answers(batch)
        ended = self._record_elections(batch)
        return (changed or ended) and not self._state.leaders_under_way and not self._work.ready

    # -- order calls

    def _record_answers(self, batch: BatchBuilder) -> bool:
        answers: list[tuple[TopicPartition, Answer]] = []
        restored = set()
        for key, answer in self._calls.take_answers(MAX_ENDS):
            recorded = self._after_reorder(key) if answer.outcome is OrderOutcome.REORDERED else answer
            answers.append((key, recorded))
            if recorded.outcome is OrderOutcome.REORDERED and self._is_canonical(key):
                restored.add(key)
        batch.emit_all(answered(self._state.name, answers, frozenset(restored)))
        for key, answer in answers:
            if answer.outcome is OrderOutcome.REFUSED:
                self._refused(key, f"the new order, which is sent again: code {answer.code} {answer.detail}", batch)
                self._work.refused(key, batch.now.monotonic_ms)
            elif answer.outcome in {OrderOutcome.NOT_SENT, OrderOutcome.NO_EFFECT}:
                # A call that was too late to be sent is tried again at once the first time.
                attempts = self._work.failed(key)
                if attempts == 1 and answer.outcome is OrderOutcome.NOT_SENT:
                    self._work.candidates[key] = None
                else:
                    self._work.try_later(key, attempts, batch.now.monotonic_ms)
            else:
                self._work.succeeded(key)
        return bool(answers)

    def _after_reorder(self, key: TopicPartition) -> Answer:
        """Elect the first of a list that is in order now, unless the reason has gone since the call was intended."""
        state = self._state
        intended, kept = state.intended_orders[key], state.orders.get(key)
        listed = state.listed_for(key.topic)
        is_listed = intended.replicas[0] in listed and not listed.issuperset(intended.replicas)
        is_held_up = is_listed or changes_nothing(state) or key in state.reassignments
        if intended.elects and kept is not None and not is_held_up:
            return _ELECTING
        if intended.elects or intended.leader in listed:
            self._work.candidates[key] = None
        return Answer(OrderOutcome.REORDERED)

    def _is_canonical(self, key: TopicPartition) -> bool:
        kept = self._state.orders.get(key)
        return kept is not None and kept.canonical == self._state.intended_orders[key].replicas

    # -- elections

    def _record_elections(self, batch: BatchBuilder) -> bool:
        state = self._state
        groups: dict[tuple[str, ElectionOutcome], list[TopicPartition]] = defaultdict(list)
        for end in self._elections.take_ends(batch.now.monotonic_ms, MAX_ENDS):
            key = end.key
            if key not in state.reassignments and end.outcome in _AS_IT_SHOULD_BE:
                self._work.succeeded(key)
                groups[key.topic, end.outcome].append(key)
                continue
            # Recorded by itself: the starter or the next try waits for the end of this partition's election.
            is_steps = key in state.reassignments and state.elections[key].leader not in state.listed_for(key.topic)
            batch.emit(end.event(state.name))
            if not is_steps:
                self._try_again(end, batch)
        for (topic, outcome), keys in groups.items():
            restored = tuple(key.partition for key in keys if self._is_restored(key))
            numbers = tuple(key.partition for key in keys)
            event = LeaderElectionsEnded(
                cluster=state.name, topic=topic, partitions=numbers, outcome=outcome, restored=restored
            )
            batch.emit(event)
        return bool(groups)

    def _is_restored(self, key: TopicPartition) -> bool:
        kept = self._state.orders.get(key)
        return kept is not None and not kept.left_alone and kept.replicas == kept.canonical

    def _try_again(self, end: ElectionEnd, batch: BatchBuilder) -> None:
        key, now_ms = end.key, batch.now.monotonic_ms
        if end.outcome in _AS_IT_SHOULD_BE:
            self._work.succeeded(key)
            if self._is_restored(key):
                self._work.try_later(key, 0, now_ms)
            return
        if end.outcome is ElectionOutcome.REFUSED and end.code != PREFERRED_LEADER_NOT_AVAILABLE:
            self._refused(key, f"the election, which is tried again: code {end.code} {end.detail}", batch)
            self._work.refused(key, now_ms)
            return
        attempts = self._work.failed(key)
        if attempts == 1 and end.outcome is ElectionOutcome.NOT_SENT and key in self._state.orders:
            # Its list is in order, so that the next try needs no observation.
            self._work.reordered[key] = None
            return
        self._work.try_later(key, attempts, now_ms)

    def _refused(self, key: TopicPartition, request: str, batch: BatchBuilder) -> None:
        wait = Wait(LeaderWaitReason.REFUSED, f"Kafka refuses {request}".rstrip())
        batch.emit_all(events_of(self._state, key, wait, None))
