"""Throttles: set before the step that needs them begins, and removed with the last move that needs them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import get_args

from drover.events.partitions import TopicPartition
from drover.events.plans import ClusterThrottleSet
from drover.events.records import BrokerThrottleEvent, PlanThrottleEvent, ThrottleEvent
from drover.events.throttles import (
    NO_ENTRIES,
    BrokerThrottleRefused,
    BrokerThrottleSet,
    Entries,
    TopicThrottleAdopted,
    TopicThrottleChanged,
    TopicThrottleIntended,
    TopicThrottleLeft,
    TopicThrottleRefused,
    TopicThrottleSet,
)
from drover.facts import NONE, UNKNOWN_TOPIC_OR_PARTITION, BrokerRates, CallResult, Move, Observation, ThrottledReplicas
from drover.fold.throttles import without
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import TAKEOVER_WAIT_MS, Attention, Changes, Reconciler, Urgency
from drover.reconcile.gates import calls_nothing
from drover.reconcile.messages import (
    ChangeThrottles,
    Effect,
    Input,
    ReadThrottles,
    ThrottlesChanged,
    ThrottlesRead,
    Timestamp,
)
from drover.reconcile.observations import FRESH_MS, METADATA_LAG_MS, ObservationCache
from drover.reconcile.throttles.ahead import MAX_ENTRIES_PER_TOPIC
from drover.reconcile.throttles.demand import Demand, TopicDemand
from drover.reconcile.throttles.due_topics import DueTopics
from drover.reconcile.throttles.ledger import ThrottlePlan, given_up, is_ready, plan_throttles
from drover.reconcile.throttles.readings import Readings
from drover.reconcile.throttles.recent_writes import RecentWrites
from drover.reconcile.throttles.refusals import REFUSED_RETRY_MS, Unreadable, is_refused, refusal_block
from drover.reconcile.throttles.watch import Watch
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.reassignment import Block, Reassignment
from drover.state.throttles import ConfigRefusal, TopicThrottle

# Every write may be repeated: one without an answer is repeated after this time.
RETRY_MS = 1000
# A change of a topic's lists reaches every broker. Entries that no move needs any more are removed with the next
# change, or after this time, or once no move of the topic is left.
REMOVAL_WAIT_MS = 5000
_INVALID_CONFIG = 40
# By type: a batch may have hundreds of thousands of events, and `isinstance` takes ten times as long with structs.
_FOLLOWED = frozenset({*get_args(PlanThrottleEvent), ClusterThrottleSet, *get_args(ThrottleEvent)})


class ThrottlingReconciler(Reconciler):
    """Keeps the ledger: compares demand and settings, only where either has changed."""

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp) -> None:
        super().__init__(state, observed, now)
        self._recent_writes = RecentWrites(state)
        self._readings = Readings(self._recent_writes)
        self._watch = Watch()
        self._demand = Demand(state)
        self._pending_brokers: set[int] = set()
        self._pending_topics: set[str] = set()
        self._to_read: tuple[tuple[int, ...], tuple[str, ...]] = ((), ())
        # Topics to compare again later: a broker did not know them, or may not show the last write yet.
        self._due_topics = DueTopics()
        # Since when (monotonic) brokers have not known a topic that was to be written.
        self._unknown_ms: dict[str, int] = {}
        # Topics whose lists Kafka refused to change while they were needed, and how many entries moves needed then.
        self._refused: dict[str, int] = {}
        # Until when (monotonic) each topic keeps entries that are only to be removed, the earliest first.
        self._removals: dict[str, int] = {}
        # Topics whose removals have waited long enough.
        self._overdue: set[str] = set()
        # Until when (monotonic) the refused write of a broker or a topic is not repeated.
        self._refused_until_ms: dict[int | str, int] = {}
        self._unreadable = Unreadable()
        self._is_changing = False
        self._write_from_ms = 0
        self._live: frozenset[int] = frozenset()
        # Grows whenever a prepared step may have become ready.
        self.version = 0
        self._take_over(now)

    def _take_over(self, now: Timestamp) -> None:
        """Compare the whole ledger once; repeat writes that a predecessor left pending, once its calls have ended."""
        state = self.state
        self._recent_writes.begin(now.monotonic_ms)
        self._pending_brokers = {broker for broker, entry in state.broker_throttles.items() if entry.pending}
        self._pending_topics = {topic for topic, throttle in state.topic_throttles.items() if throttle.pending}
        self._demand.changed_brokers.update(state.broker_throttles)
        self._demand.changed_topics.update(state.topic_throttles)
        if self._pending_brokers or self._pending_topics:
            self._write_from_ms = now.monotonic_ms + TAKEOVER_WAIT_MS

    # -- for other capabilities

    def is_throttled(self, reassignment: Reassignment) -> bool:
        """Whether a throttle holds for the reassignment: its plan's, or the cluster's."""
        return self.state.rate_of(reassignment.plan) is not None

    def is_ready(self, reassignment: Reassignment, now: Timestamp) -> bool:
        """Whether every throttle of a prepared step is set; if not, its brokers and topic are compared again."""
        if reassignment.phase is not Phase.PREPARED or not self.is_throttled(reassignment):
            return True
        live, read = self.observed.live, self._readings.recent(now.monotonic_ms)
        if is_ready(reassignment, self.state, self._demand, live, read):
            return True
        step = reassignment.step
        if step is not None:
            self._demand.changed_brokers.update(step.expected, step.adding)
        self._demand.changed_topics.add(reassignment.key.topic)
        return False

    def refusal_block(self, reassignment: Reassignment, at_ms: int) -> Block | None:
        """Return the block of a prepared step whose throttle Kafka refuses to set or show; None if it does not."""
        if reassignment.phase is not Phase.PREPARED or not self.is_throttled(reassignment):
            return None
        return refusal_block(reassignment, self.state, self._unreadable, at_ms)

    def entries_of(self, topic: str) -> int:
        """Count the entries of a topic's list of leaders' throttled replicas that moves in flight need."""
        wanted = self._demand.topics.get(topic)
        return 0 if wanted is None else wanted.needed

    # -- in

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Take in readings, and the answers to writes."""
        if isinstance(entry, Observation):
            for key, facts in entry.partitions.items():
                if facts is not None:
                    self._readings.see(key.topic, facts.topic_id, entry.ended_ms)
        elif isinstance(entry, ThrottlesRead):
            self._readings.take(entry)
            self._unreadable.take(entry)
            self._demand.changed_brokers.update(entry.brokers)
            self._demand.changed_topics.update(entry.topics)
            self.version += 1
        elif isinstance(entry, ThrottlesChanged):
            self._changed(entry, batch)

    def _changed(self, changed: ThrottlesChanged, batch: BatchBuilder) -> None:
        state, now_ms = self.state, batch.now.monotonic_ms
        self._is_changing = False
        self._readings.forget(changed.brokers, changed.topics)
        for broker, result in changed.brokers.items():
            if result.code == NONE and broker in self._pending_brokers:
                self._recent_writes.wrote_rates(broker, state.broker_throttles[broker].intended, now_ms)
                batch.emit(BrokerThrottleSet(cluster=state.name, broker=broker))
            elif is_refused(result) and broker in self._pending_brokers:
                self._refused_until_ms[broker] = now_ms + REFUSED_RETRY_MS
                if _is_news(state.broker_throttles[broker].refusal, result):
                    refused = BrokerThrottleRefused(
                        cluster=state.name, broker=broker, code=result.code, message=result.message
                    )
                    batch.emit(refused)
        for topic, result in changed.topics.items():
            if topic in self._pending_topics:
                self._topic_changed(topic, result, batch)
        if self._pending_brokers or self._pending_topics:
            self._write_from_ms = now_ms + RETRY_MS

    def _topic_changed(self, topic: str, result: CallResult, batch: BatchBuilder) -> None:
        throttle, now_ms = self.state.topic_throttles[topic], batch.now.monotonic_ms
        if result.code == UNKNOWN_TOPIC_OR_PARTITION:
            since_ms = self._unknown_ms.setdefault(topic, now_ms)
            if topic in self._demand.topics or now_ms - since_ms < METADATA_LAG_MS:
                # A lagging broker does not know a new topic, either. Moves of a topic that is gone end anyway.
                return
        self._unknown_ms.pop(topic, None)
        if result.code == NONE:
            self._recent_writes.wrote_entries(topic, throttle.add, throttle.remove, now_ms)
            batch.emit(TopicThrottleSet(cluster=self.state.name, topic=topic))
        elif result.code in {UNKNOWN_TOPIC_OR_PARTITION, _INVALID_CONFIG}:
            wanted = self._demand.topics.get(topic)
            # Present entries stay in the ledger, unless their last removal is refused, which would be tried for ever.
            keeps = result.code == _INVALID_CONFIG and (wanted is not None or throttle.add != NO_ENTRIES)
            self._refused[topic] = 0 if wanted is None else wanted.needed
            batch.emit(
                TopicThrottleLeft(
                    cluster=self.state.name,
                    topic=topic,
                    detail=f"Kafka refuses its lists: code {result.code} {result.message or ''}".rstrip(),
                    topic_id=throttle.topic_id,
                    refused=keeps,
                )
            )
        elif is_refused(result):
            self._refused_until_ms[topic] = now_ms + REFUSED_RETRY_MS
            if _is_news(throttle.refusal, result):
                batch.emit(
                    TopicThrottleRefused(cluster=self.state.name, topic=topic, code=result.code, message=result.message)
                )

    def follow(self, changes: Changes) -> None:
        """Follow changes of the demand, and of the ledger itself."""
        for key in changes.ended:
            self._demand.end(key)
        for key in changes.partitions:
            self._demand.update(key)
        for event in changes.events:
            if type(event) not in _FOLLOWED:
                continue
            if isinstance(event, PlanThrottleEvent):
                self._demand.plan_changed(event.plan)
                self.version += 1
            elif isinstance(event, ClusterThrottleSet):
                self._demand.plan_changed(None)
                self.version += 1
            elif isinstance(event, ThrottleEvent):
                self._ledger_changed(event)

    def _ledger_changed(self, event: ThrottleEvent) -> None:
        self.version += 1
        if not isinstance(event, BrokerThrottleRefused | TopicThrottleRefused):
            # Another write follows, which Kafka may accept.
            self._refused_until_ms.pop(event.broker if isinstance(event, BrokerThrottleEvent) else event.topic, None)
        if isinstance(event, BrokerThrottleEvent):
            entry = self.state.broker_throttles.get(event.broker)
            pending = entry is not None and entry.pending
            (self._pending_brokers.add if pending else self._pending_brokers.discard)(event.broker)
            self._demand.changed_brokers.add(event.broker)
        else:
            throttle = self.state.topic_throttles.get(event.topic)
            pending = throttle is not None and throttle.pending
            (self._pending_topics.add if pending else self._pending_topics.discard)(event.topic)
            self._demand.changed_topics.add(event.topic)
            wanted = self._demand.topics.get(event.topic)
            if wanted is not None:
                _follow_ledger(wanted, event)

    # -- reconciling

    def reconcile(self, batch: BatchBuilder) -> None:
        """Intend writes where ledger and demand differ; ask for readings where they are missing."""
        state, demand = self.state, self._demand
        if calls_nothing(state):
            return
        if self.observed.live != self._live:
            # Brokers that have come back are compared again.
            demand.changed_brokers.update(self.observed.live - self._live)
            self._live = self.observed.live
            self.version += 1
        batch.emit_all(given_up(state, self.observed.brokers))
        self._remove_overdue(batch.now.monotonic_ms)
        demand.changed_topics.update(self._due_topics.due(batch.now.monotonic_ms))
        demand.look_ahead(batch.now.monotonic_ms)
        brokers, topics = demand.changed_brokers, demand.changed_topics
        if not brokers and not topics:
            self._to_read = ((), ())
            return
        demand.changed_brokers, demand.changed_topics = set(), set()
        self._refused = {topic: entries for topic, entries in self._refused.items() if not self._may_retry(topic)}
        now_ms = batch.now.monotonic_ms
        read = replace(
            self._readings.recent(now_ms),
            refused=self._refused,
            removable=lambda topic, entries: self._recent_writes.removable(topic, entries, now_ms),
        )
        plan = plan_throttles(state, demand, self.observed.live, read, brokers, topics, self._overdue)
        batch.emit_all(plan.events)
        self._let_removals_wait(topics, plan, now_ms)
        self._to_read = (plan.read_brokers, plan.read_topics)
        # Brokers and topics to read first stay changed until then.
        demand.changed_brokers.update(plan.read_brokers)
        demand.changed_topics.update(plan.read_topics)
        for topic in plan.unknown_topics:
            self._due_topics.put(topic, now_ms + FRESH_MS + 1)
        for topic in plan.delayed_removals:
            self._due_topics.put(topic, self._recent_writes.shown_ms(topic))

    def _may_retry(self, topic: str) -> bool:
        """Whether lists that were refused are no longer needed, or were too long and have room again."""
        wanted = self._demand.topics.get(topic)
        return wanted is None or wanted.needed <= MAX_ENTRIES_PER_TOPIC < self._refused[topic]

    def _remove_overdue(self, now_ms: int) -> None:
        """Compare the topics again whose removals have waited long enough."""
        while self._removals and next(iter(self._removals.values())) <= now_ms:
            topic = next(iter(self._removals))
            del self._removals[topic]
            self._overdue.add(topic)
            self._demand.changed_topics.add(topic)

    def _let_removals_wait(self, compared: Collection[str], plan: ThrottlePlan, now_ms: int) -> None:
        """Note until when each of these topics keeps its entries; any other that was compared has none to remove."""
        waiting = {*plan.only_removals}
        for topic in compared:
            if topic in waiting:
                self._removals.setdefault(topic, now_ms + REMOVAL_WAIT_MS)
            elif topic not in plan.read_topics and topic not in plan.unknown_topics:
                self._removals.pop(topic, None)
                self._overdue.discard(topic)

    # -- out

    def effects(self, now: Timestamp, start_by_ms: int, lapsed: str | None) -> Iterator[Effect]:
        """Send due writes, if they may still start, and readings, one of each at a time."""
        if lapsed is not None:
            return
        now_ms = now.monotonic_ms
        writes = self._writes(now_ms, start_by_ms) if now_ms <= start_by_ms else None
        if writes is not None:
            self._is_changing = True
            yield writes
        if self._readings.is_reading or self._is_changing:
            return
        brokers, topics = self._to_read
        if not brokers and not topics:
            brokers, topics = self._watch.portion(now_ms, self.state, self._demand)
        brokers, topics = self._readings.to_read(brokers, topics, now_ms)
        if brokers or topics:
            self._readings.begin(brokers, topics, now_ms)
            yield ReadThrottles(self.state.name, brokers, topics)

    def _writes(self, now_ms: int, start_by_ms: int) -> ChangeThrottles | None:
        if not (self._pending_brokers or self._pending_topics) or self._is_changing or self._write_from_ms > now_ms:
            return None
        state = self.state
        late = {name for name, until_ms in self._refused_until_ms.items() if until_ms > now_ms}
        ledger = {broker: state.broker_throttles[broker].intended for broker in sorted(self._pending_brokers - late)}
        rates = {
            broker: BrokerRates(intended.leader, intended.follower)
            for broker, intended in ledger.items()
            if broker in self.observed.live
        }
        topics = {topic: state.topic_throttles[topic] for topic in sorted(self._pending_topics - late)}
        add = {topic: _lists(throttle.add) for topic, throttle in topics.items()}
        remove = {topic: _lists(throttle.remove) for topic, throttle in topics.items()}
        kept = {topic: _lists(_kept(throttle)) for topic, throttle in topics.items()}
        return ChangeThrottles(state.name, rates, add, remove, kept, start_by_ms) if rates or add else None

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Watch the cluster while the ledger holds anything, and its brokers while it may wait for dead ones.

        Due writes are owed: their intents may be old, so that the owner may have changed since.
        """
        del moves
        state, now_ms, seen_ms = self.state, now.monotonic_ms, self.observed.live_seen_ms
        is_old = seen_ms is None or now_ms - seen_ms > FRESH_MS
        ledger = state.broker_throttles or state.topic_throttles
        return Attention(
            brokers=bool(state.broker_throttles) and is_old,
            due_ms=self._due_ms(now_ms),
            urgency=Urgency.WAITING if ledger else Urgency.IDLE,
            owes=self._writes(now_ms, now_ms) is not None,
        )

    def _due_ms(self, now_ms: int) -> int | None:
        """Wake to repeat a write without an answer, to remove entries, and to read settings again."""
        write_ms = self._write_from_ms if self._write_from_ms > now_ms else None
        refused_ms = min((until_ms for until_ms in self._refused_until_ms.values() if until_ms > now_ms), default=None)
        removal_ms = next(iter(self._removals.values()), 0)
        removal_due_ms = removal_ms if removal_ms > now_ms else None
        watch_ms, ahead_ms = self._watch.due_ms(now_ms, self._demand), self._demand.due_ms(now_ms)
        times = (
            write_ms,
            refused_ms,
            self._due_topics.due_ms(now_ms),
            self._readings.due_ms(now_ms),
            watch_ms,
            removal_due_ms,
            ahead_ms,
        )
        return min((time for time in times if time is not None), default=None)


def _is_news(before: ConfigRefusal | None, result: CallResult) -> bool:
    """Whether Kafka refuses a write for the first time, or in other words than before."""
    return before is None or (before.code, before.message) != (result.code, result.message)


def _kept(throttle: TopicThrottle) -> Entries:
    """Return the entries of a topic that stay while others are removed."""
    return NO_ENTRIES if throttle.remove == NO_ENTRIES else without(throttle.present, throttle.remove)


def _lists(entries: Entries) -> ThrottledReplicas:
    return ThrottledReplicas(entries.leader, entries.follower)


def _follow_ledger(wanted: TopicDemand, event: ThrottleEvent) -> None:
    """Compare the entries again that a write is about to change; all of them once a topic was left alone."""
    match event:
        case TopicThrottleIntended():
            wanted.change((*event.add.leader, *event.remove.leader), (*event.add.follower, *event.remove.follower))
        case TopicThrottleChanged():
            wanted.change(event.gone.leader, event.gone.follower)
        case TopicThrottleAdopted():
            wanted.change(event.found.leader, event.found.follower)
        case TopicThrottleLeft():
            wanted.change_all()
        case _:
            return
