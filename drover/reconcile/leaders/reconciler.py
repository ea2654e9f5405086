"""Leaders and orders: surveys find partitions to correct, an observation confirms it, `judge` says how."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from drover.decide.late_calls import expired_calls
from drover.decide.leaders import expire, next_expiry_ms
from drover.events.base import Event
from drover.events.brokers import BlacklistSet
from drover.events.clusters import LimitsChanged, LimitsSet
from drover.events.leadership import (
    LeaderBalanceBegun,
    LeaderElectionIntended,
    LeaderOrdersAnswered,
    LeaderOrdersIntended,
    LeadersCounted,
    LeaderWaitReason,
    OrderEnd,
    OrderOutcome,
)
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallAccepted, ReassignmentCompleted, ReassignmentCreated, StepConfirmed
from drover.events.records import AnyEvent
from drover.facts import Move, Observation, PartitionFacts, Survey
from drover.fold.plans import ENDINGS, Ending
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Attention, Changes, Reconciler, Urgency
from drover.reconcile.debounce import Debounce
from drover.reconcile.gates import CHANGE_GATES, calls_nothing, changes_nothing, lapse
from drover.reconcile.leaders.balance import BalanceProgress
from drover.reconcile.leaders.call_ends import CallEnds
from drover.reconcile.leaders.elections import Elections
from drover.reconcile.leaders.judgement import Forget, Judgement, LeaderPolicy, Reorder, Wait, is_strange, judge
from drover.reconcile.leaders.judgement_events import election, events_of
from drover.reconcile.leaders.listing_ends import ListingEnds
from drover.reconcile.leaders.moving_partitions import judge_moving, may_elect
from drover.reconcile.leaders.order_calls import OrderCalls, may_be_sent_alone
from drover.reconcile.leaders.reorders import Reorders
from drover.reconcile.leaders.survey_reader import SurveyReader, is_counted, next_survey_ms
from drover.reconcile.leaders.worklist import LONG_PAUSE, Worklist
from drover.reconcile.messages import CallEnded, Effect, Identified, Input, LeadersElected, Timestamp
from drover.reconcile.observations import FRESH_TO_START_MS, CachedObservation, ObservationCache
from drover.state.cluster import ClusterState

# How many observed partitions may wait to be acted on, how few of them let further ones be observed (an observation
# that is no longer fresh must be repeated), and how many are acted on in one batch.
MAX_READY, FEW_READY, MAX_ACTS = 600, 300, 120
# How many waiting partitions are observed again at a time.
MAX_WAITING_OBSERVED = 100


class LeadershipReconciler(Reconciler):
    """Keeps listed brokers from leading, restores canonical orders, and balances leaders when that is asked for."""

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp) -> None:
        super().__init__(state, observed, now)
        self._elections = Elections(state, observed)
        self._order_calls = OrderCalls(state, observed)
        self._reorders = Reorders(state)
        self._balancing = BalanceProgress(state)
        self._listing_ends = ListingEnds(state)
        self._work = Worklist()
        self._ends = CallEnds(state, self._order_calls, self._elections, self._work)
        self._debounce = Debounce()
        # Reorders that were cancelled or that failed: they are tried again after a pause.
        self._taken_back: list[TopicPartition] = []
        self._moved: list[TopicPartition] = []
        self._reader: SurveyReader | None = None
        # The length of each topic's shortest list, as surveys show it.
        self._shortest: dict[str, int] = {}
        # Monotonic; 0 asks for a survey at once.
        self._next_survey_ms = 0
        self._live: frozenset[int] = frozenset()
        # By topic; valid for one pass, in which their inputs do not change.
        self._policies: dict[str, LeaderPolicy] = {}
        # By type: with structs, a pattern costs as much as most of these functions.
        self._following: Mapping[type[Event], Callable[[Any], None]] = {
            **dict.fromkeys((BlacklistSet, LeaderBalanceBegun, LimitsSet, LimitsChanged), self._survey_soon),
            LeaderElectionIntended: lambda event: self._elections.propose(event.key),
            LeaderOrdersIntended: self._order_calls.intended,
            LeaderOrdersAnswered: self._orders_answered,
            ReassignmentCreated: self._reorders.created,
            **dict.fromkeys(ENDINGS, self._reassignment_ended),
            **dict.fromkeys((CallAccepted, StepConfirmed), self._list_changed),
        }
        # Take over calls and reorders of a predecessor; a survey finds everything else.
        self._elections.begin(now)
        self._order_calls.begin(now)
        self._reorders.begin()

    @property
    def _is_active(self) -> bool:
        state = self.state
        return bool(state.blacklist or state.orders or state.waiting) or state.balance is not None

    # -- in

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Take in observations, surveys and the ends of calls; `reconcile` acts on them."""
        match entry:
            case Observation():
                for key in entry.partitions:
                    if self._order_calls.is_lost(key):
                        self._order_calls.resolve(key, self.observed.partitions[key])
                    elif key in self._work.candidates or key in self.state.waiting:
                        self._work.seen(key)
                self._see_live(batch)
            case Survey():
                self._next_survey_ms = next_survey_ms(self.state, entry.ended_ms)
                self._reader = SurveyReader(entry, self._shortest, self._listing_ends.until_in_sync)
                self._shortest = self._reader.shortest
                self._see_live(batch)
            case Identified():
                self._see_live(batch)
            case LeadersElected():
                self._elections.ended(entry)
            case CallEnded():
                self._order_calls.ended(entry)
            case _:
                return

    def _see_live(self, batch: BatchBuilder) -> None:
        if self.observed.live is self._live:
            return
        before, self._live = self._live, self.observed.live
        self._next_survey_ms = 0
        if before:
            batch.emit_all(self._balancing.after_return(sorted(self._live - before)))

    def follow(self, changes: Changes) -> None:
        """Follow reorders and calls, and note partitions to observe again after a change."""
        for event in changes.events:
            follow = self._following.get(type(event))
            if follow is not None:
                follow(event)
        self._reorders.follow(changes.partitions)

    def _survey_soon(self, _event: AnyEvent) -> None:
        self._next_survey_ms = 0

    def _orders_answered(self, event: LeaderOrdersAnswered) -> None:
        for key in event.keys if event.outcome is OrderOutcome.ELECTING else ():
            self._elections.propose(key)

    def _list_changed(self, event: CallAccepted | StepConfirmed) -> None:
        listed, reassignment = self.state.listed_for(event.topic), self.state.reassignments.get(event.key)
        if reassignment is not None and not listed.isdisjoint(reassignment.current):
            self._work.candidates[event.key] = None

    def _reassignment_ended(self, event: Ending) -> None:
        key, state = event.key, self.state
        self._elections.keep_waiting(key)
        is_own, elects = self._reorders.ended(event)
        if not is_own:
            self._moved.append(key)
        if elects:
            self._work.reordered[key] = None
        elif is_own and not isinstance(event, ReassignmentCompleted):
            self._taken_back.append(key)
        elif is_own or key in state.orders or not state.listed_for(key.topic).isdisjoint(event.replicas):
            self._work.candidates[key] = None

    # -- reconciling

    def reconcile(self, batch: BatchBuilder) -> None:
        """Record ended calls, read the survey, and act on ready partitions; none while frozen (R236-9)."""
        self._record_ends(batch)
        state = self.state
        self._policies = {}
        if not calls_nothing(state):
            self._read_survey(batch)
        # Listings expire by log time, whichever cluster answers.
        if over := self._listing_ends.over(batch.now):
            batch.emit(expire(state, over))
        if changes_nothing(state):
            return
        self._policies = {}
        for key in self._some(self._work.reordered):
            self._elect_reordered(key, batch)
        for key in self._some(self._work.ready):
            self._act(key, batch)
        batch.emit_all(self._order_calls.take_intents())

    def _record_ends(self, batch: BatchBuilder) -> None:
        now_ms = batch.now.monotonic_ms
        if self._ends.record(batch) and not any(self._may_observe(key, now_ms) for key in self._work.candidates):
            # A client may wait until a broker leads nothing: leaders are counted as soon as that may be so.
            self._next_survey_ms = 0
        self._work.moved(self._moved, now_ms)
        self._work.forget_old(now_ms)
        taken_back, self._taken_back, self._moved = self._taken_back, [], []
        for key in taken_back:
            self._work.try_later(key, LONG_PAUSE, now_ms)

    def _read_survey(self, batch: BatchBuilder) -> None:
        """Read a piece of the last survey."""
        reader = self._reader
        if reader is None:
            return
        if reader.survey.kafka_cluster_id != self.state.kafka_cluster_id:
            self._reader = None
            return
        if not reader.read_on(self._check):
            return
        self._reader = None
        self._listing_ends.surveyed(reader)
        self._work.candidates.update(dict.fromkeys(self.state.orders.keys() - reader.survey.partitions.keys()))
        counts = reader.counts(self.state.blacklist)
        if not is_counted(self.state, counts, batch.at_ms):
            batch.emit(LeadersCounted(cluster=self.state.name, brokers=counts))
        is_idle = self._work.is_empty and not (self._reorders.under_way or self.state.intended_orders)
        batch.emit_all(self._balancing.after_survey(batch.at_ms, batch.now.monotonic_ms, is_idle=is_idle))

    def _check(self, key: TopicPartition, facts: PartitionFacts) -> None:
        """Note a partition that is not as it should be: before it is acted on, it is observed by itself."""
        state = self.state
        order = state.orders.get(key)
        is_led_well = facts.leader == facts.replicas[0] and order is None
        if is_led_well and state.listed_for(key.topic).isdisjoint(facts.replicas):
            return
        if key in state.elections or key in state.intended_orders:
            return
        policy, moving = self._policy(key.topic), state.reassignments.get(key)
        judgement = judge(facts, order, policy) if moving is None else judge_moving(facts, moving, policy)
        if moving is None:
            self._balancing.count(facts, judgement, policy)
        if isinstance(judgement, Wait):
            earlier = state.waiting.get(key)
            if earlier is not None and (earlier.why, earlier.detail) == (judgement.why, judgement.detail):
                return
        if judgement is not None or key in state.waiting:
            self._work.candidates[key] = None

    def _policy(self, topic: str) -> LeaderPolicy:
        policy = self._policies.get(topic)
        if policy is None:
            policy = self._policies[topic] = LeaderPolicy(
                listed=self.state.listed_for(topic),
                live=self.observed.live,
                gives_up=not self.state.limits.lazy_leadership,
                balances=self._balancing.covers(topic),
                brokers=self.observed.brokers,
            )
        return policy

    @property
    def _room(self) -> int:
        """How many more leaders may be on their way, beside those that steps move."""
        state = self.state
        under_way = state.leader_movements + self._reorders.under_way + self._order_calls.collected
        return max(0, state.limits.max_leader_movements - under_way)

    def _some(self, keys: dict[TopicPartition, None]) -> Iterator[TopicPartition]:
        """Take one after the other while there is room; one that needs no action leaves its room to the next."""
        for key in list(islice(keys, MAX_ACTS)):
            if self._room:
                del keys[key]
                yield key

    def _elect_reordered(self, key: TopicPartition, batch: BatchBuilder) -> None:
        kept = self.state.orders.get(key)
        if kept is None or kept.left_alone or key in self.state.reassignments or self._is_busy(key):
            self._work.candidates[key] = None
        elif kept.replicas[0] in (listed := self.state.listed_for(key.topic)) and not listed.issuperset(kept.replicas):
            # The brokers that should not lead have changed since the reorder began.
            self._work.candidates[key] = None
        else:
            batch.emit(election(self.state, key, kept.topic_id, kept.replicas))

    def _is_busy(self, key: TopicPartition) -> bool:
        moving = self.state.reassignments.get(key)
        is_called = key in self.state.elections or key in self.state.intended_orders
        return is_called or (moving is not None and not may_elect(moving))

    def _act(self, key: TopicPartition, batch: BatchBuilder) -> None:
        """Act on the last observation of one partition; if it is old, observe again."""
        if self._is_busy(key):
            return
        if expired_calls(self.state, key, batch.at_ms) is not None:
            # A call of a move that was given up may still take effect, and a reorder would undo that.
            self._work.try_later(key, LONG_PAUSE, batch.now.monotonic_ms)
            return
        seen = self.observed.fresh(key, batch.now.monotonic_ms, FRESH_TO_START_MS)
        if seen is None or self._work.is_behind(key, seen):
            self._work.candidates[key] = None
            return
        judgement = self._judge(key, seen)
        may_be_old = is_strange(judgement, seen.facts, self._shortest.get(key.topic))
        if may_be_old and not self._debounce.has_persisted(key, seen):
            # Brokers' metadata lags behind the controller.
            self._debounce.note(key, seen.ended_ms, unconfirmed=True)
            self._work.candidates[key] = None
            return
        self._debounce.forget(key)
        self._do(key, judgement, seen.facts, batch)

    def _judge(self, key: TopicPartition, seen: CachedObservation) -> Judgement | None:
        kept, moving = self.state.orders.get(key), self.state.reassignments.get(key)
        if moving is not None:
            # That the partition is gone is found by its move.
            return None if seen.facts is None else judge_moving(seen.facts, moving, self._policy(key.topic))
        if seen.facts is None:
            return None if kept is None else Forget(OrderEnd.GONE)
        return judge(seen.facts, kept, self._policy(key.topic))

    def _do(
        self, key: TopicPartition, judgement: Judgement | None, facts: PartitionFacts | None, batch: BatchBuilder
    ) -> None:
        if isinstance(judgement, Reorder) and facts is not None:
            if may_be_sent_alone(self.state, facts):
                self._order_calls.add(key, facts, judgement)
            else:
                batch.emit_all(self._reorders.begin_one(key, facts, judgement))
        else:
            batch.emit_all(events_of(self.state, key, judgement, facts))
        if isinstance(judgement, Forget) and judgement.why is not OrderEnd.RESTORED:
            # The partition has another list now, which is judged anew.
            self._work.candidates[key] = None

    # -- out

    def effects(self, now: Timestamp, start_by_ms: int, lapsed: str | None) -> Iterator[Effect]:
        """Make the calls that are due; none if a gate was shut since they were intended."""
        lapsed = lapsed or lapse(self.state, CHANGE_GATES)
        if lapsed is not None:
            self._order_calls.withhold(lapsed)
            self._elections.withhold(lapsed)
            return
        yield from self._order_calls.calls(now.monotonic_ms, start_by_ms)
        yield from self._elections.calls(now.monotonic_ms, start_by_ms)

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Watch closely while there are candidates to observe.

        While any order or leader is to be kept, a survey is due once in a while, and at once after a change.
        """
        now_ms, may_change = now.monotonic_ms, not changes_nothing(self.state)
        is_survey_due = self._is_active and not self._next_survey_ms
        is_near = may_change and (is_survey_due or bool(self._work.candidates))
        waits = Urgency.WAITING if self.state.waiting or self.state.balance is not None else Urgency.IDLE
        return Attention(
            partitions=() if moves is None else tuple(self._to_observe(now_ms, may_change=may_change)),
            survey=self._is_active and self._reader is None and now_ms >= self._next_survey_ms,
            due_ms=self._due_ms(now, may_change=may_change),
            urgency=Urgency.BUSY if is_near or self._order_calls.lost() else waits,
            is_pressing=may_change and (is_survey_due or self._may_observe_now(now_ms)),
        )

    def _to_observe(self, now_ms: int, *, may_change: bool) -> Iterator[TopicPartition]:
        """Choose candidates, as many as there is room to act on, and waiting partitions once in a while."""
        yield from (key for key in self._order_calls.lost() if self.observed.call_ended_ms(key) <= now_ms)
        if not may_change:
            return
        ready = len(self._work.ready)
        room = min(MAX_READY - ready, self._room) if ready <= FEW_READY else 0
        candidates = (key for key in self._work.candidates if self._may_observe(key, now_ms))
        yield from islice(candidates, room)
        # A partition that waits for its own move is observed as that goes on, and by every survey.
        old = (
            key
            for key, wait in self.state.waiting.items()
            if wait.why is not LeaderWaitReason.BEING_MOVED
            and self._may_observe(key, now_ms)
            and self.observed.fresh(key, now_ms) is None
        )
        yield from islice(old, min(MAX_WAITING_OBSERVED, room))

    def _may_observe(self, key: TopicPartition, now_ms: int) -> bool:
        return (
            not self._is_busy(key)
            and not self.observed.is_calling(key)
            and self.observed.call_ended_ms(key) <= now_ms
            and self._work.may_try(key, now_ms)
        )

    def _due_ms(self, now: Timestamp, *, may_change: bool) -> int | None:
        """Wake for work that can go on at once, for calls and their ends, and when a listing expires."""
        now_ms = now.monotonic_ms
        times = [self._elections.due_ms(now_ms), self._order_calls.due_ms(now_ms)]
        expiry_ms = next_expiry_ms(self.state)
        if expiry_ms is not None:
            times.append(now_ms + max(0, expiry_ms - now.wall_ms))
        may_act = (self._work.ready or self._work.reordered) and self._room and may_change
        if may_act or (self._reader is not None and not calls_nothing(self.state)):
            times.append(now_ms)
        return min((due for due in times if due is not None), default=None)

    def _may_observe_now(self, now_ms: int) -> bool:
        """Whether a candidate that may be acted on is to be observed at once."""
        may_act = len(self._work.ready) <= FEW_READY and self._room
        few = islice(self._work.candidates, MAX_WAITING_OBSERVED)
        return bool(may_act) and any(self._may_observe(key, now_ms) for key in few)
