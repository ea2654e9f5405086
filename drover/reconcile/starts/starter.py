"""Starting steps: what may begin now, plans by turns, within the limits and behind the throttles."""

from collections.abc import Iterator, Mapping
from itertools import islice

from msgspec.structs import replace

from drover.decide.cancellation import postponed
from drover.decide.verdict import Context, gone
from drover.events.adaptation import StartsSuspended
from drover.events.base import PartitionEvent
from drover.events.clusters import BrokerHeld, LimitsChanged, LimitsSet
from drover.events.leadership import LeaderElectionEnded, LeaderOrdersAnswered
from drover.events.partitions import TopicPartition
from drover.events.plans import Priority
from drover.events.records import AnyEvent
from drover.facts import Move, Observation, PartitionFacts
from drover.fold.plans import is_ending
from drover.reconcile.backoff import Backoff
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Reconciler, Urgency
from drover.reconcile.messages import BytesSampled, Input, Moment
from drover.reconcile.moves.call_pace import CallPace
from drover.reconcile.moves.context import context_of
from drover.reconcile.moves.copy_sizes import CopySizes
from drover.reconcile.moves.next_calls import LookAgain, SendStep, Wait
from drover.reconcile.moves.route import next_call
from drover.reconcile.observations import FRESH_TO_START_MS, ObservationCache
from drover.reconcile.starts.candidates import Candidate, Candidates
from drover.reconcile.starts.held_ports import HeldPorts
from drover.reconcile.starts.likely_step import likely_step
from drover.reconcile.starts.preparing import election_after
from drover.reconcile.starts.rack_traffic import RackTraffic
from drover.reconcile.starts.rank import Rank
from drover.reconcile.starts.ranking import Ranking
from drover.reconcile.starts.resources import Budget, Needs, Resource
from drover.reconcile.starts.room import Room
from drover.reconcile.starts.shares import Shares
from drover.reconcile.starts.start_pace import StartPace
from drover.reconcile.starts.step_needs import StepNeeds
from drover.reconcile.starts.steps import held_up, intend_step, is_prepared, prepare_step, waiting_for_throttle
from drover.reconcile.starts.throttles import Throttles
from drover.reconcile.starts.unsized import Unsized
from drover.reconcile.starts.waiting_entry import Where
from drover.reconcile.unconfirmed import Unconfirmed
from drover.state.cluster import ClusterState
from drover.state.ports import without
from drover.state.reassignment import Reassignment, Step

# How many waiting partitions are looked at in the cluster at a time: twice as many as there is room for, within these.
MIN_LOOKS, MAX_LOOKS = 20, 500
# How many are tried in vain in one batch, and for how many a look is asked: the rest follows in the next one.
MAX_VAIN_TRIES, MAX_ASKED = 40, 200
# How many are ranked anew in one batch because their sizes are known now.
MAX_RANKED = 1000
# No election is open for longer.
ELECTION_MS = 10_000


class Starter(Reconciler):
    """Starts what may start: first what holds a slot already, then what is pending."""

    def __init__(
        self,
        state: ClusterState,
        observed: ObservationCache,
        backoff: Backoff,
        sizes: CopySizes,
        throttles: Throttles,
        pace: CallPace,
    ) -> None:
        super().__init__(state, observed)
        self._pace = pace
        self._starts = StartPace()
        self._backoff = backoff
        self._sizes = sizes
        self._throttles = throttles
        self._unconfirmed = Unconfirmed()
        self.candidates = Candidates(Shares(lambda plan: state.priorities.get(plan, Priority.NORMAL)))
        self.ranking = Ranking(state, sizes)
        self._unsized = Unsized(state, sizes)
        self._racks = RackTraffic(state, observed)
        self._room = Room(state, observed, throttles, self.candidates, self._racks)
        self._needs = StepNeeds(state, sizes, self._unsized, self._racks)
        # Those that are ranked anew beside what came with them.
        self._fresh: dict[TopicPartition, None] = {}
        self._lacked: list[Resource] = []
        # The step after which an election was held, of what is between two steps.
        self._elected: dict[TopicPartition, int] = {}
        # Who led a waiting partition when it was last observed: a hint, so that nothing without room is observed.
        self._leaders: dict[TopicPartition, int] = {}
        # Prepared steps whose throttle is not in force yet.
        self._unthrottled: dict[TopicPartition, None] = {}
        self._throttles_version = 0
        self._held_ports = HeldPorts(state)
        self._live: frozenset[int] = frozenset()
        self._is_behind = False

    def begin(self, now: Moment) -> None:
        """Index everything that waits for a step."""
        del now
        self._racks.refresh()
        self._limit_looks(MAX_LOOKS)
        for key in self.state.moves.in_flight:
            self._held_ports.follow(key)
        for key in (*self.state.moves.before_step, *self.state.moves.pending):
            self._offer(key)

    # -- in

    def handle(self, entry: Input, batch: BatchBuilder) -> None:
        """Try again what was observed."""
        del batch
        if isinstance(entry, Observation):
            self.candidates.seen(entry.partitions)
        elif isinstance(entry, BytesSampled):
            self.ranking.sampled(entry.sizes)

    def applied(self, event: AnyEvent) -> None:
        """Follow which reassignments begin and cease to wait for a step."""
        if isinstance(event, PartitionEvent):
            key = event.key
            self._racks.follow(key)
            self.candidates.free(self._held_ports.follow(key))
            if key in self.state.moves.pending or key in self.state.moves.before_step:
                if key not in self.candidates or self.ranking.is_outdated(key, self.candidates.rank(key)):
                    # What it needs is found out once it is ranked beside what came with it.
                    self._fresh[key] = None
                    self.candidates.offer(key, self._weigh(key))
            else:
                self._drop(key)
            if is_ending(event):
                self._unconfirmed.forget(key)
            elif type(event) is LeaderElectionEnded:
                self.ranking.offer_again(self.candidates, (key,))
            return
        self.candidates.free_all()
        if isinstance(event, LeaderOrdersAnswered):
            self.ranking.offer_again(self.candidates, event.keys)
        elif isinstance(event, LimitsSet | LimitsChanged | StartsSuspended | BrokerHeld):
            self.candidates.offer_looked_at()
            self.candidates.recheck_parked()

    def _weigh(self, key: TopicPartition) -> Rank:
        """Note what a reassignment is to copy, and rank it."""
        seen = self.observed.partitions.get(key)
        if seen is not None and seen.facts is not None and seen.facts.leader is not None:
            self._leaders[key] = seen.facts.leader
        self.ranking.weigh(key, self._leaders.get(key))
        return self.ranking.rank(key)

    def _offer(self, key: TopicPartition) -> None:
        rank = self._weigh(key)
        if not self._park_if_full(key, rank, self._likely_step(self.state.reassignments[key])):
            self.candidates.offer(key, rank)

    def _drop(self, key: TopicPartition) -> None:
        self.candidates.drop(key)
        self.ranking.forget(key)
        self._unsized.forget(key)
        self._leaders.pop(key, None)
        self._unthrottled.pop(key, None)
        self._elected.pop(key, None)

    # -- what follows

    def reconcile(self, batch: BatchBuilder) -> None:
        """Start whatever may start. While the cluster is frozen no step starts (R236-9); steps under way go on."""
        state = self.state
        if state.begins_nothing:
            return
        now_ms = batch.now.monotonic_ms
        self._is_behind, most_starts = False, min(self._pace.room, self._starts.room(now_ms))
        if not most_starts:
            return  # the answers to open calls wake it, or the time
        self._limit_looks(most_starts)
        is_ranked = self._rank_anew()
        self._is_behind = self._wake(batch.now) or not is_ranked
        vain_tries = asked = starts = 0
        for candidate in self.candidates.ready():
            # The rank it was given among the others: by now less waits at its ports, and theirs are not made anew.
            key, rank = candidate.key, self.candidates.rank(candidate.key)
            is_over = vain_tries >= MAX_VAIN_TRIES or asked >= MAX_ASKED or starts >= most_starts
            is_full = key in state.moves.pending and self._room.partitions <= 0
            if is_over or (is_full and self.candidates.is_looked_enough):
                self._is_behind = self._is_behind or is_over
                self.candidates.offer(key, rank, candidate.woken_by)
                break
            if is_full:
                # Stay informed about those that are next, so that the draft that frees a slot can use it.
                self._look(state.reassignments[key], rank)
                continue
            events = len(batch.events)
            self._try(candidate, batch)
            if len(batch.events) > events:
                starts += 1
            elif self.candidates.where(key) is Where.LOOKING:
                asked += 1
            else:
                vain_tries += 1
        self._is_behind = self._is_behind or self.candidates.budget_lines.is_behind
        self._limit_looks(most_starts - starts)
        self.candidates.wake_line()
        self._starts.begin(starts, now_ms)

    def _rank_anew(self) -> bool:
        """Rank some of what came beside what came with it, and some of what has a size now; the rest follows."""
        if not (self._fresh or self.ranking.has_resized):
            return True
        fresh = tuple(islice(self._fresh, MAX_RANKED))
        for key in fresh:
            del self._fresh[key]
        for key in (*fresh, *self.ranking.take_resized(MAX_RANKED)):
            if self.candidates.where(key) in {Where.READY, Where.PARKED}:
                self._offer(key)
        return not (self._fresh or self.ranking.has_resized)

    def _limit_looks(self, most_starts: int) -> None:
        """Look at no more than may start before the look is too old."""
        slots = min(max(0, self._room.partitions), self._room.copies)
        self.candidates.max_looks = min(MAX_LOOKS, MIN_LOOKS + min(most_starts, 2 * slots))

    def _wake(self, now: Moment) -> bool:
        """Offer what may have become possible; return whether that is more than one batch can try."""
        now_ms = now.monotonic_ms
        if self._racks.refresh():
            self.candidates.recheck_parked()
        if self.observed.live != self._live:
            # Which replica a step adds, and whether it can be added at all, depends on who is alive.
            self._live = self.observed.live
            self.candidates.free_all()
            self.candidates.recheck_parked()
        if self._throttles.version != self._throttles_version:
            self._throttles_version = self._throttles.version
            for key in tuple(self._unthrottled):
                if self._throttles.is_ready(self.state.reassignments[key], now):
                    del self._unthrottled[key]
                    self._offer(key)
        for key in self._unsized.overdue(now_ms):
            self._offer(key)
        self.candidates.wake_due(now_ms)
        self.candidates.wake_parked(self._room)
        return self.candidates.wake_rechecked(MAX_VAIN_TRIES)

    def _try(self, candidate: Candidate, batch: BatchBuilder) -> None:
        self._lacked = []
        self._try_start(self.state.reassignments[candidate.key], batch)
        self.candidates.give_up(candidate.key)
        # What lacks more of the very resource that has room lets nobody pass.
        if candidate.woken_by is not None and candidate.woken_by not in self._lacked:
            self.candidates.wake_next(candidate.woken_by, self._room)

    def _try_start(self, reassignment: Reassignment, batch: BatchBuilder) -> None:
        key, now_ms = reassignment.key, batch.now.monotonic_ms
        rank = self.candidates.rank(key)
        if key in self.state.elections or key in self.state.intended_orders:
            # Its end offers the reassignment again.
            self.candidates.put_off(key, rank, now_ms + ELECTION_MS)
            return
        if not self._backoff.may_try(key, now_ms):
            self.candidates.put_off(key, rank, self._backoff.due_ms(key))
            return
        seen = self.observed.fresh(key, now_ms, FRESH_TO_START_MS)
        if seen is None:
            self._look(reassignment, rank)
            return
        # Until there is something to wait for, try again when the observation is too old.
        self.candidates.put_off(key, rank, seen.ended_ms + FRESH_TO_START_MS + 1)
        persisted = self._unconfirmed.has_persisted(key, seen)
        context = context_of(
            self.state, reassignment, self.observed, self._sizes, at_ms=batch.at_ms, persisted=persisted
        )
        if seen.facts is None or seen.facts.topic_id != reassignment.topic_id:
            verdict = gone(reassignment, seen.facts, context)
            self._unconfirmed.note(key, seen.ended_ms, unconfirmed=verdict.unconfirmed)
            batch.emit_all(verdict.events)
            return
        if self._elects(reassignment, seen.facts, context, rank, batch):
            return
        found = next_call(reassignment, seen.facts, context)
        self._unconfirmed.note(key, seen.ended_ms, unconfirmed=isinstance(found, LookAgain))
        if isinstance(found, Wait):
            batch.emit_all(held_up(reassignment, found.block, self.state.name))
        elif isinstance(found, SendStep):
            self._start(reassignment, found.step, rank, batch)

    def _elects(
        self, reassignment: Reassignment, seen: PartitionFacts, context: Context, rank: Rank, batch: BatchBuilder
    ) -> bool:
        """Hold the election that the last step prepared, once: if it fails, the steps go on without it."""
        key, step = reassignment.key, reassignment.step
        election = election_after(reassignment, seen, context)
        if election is None or step is None or self._elected.get(key) == step.number:
            return False
        needs = (Budget.LEADERS,)
        self._lacked = self._room.left(needs, key, self._needs.share(reassignment))
        if self._lacked:
            self.candidates.park(key, rank, needs, self._lacked)
        else:
            self._elected[key] = step.number
            batch.emit(election)
        return True

    def _look(self, reassignment: Reassignment, rank: Rank) -> None:
        """Look before the start, if there is room for what the next step would be."""
        step = self._likely_step(reassignment)
        if not self._park_if_full(reassignment.key, rank, step):
            load: Needs = () if step is None else self._expected(step)
            self.candidates.look(reassignment.key, rank, load, self._needs.share(reassignment))

    def _expected(self, step: Step) -> Needs:
        return (*step.load, *self._racks.uplinks(step), *self._needs.budgets(step))

    def _likely_step(self, reassignment: Reassignment) -> Step | None:
        return likely_step(self.state, self.observed, reassignment, self._leaders.get(reassignment.key))

    def _park_if_full(self, key: TopicPartition, rank: Rank, step: Step | None) -> bool:
        """Park it if what the step needs has no room at live brokers; return whether that is so."""
        if step is None:
            return False
        reassignment = self.state.reassignments[key]
        needs, full = self._needs.of(reassignment, step, step.load, self._room.lacking)
        if full:
            self.candidates.park(key, rank, needs, full, self._needs.share(reassignment))
        return bool(full)

    def _start(self, reassignment: Reassignment, step: Step, rank: Rank, batch: BatchBuilder) -> None:
        self._lacked = self._lacking(reassignment, step)
        if self._lacked:
            self._wait_for_room(reassignment, step, rank, batch)
        else:
            self._begin(reassignment, step, rank, batch)
        now = self.state.reassignments[reassignment.key]
        refusal = self._throttles.refusal_block(now, batch.at_ms)
        batch.emit_all(waiting_for_throttle(now, refusal, self.state.name))

    def _wait_for_room(self, reassignment: Reassignment, step: Step, rank: Rank, batch: BatchBuilder) -> None:
        """Park it, but not for room at a dead leader. A prepared step gives up its own, which others may wait for."""
        if given_up := postponed(reassignment, self.state.name):
            batch.emit_all(given_up)
            self._offer(reassignment.key)
        else:
            self._park_if_full(reassignment.key, rank, step)

    def _lacking(self, reassignment: Reassignment, step: Step) -> list[Resource]:
        """List what is full of what the step needs beside the room that it holds.

        A prepared step has its room already; one that is planned anew has it where it copies to the same brokers.
        """
        if is_prepared(reassignment, step):
            return []
        ports, held = without(step.load, reassignment.load), reassignment.weighing_step
        return self._needs.of(reassignment, step, ports, self._room.left, held)[1]

    def _begin(self, reassignment: Reassignment, step: Step, rank: Rank, batch: BatchBuilder) -> None:
        """Take the slot; the call follows at once, or when the plan's throttle is in force."""
        key, cluster = reassignment.key, self.state.name
        if step.adding:
            # What was prepared has its room: it counts as it was counted then.
            prepared = reassignment.step if is_prepared(reassignment, step) else None
            step = replace(step, copy_bytes=self._sizes.of_next(reassignment))
            if prepared is None:
                self.candidates.pass_by(key, rank, (*step.load, *self._needs.budgets(step)))
                self.candidates.shares.start(reassignment.plan, len(step.adding))
        if step.adding and self._throttles.is_throttled(reassignment):
            if not is_prepared(reassignment, step):
                if not self._room.may_throttle(key.topic, len(step.expected)):
                    self.candidates.park(key, rank, (key.topic,), (key.topic,))
                    return
                batch.emit(prepare_step(cluster, key, step))
            if not self._throttles.is_ready(self.state.reassignments[key], batch.now):
                self._unthrottled[key] = None
                return
        batch.emit(intend_step(cluster, key, step))

    # -- out

    def wanted(self, moves: Mapping[TopicPartition, Move], now: Moment) -> Iterator[TopicPartition]:
        """Look at those whose turn it is, and again at what did not fit."""
        del moves, now
        yield from self.candidates.looks
        yield from (key for key in self._unconfirmed.partitions() if key in self.state.reassignments)

    def due_ms(self, now: Moment) -> int | None:
        """Wake when something that was put off may be tried again; what ends a standstill wakes it by itself."""
        if self.state.begins_nothing or not self._pace.room:
            return None
        paced_ms = self._starts.due_ms(now.monotonic_ms)
        if paced_ms is not None and self.candidates:
            return paced_ms
        if self._is_behind:
            return now.monotonic_ms
        moments = (self.candidates.next_due_ms(), self._unsized.due_ms(now.monotonic_ms))
        return min((due for due in moments if due is not None), default=None)

    def urgency(self) -> Urgency:
        """Watch closely what is about to start."""
        return Urgency.BUSY if self.candidates.looks else Urgency.IDLE
