"""Starts steps: plans take turns, within the limits, and once their throttles are set."""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from msgspec.structs import replace

from drover.decide.cancellation import postponed
from drover.decide.verdict import Context, gone
from drover.events.adaptation import StartsSuspended
from drover.events.base import Event
from drover.events.clusters import LimitsChanged, LimitsSet
from drover.events.leadership import LeaderOrdersAnswered
from drover.events.partitions import TopicPartition
from drover.events.plans import Priority
from drover.events.reassignments import ReassignmentUnblocked
from drover.events.records import AnyEvent
from drover.facts import Move, Observation, PartitionFacts
from drover.reconcile.backoff import Backoff
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Attention, Changes, Reconciler, Urgency
from drover.reconcile.debounce import Debounce
from drover.reconcile.gates import (
    BUDGET_GATES,
    LEADER_MOVEMENTS,
    PARTITION_SLOTS,
    SLOT_GATES,
    STEP_GATES,
    Gate,
    Start,
    Uplink,
    begins_nothing,
    first_shut,
)
from drover.reconcile.messages import BytesSampled, Input, Timestamp
from drover.reconcile.moves.call_pace import CallPace
from drover.reconcile.moves.context import context_of
from drover.reconcile.moves.copy_sizes import CopySizes
from drover.reconcile.moves.next_calls import ObserveAgain, SendStep, Wait
from drover.reconcile.moves.route import next_call
from drover.reconcile.observations import FRESH_TO_START_MS, ObservationCache
from drover.reconcile.starts.room import Room
from drover.reconcile.starts.shares import Shares
from drover.reconcile.starts.start_pace import StartPace
from drover.reconcile.starts.steps import (
    blocked_start,
    election_after,
    intend_step,
    is_prepared,
    likely_step,
    prepare_step,
    waiting_for_throttle,
)
from drover.reconcile.starts.throttles import Throttles
from drover.reconcile.starts.waiting_list import LEAST_BYTES, Turn, WaitingList
from drover.state.broker_directions import BrokerDirection, without
from drover.state.cluster import ClusterState
from drover.state.reassignment import Reassignment, Step
from drover.state.slot_share import share_of

# How many waiting partitions are observed at a time: twice as many as there is room for, within these bounds.
MIN_OBSERVED, MAX_OBSERVED = 20, 500
# How many moves are tried in vain in one pass, and how many are put into groups: the others follow in the next one.
MAX_VAIN_TRIES, MAX_PLACED = 40, 300
# A move that others have passed in so many passes gets the slots that it needs kept.
PATIENCE = 100
# How long a move waits for its size (monotonic): sizes are sampled every second.
SIZE_PATIENCE_MS = 2000
# An election ends within this time.
ELECTION_MS = 10_000
# Moves without room on their brokers are not observed even if a partition may begin, so that this gate is the last one.
_GATES = (*(gate for gate in STEP_GATES if gate is not PARTITION_SLOTS), PARTITION_SLOTS)
# No slots are kept for a move that waits at one of these gates.
_KEEPS_NOTHING = tuple(gate for gate in _GATES[:-1] if gate not in SLOT_GATES)


@dataclass(slots=True)
class _Pass:
    """One pass over the groups: how many steps it may begin and observations it may ask for, and the full budgets."""

    most_starts: int
    most_observed: int
    starts: int = 0
    vain: int = 0
    exhausted: dict[Gate, None] = field(default_factory=dict)
    tried: set[TopicPartition] = field(default_factory=set)
    # The first moves that lacked slots, and the latest turn of a step that began, by each slot that it took.
    lacking: list[tuple[Turn, Start]] = field(default_factory=list)
    latest: dict[BrokerDirection | Uplink, Turn] = field(default_factory=dict)


class Starter(Reconciler):
    """Starts steps: first those of moves that hold a slot, then those of pending ones."""

    def __init__(
        self,
        state: ClusterState,
        observed: ObservationCache,
        now: Timestamp,
        backoff: Backoff,
        sizes: CopySizes,
        throttles: Throttles,
        pace: CallPace,
    ) -> None:
        super().__init__(state, observed, now)
        self._pace = pace
        self._starts = StartPace()
        self._backoff = backoff
        self._sizes = sizes
        self._throttles = throttles
        self._throttles_version = 0
        self._debounce = Debounce()
        self.room = Room(state, observed, throttles)
        self.waiting = WaitingList(Shares(lambda plan: state.priorities.get(plan, Priority.NORMAL)))
        # Every waiting move is in a group, or in one of the next three: it is still to be put into a group, it was
        # tried in vain and waits until a time (monotonic), or it waits for its size.
        self.unplaced: dict[TopicPartition, None] = {}
        self.put_off: dict[TopicPartition, int] = {}
        self.unsized: dict[TopicPartition, None] = {}
        self._put_off_heap: list[tuple[int, TopicPartition]] = []
        # Until when (monotonic) a pending move waits for its size.
        self._sized_by: dict[TopicPartition, int] = {}
        # Whether a waiting move is pending, and its number: another move of the same partition differs in them.
        self._identities: dict[TopicPartition, tuple[bool, int]] = {}
        self._trying: TopicPartition | None = None
        self._to_observe: dict[TopicPartition, None] = {}
        # In how many passes others have passed a move.
        self._passed: dict[TopicPartition, int] = {}
        # The number of the step after which an election was held, of moves between two steps.
        self._elected: dict[TopicPartition, int] = {}
        # The last observed leader of a waiting partition: a hint, so that only moves with room are observed.
        self._leaders: dict[TopicPartition, int] = {}
        # Prepared steps whose throttle is not in force yet.
        self._unthrottled: dict[TopicPartition, None] = {}
        self._repairs: frozenset[TopicPartition] = frozenset()
        self._live: frozenset[int] = frozenset()
        self._racks: Mapping[int, str | None] = {}
        self._is_behind = False
        # Whether this pass has asked for as many observations as it may.
        self._is_informed = False
        self._following: Mapping[type[Event], Callable[[Any], None]] = {
            ReassignmentUnblocked: self._unblocked,
            LeaderOrdersAnswered: self._orders_answered,
            **dict.fromkeys((LimitsSet, LimitsChanged), self._place_all_again),
            StartsSuspended: self._place_repairs,
        }
        for key in (*self.state.moves.before_step, *self.state.moves.pending):
            self._note(key)

    # -- in

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Try observed moves again, and weigh measured ones anew."""
        del batch
        if isinstance(entry, Observation):
            for key in self.put_off.keys() & entry.partitions.keys():
                self._place_again(key)
        elif isinstance(entry, BytesSampled):
            pending, backlog = self.state.moves.pending, self.waiting.backlog
            for key, copies in entry.sizes.items():
                if key not in pending:
                    continue
                before, size = backlog.size(key), max(LEAST_BYTES, *copies.values(), LEAST_BYTES)
                # A first size always counts, since a copy of next to nothing takes less room.
                if self._sized_by.pop(key, None) is not None or not before // 2 < size < before * 2:
                    self._note(key)

    def follow(self, changes: Changes) -> None:
        """Follow which reassignments begin and cease to wait for a step."""
        for key in changes.ended:
            self._drop(key)
            self._debounce.forget(key)
        pending, before_step = self.state.moves.pending, self.state.moves.before_step
        for key in changes.partitions:
            if key not in pending and key not in before_step:
                self._drop(key)
            elif key != self._trying or self._identities.get(key) != self._identity(key):
                self._note(key)
        for event in changes.events:
            follow = self._following.get(type(event))
            if follow is not None:
                follow(event)

    def _unblocked(self, event: ReassignmentUnblocked) -> None:
        if event.key in self._identities:
            self._note(event.key)

    def _orders_answered(self, event: LeaderOrdersAnswered) -> None:
        for key in event.keys:
            if key in self._identities:
                self._place_again(key)

    def _place_all_again(self, _event: AnyEvent) -> None:
        self.unplaced.update(dict.fromkeys(self._identities))

    def _identity(self, key: TopicPartition) -> tuple[bool, int]:
        return key in self.state.moves.pending, self.state.reassignments[key].number

    def _note(self, key: TopicPartition) -> None:
        """Note a waiting move, and the bytes that it copies from its leader, or else from the first of its list."""
        self._identities[key] = is_pending, _ = self._identity(key)
        if is_pending:
            entry = self.state.reassignments[key]
            seen = self.observed.partitions.get(key)
            if seen is not None and seen.facts is not None and seen.facts.leader is not None:
                self._leaders[key] = seen.facts.leader
            step = Step(
                0, final=True, expected=entry.current, replicas=entry.step_target, leader=self._leader_of(entry)
            )
            self.waiting.backlog.put(key, step.load, self._sizes.copy_bytes(key))
        else:
            self.waiting.backlog.drop(key)
        self._place_again(key)

    def _leader_of(self, entry: Reassignment) -> int:
        return self._leaders.get(entry.key, entry.current[0])

    def _place_again(self, key: TopicPartition) -> None:
        self.put_off.pop(key, None)
        self.unsized.pop(key, None)
        self.unplaced[key] = None

    def _place_repairs(self, _event: StartsSuspended) -> None:
        """Move the partitions that the suspension of starts concerns into groups of their own, or out of them."""
        concerned = frozenset(self.state.below_min_isr) if self.state.suspension is not None else frozenset()
        for key in concerned ^ self._repairs:
            if key in self._identities:
                self._place_again(key)
        self._repairs = concerned

    def _drop(self, key: TopicPartition) -> None:
        if self._identities.pop(key, None) is None:
            return
        self.waiting.remove(key)
        self.waiting.backlog.drop(key)
        for flags in (self.unplaced, self.unsized, self._to_observe, self._unthrottled):
            if flags:
                flags.pop(key, None)
        for figures in (self.put_off, self._sized_by, self._passed, self._elected, self._leaders):
            if figures:
                figures.pop(key, None)

    # -- into groups

    def _place_some(self, now_ms: int) -> None:
        """Put moves into their groups, those in flight first."""
        if not self.unplaced:
            return
        first = [key for key in self.state.moves.before_step if key in self.unplaced]
        for key in (*first, *islice(self.unplaced, MAX_PLACED)):
            if self.unplaced.pop(key, self) is None:
                self._place(key, now_ms)

    def _place(self, key: TopicPartition, now_ms: int) -> None:
        entry = self.state.reassignments[key]
        is_pending, number = self._identities[key]
        self.put_off.pop(key, None)
        self.unsized.pop(key, None)
        # A blocked move is tried whatever room it needs, so that its block ends with its reason.
        step = (
            None if entry.block is not None else likely_step(self.state, self.observed, entry, self._leaders.get(key))
        )
        if step is None:
            self.waiting.put(Start(key, is_pending=is_pending), entry.plan, number)
        elif is_pending and step.adding and self._awaits_size(key, now_ms):
            self.waiting.remove(key)
            self.unsized[key] = None
        else:
            self.waiting.put(self._start_of(entry, step), entry.plan, number, repairs=key in self._repairs)

    def _start_of(self, entry: Reassignment, step: Step) -> Start:
        return Start(
            key=entry.key,
            plan=entry.plan,
            since_ms=entry.since_ms,
            directions=step.load,
            uplinks=self.room.uplinks(step),
            copies=len(step.adding),
            moves_leader=step.moves_leader,
            share=share_of(self._sizes.of_next(entry)),
            is_pending=self._identities[entry.key][0],
        )

    def _awaits_size(self, key: TopicPartition, now_ms: int) -> bool:
        """Whether a move is held back until its size is known, so that the first starts follow the order, too.

        None is held where all may begin at once or sizes are not sampled, nor for longer than `SIZE_PATIENCE_MS`.
        """
        limits, pending = self.state.limits, self.state.moves.pending
        if self._sizes.copy_bytes(key) is not None:
            self._sized_by.pop(key, None)
            return False
        by_ms = self._sized_by.setdefault(key, now_ms + SIZE_PATIENCE_MS)
        may_wait = self._sizes.is_read and len(pending) > min(limits.max_incoming, limits.max_outgoing)
        return may_wait and now_ms < by_ms

    # -- reconciling

    def reconcile(self, batch: BatchBuilder) -> None:
        """Start the steps that may start. While the cluster is frozen none starts (R236-9); steps under way go on."""
        self._is_behind = self._is_informed = False
        if begins_nothing(self.state):
            self._to_observe = {}
            return
        now_ms = batch.now.monotonic_ms
        most_starts = min(self._pace.room, self._starts.room(now_ms))
        if not most_starts:
            return  # `reconcile` is called again with the answers to open calls, or at `_due_ms`
        self._wake(batch.now)
        self._place_some(now_ms)
        self.room.begin()
        self.waiting.shares.begin()
        kept = self._keep_slots()
        most_observed = min(MAX_OBSERVED, MIN_OBSERVED + min(most_starts, 2 * max(0, self.room.partitions)))
        this = _Pass(most_starts, most_observed)
        self._run(this, kept, batch)
        self._count_passed(this)
        self._is_behind = self._is_behind or bool(self.unplaced)
        self._starts.begin(this.starts, now_ms)

    def _wake(self, now: Timestamp) -> None:
        """Place moves again that may have become possible, or may have another next step."""
        now_ms = now.monotonic_ms
        if self.observed.live != self._live or self.room.racks != self._racks:
            # The replica that a step adds, and whether it can be added, depends on the live brokers.
            self._live, self._racks = self.observed.live, self.room.racks
            self.unplaced.update(dict.fromkeys(self._identities))
        if self._throttles.version != self._throttles_version:
            self._throttles_version = self._throttles.version
            for key in tuple(self._unthrottled):
                if self._throttles.is_ready(self.state.reassignments[key], now):
                    del self._unthrottled[key]
                    self._place_again(key)
        for key in tuple(islice(self.unsized, MAX_PLACED)):
            if self._sized_by.get(key, 0) > now_ms:
                break
            self._place_again(key)
        while self._put_off_heap and self._put_off_heap[0][0] <= now_ms:
            due_ms, key = heapq.heappop(self._put_off_heap)
            if self.put_off.get(key) == due_ms:
                self._place_again(key)

    def _keep_slots(self) -> list[TopicPartition]:
        """Keep slots for moves that were passed too often, unless another gate holds them; return these moves."""
        kept: list[TopicPartition] = []
        for key, count in self._passed.items():
            start = self.waiting.start(key) if count >= PATIENCE else None
            if start is not None and first_shut(start, self.room, _KEEPS_NOTHING) is None and self.room.keep(start):
                kept.append(key)
        return kept

    def _run(self, this: _Pass, kept: Sequence[TopicPartition], batch: BatchBuilder) -> None:
        """Take moves in their turn: start them, ask to observe them, or pass over them for want of room.

        Moves that were observed for this come first, so that no observation is wasted because the order has changed.
        """
        waiting, now_ms = self.waiting, batch.now.monotonic_ms
        asked, self._to_observe = self._to_observe, {}
        turns = ((turn, key) for key in asked if (turn := waiting.turn_of(key)) is not None)
        for turn, key in sorted(turns):
            if self._is_over(this):
                return
            start = waiting.start(key)
            if start is not None and self._shut(start, this) is None and self._is_seen(key, now_ms):
                self._try_one(start, turn, this, batch)
                this.tried.add(key)
        order = waiting.fair_queue(waiting.window(self.room.takes_copies, kept))
        while (first := order.first()) is not None and not self._is_over(this):
            turn, group, item = first
            key = item[2]
            if key not in this.tried and not self._take(key, turn, this, batch):
                if self._is_informed:
                    return
                order.drop(group)
            else:
                order.skip(group, item)

    def _is_over(self, this: _Pass) -> bool:
        """Whether this pass has done enough; if so the next one follows at once."""
        if this.starts < this.most_starts and this.vain < MAX_VAIN_TRIES:
            return False
        self._is_behind = True
        return True

    def _take(self, key: TopicPartition, turn: Turn, this: _Pass, batch: BatchBuilder) -> bool:
        """Try a move in its turn, or ask to observe it first; return whether the next one of its group follows.

        Where no more partitions may be in flight, the next ones are observed nevertheless, so that the pass in which a
        slot becomes free can use it.
        """
        start, now_ms = self.waiting.start(key), batch.now.monotonic_ms
        assert start is not None, "a move in a group has a start"
        gate = self._shut(start, this)
        if gate is None and self._is_seen(key, now_ms):
            self._try_one(start, turn, this, batch)
            return True
        if gate is None or gate is PARTITION_SLOTS:
            self._is_informed = len(self._to_observe) >= (MIN_OBSERVED if gate else this.most_observed)
            if not self._is_informed and self._may_try(key, now_ms):
                self._ask_for(start)
            return not self._is_informed
        if gate in SLOT_GATES:
            this.lacking.append((turn, start))
        elif gate in BUDGET_GATES:
            this.exhausted[gate] = None
        return False

    def _shut(self, start: Start, this: _Pass) -> Gate | None:
        """Return the budget that an earlier step waits for, or the first gate that is shut for this one."""
        for budget in this.exhausted:
            # One budget is of leaders, the others are of copies and their bytes.
            if start.moves_leader if budget is LEADER_MOVEMENTS else start.copies:
                return budget
        return first_shut(start, self.room, _GATES)

    def _is_seen(self, key: TopicPartition, now_ms: int) -> bool:
        return self.observed.fresh(key, now_ms, FRESH_TO_START_MS) is not None

    def _ask_for(self, start: Start) -> None:
        """Ask to observe a partition, and leave room for its step."""
        self._to_observe[start.key] = None
        self.room.expect(start)
        if start.is_pending:
            self.waiting.shares.expect(self.state.reassignments[start.key].plan, start.copies)

    def _try_one(self, start: Start, turn: Turn, this: _Pass, batch: BatchBuilder) -> None:
        """Try a move, and count the room that it has taken."""
        events = len(batch.events)
        held = self.state.reassignments[start.key].weighing_step
        self._try(start.key, this, batch)
        if len(batch.events) == events:
            this.vain += 1
            return
        this.starts += 1
        begun = self.state.reassignments.get(start.key)
        self.room.begun(held, None if begun is None else begun.weighing_step)
        for resource in start.slots:
            this.latest[resource] = max(turn, this.latest.get(resource, turn))

    def _count_passed(self, this: _Pass) -> None:
        """Count the moves that lacked slots while later moves have taken some of these."""
        for turn, start in this.lacking:
            if any(this.latest.get(resource, turn) > turn for resource in start.slots):
                self._passed[start.key] = self._passed.get(start.key, 0) + 1

    def _may_try(self, key: TopicPartition, now_ms: int) -> bool:
        """Whether the partition has no open call and no pause; otherwise it is put off until that ends."""
        if key in self.state.elections or key in self.state.intended_orders:
            self._put_off_until(key, now_ms + ELECTION_MS)
            return False
        if not self._backoff.may_try(key, now_ms):
            self._put_off_until(key, self._backoff.due_ms(key))
            return False
        return True

    def _put_off_until(self, key: TopicPartition, due_ms: int) -> None:
        self.waiting.remove(key)
        self.put_off[key] = due_ms
        heapq.heappush(self._put_off_heap, (due_ms, key))

    def _try(self, key: TopicPartition, this: _Pass, batch: BatchBuilder) -> None:
        reassignment, now_ms = self.state.reassignments[key], batch.now.monotonic_ms
        if not self._may_try(key, now_ms):
            return
        seen = self.observed.fresh(key, now_ms, FRESH_TO_START_MS)
        assert seen is not None, "what is tried was observed"
        # Unless it comes to wait for something else, it is tried again with the next observation.
        self._put_off_until(key, seen.ended_ms + FRESH_TO_START_MS + 1)
        self._trying = key
        context = context_of(self.state, reassignment, self.observed, self._sizes, self._debounce, batch.at_ms)
        if seen.facts is None or seen.facts.topic_id != reassignment.topic_id:
            verdict = gone(reassignment, seen.facts, context)
            self._debounce.note(key, seen.ended_ms, unconfirmed=verdict.unconfirmed)
            batch.emit_all(verdict.events)
        elif not self._elects(reassignment, seen.facts, context, batch):
            call = next_call(reassignment, seen.facts, context)
            self._debounce.note(key, seen.ended_ms, unconfirmed=isinstance(call, ObserveAgain))
            if isinstance(call, Wait):
                batch.emit_all(blocked_start(reassignment, call.block, self.state.name))
            elif isinstance(call, SendStep):
                self._start(reassignment, call.step, this, batch)
        self._trying = None

    def _elects(self, reassignment: Reassignment, seen: PartitionFacts, context: Context, batch: BatchBuilder) -> bool:
        """Hold the election that the last step prepared, once: if it fails, the steps go on without it."""
        key, step = reassignment.key, reassignment.step
        election = election_after(reassignment, seen, context)
        if election is None or step is None or self._elected.get(key) == step.number:
            return False
        if first_shut(Start(key, moves_leader=True), self.room, BUDGET_GATES) is None:
            self._elected[key] = step.number
            batch.emit(election)
        return True

    def _start(self, reassignment: Reassignment, step: Step, this: _Pass, batch: BatchBuilder) -> None:
        if is_prepared(reassignment, step) or self._has_room(reassignment, step, this):
            self._begin(reassignment, step, batch)
        elif given_up := postponed(reassignment, self.state.name):
            # Other moves may need the room of the prepared step.
            batch.emit_all(given_up)
        elif step.leader is not None:
            self._leaders[reassignment.key] = step.leader
            self._place_if_shut(reassignment, step)
        now = self.state.reassignments[reassignment.key]
        refusal = self._throttles.refusal_block(now, batch.at_ms)
        batch.emit_all(waiting_for_throttle(now, refusal, self.state.name))

    def _place_if_shut(self, reassignment: Reassignment, step: Step) -> None:
        """Put a move that lacks room into the group of its step, unless it would be tried there in vain."""
        start = self._start_of(reassignment, step)
        if first_shut(start, self.room, STEP_GATES) is not None:
            self.put_off.pop(start.key, None)
            self.waiting.put(start, reassignment.plan, reassignment.number, repairs=start.key in self._repairs)

    def _has_room(self, reassignment: Reassignment, step: Step, this: _Pass) -> bool:
        """Whether every gate is open for the room that a step needs beyond the room that its move holds."""
        held, whole = reassignment.weighing_step, self._start_of(reassignment, step)
        throttled = step.adding and self._throttles.is_throttled(reassignment)
        start = whole._replace(
            directions=without(whole.directions, reassignment.load),
            uplinks=without(whole.uplinks, self.room.uplinks(held)),
            copies=whole.copies if held is None else max(0, whole.copies - len(held.adding)),
            moves_leader=whole.moves_leader and not (held is not None and held.moves_leader),
            entries=len(step.expected) if throttled else 0,
            is_observed=True,
        )
        return self._shut(start, this) is None

    def _begin(self, reassignment: Reassignment, step: Step, batch: BatchBuilder) -> None:
        """Take the slot; the call follows at once, or when the plan's throttle is in force."""
        key, cluster = reassignment.key, self.state.name
        if step.adding:
            # A prepared step keeps its room, and the size that it was counted with.
            was_prepared = is_prepared(reassignment, step)
            step = replace(step, copy_bytes=self._sizes.of_next(reassignment))
            if not was_prepared:
                self.waiting.shares.start(reassignment.plan, len(step.adding))
            if self._throttles.is_throttled(reassignment):
                if not was_prepared:
                    batch.emit(prepare_step(cluster, key, step))
                if not self._throttles.is_ready(self.state.reassignments[key], batch.now):
                    self._unthrottled[key] = None
                    return
        batch.emit(intend_step(cluster, key, step))

    # -- out

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Observe the moves whose turn it is closely, and again those whose observation was unexpected."""
        again = () if moves is None else self._debounce.partitions()
        return Attention(
            partitions=(*self._to_observe, *(key for key in again if key in self.state.reassignments)),
            due_ms=self._due_ms(now.monotonic_ms),
            urgency=Urgency.BUSY if self._to_observe else Urgency.IDLE,
        )

    def _due_ms(self, now_ms: int) -> int | None:
        """Wake when a move that was put off may be tried again; the end of a gate wakes it by an input."""
        if not self._pace.room or begins_nothing(self.state):
            return None
        paced_ms = self._starts.due_ms(now_ms)
        if paced_ms is not None and self._identities:
            return paced_ms
        if self._is_behind:
            return now_ms
        while self._put_off_heap and self.put_off.get(self._put_off_heap[0][1]) != self._put_off_heap[0][0]:
            heapq.heappop(self._put_off_heap)
        moments = [self._put_off_heap[0][0]] if self._put_off_heap else []
        moments += [self._sized_by.get(key, now_ms) for key in islice(self.unsized, 1)]
        return min(moments, default=None)
