"""Healing: notes absent brokers, waits, plans, and begins one chunk after another (KIP-46)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from drover.decide.cancellation import Asking, cancel
from drover.decide.verdict import DROVER
from drover.events.healing import (
    BrokerOutageEnded,
    HealChunkEnded,
    HealChunkTakenBack,
    HealEnd,
    HealEnded,
    HealingLimits,
    HealPartitionsLeft,
    OutageEnd,
)
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CancelMode
from drover.events.refusals import Refusal
from drover.facts import Move, Observation, Survey
from drover.inventory import Inventory
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Attention, Reconciler, Urgency
from drover.reconcile.gates import calls_nothing, changes_nothing
from drover.reconcile.healing import timers
from drover.reconcile.healing.brokers_to_heal import BrokersToHeal, gather_brokers_to_heal
from drover.reconcile.healing.chunks import Seen, begin_chunk, keys_of, next_chunk
from drover.reconcile.healing.heal_plan import HealPlan, heal_events, left_event
from drover.reconcile.healing.outages import OutageWatch
from drover.reconcile.healing.reports import ReportWatch
from drover.reconcile.messages import (
    Effect,
    HealPlanMade,
    Identified,
    Input,
    InventoryTaken,
    PlanHeal,
    TakeInventory,
    Timestamp,
)
from drover.reconcile.observations import FRESH_MS, FRESH_TO_START_MS, ObservationCache
from drover.state.cluster import ClusterState
from drover.state.healing import Heal, LeftBehind
from drover.state.plans import PlanStatus

# The time between two surveys: while a broker is away, and while none is.
SURVEY_AWAY_MS, SURVEY_IDLE_MS = 60_000, 600_000
# A plan needs an inventory no older than this; one that failed, or that shows a due broker alive, is taken again.
PLAN_ON_INVENTORY_MS, TAKE_AGAIN_MS = 10_000, 1000
# The next plan waits so long after one, whether that healed anything or not.
REPLAN_MS = 60_000


class HealingReconciler(Reconciler):
    """Heals the brokers that stay away, if the settings ask for it; ends outdated reports in any case."""

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp) -> None:
        super().__init__(state, observed, now)
        self._watch = OutageWatch()
        # The log alone tells since when the brokers are away whose absence a predecessor noted.
        self._watched = timers.Watched()
        self._watched.begin(state.absent_brokers)
        self._reports = ReportWatch()
        self._live: frozenset[int] = frozenset()
        # Monotonic; 0 asks for a survey at once.
        self._next_survey_ms = 0
        self._inventory: Inventory | None = None
        self._inventory_ms = 0
        self._wants_inventory = self._is_taking_inventory = False
        self._plan_after_ms = 0
        # The plan to ask for with the next effects; whether one is being made; one that was made, until the next turn.
        self._wanted_plan: PlanHeal | None = None
        self._is_making_plan = False
        self._made: HealPlanMade | None = None
        self._is_planning = False
        self._needed: tuple[TopicPartition, ...] = ()

    @property
    def _limits(self) -> HealingLimits | None:
        return self.state.limits.healing

    # -- in

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Record brokers that are away or back; keep the inventory and the plan that were asked for."""
        if isinstance(entry, InventoryTaken):
            self._is_taking_inventory = False
            self._inventory, self._inventory_ms = entry.inventory, entry.started_ms
            if entry.inventory is None:
                self._take_again_later(batch)
            return
        if isinstance(entry, HealPlanMade):
            self._is_making_plan, self._made = False, entry
            return
        if not isinstance(entry, Observation | Identified | Survey):
            return
        live = frozenset(entry.live_brokers)
        started_ms = entry.ended_ms if isinstance(entry, Identified) else entry.started_ms
        brokers = self.observed.brokers
        if live:
            batch.emit_all(self._reports.events(self.state, brokers, started_ms, entry.ended_ms, batch.at_ms))
        if self._limits is None:
            return
        if isinstance(entry, Survey):
            self._watch.take(entry)
            self._next_survey_ms = entry.ended_ms + (SURVEY_AWAY_MS if self.state.absent_brokers else SURVEY_IDLE_MS)
        if not live or not self._watch.has_surveyed:
            return
        if live != self._live:
            self._live, self._next_survey_ms = live, 0
        batch.emit_all(self._watch.events(self.state, brokers, started_ms, entry.ended_ms))

    # -- reconciling

    def reconcile(self, batch: BatchBuilder) -> None:
        """Raise alarms, set brakes, follow the running chunk, and begin the next or plan, unless frozen (X12)."""
        self._is_planning, self._wants_inventory, self._needed = False, False, ()
        # A plan that is not needed in this turn is out of date in the next.
        made, self._made, self._wanted_plan = self._made, None, None
        state, limits = self.state, self._limits
        if limits is None:
            self._end_watching(batch)
            return
        if calls_nothing(state):
            return
        self._watched.follow(state.absent_brokers, batch.now.monotonic_ms)
        self._follow_chunk(limits, batch)
        batch.emit_all(timers.alarms(state, limits, self._watched, batch.now))
        if self._watch.has_surveyed:
            chunk = next_chunk(state)
            next_bytes = 0 if chunk is None else sum(assignment.copied_bytes for assignment in chunk.assignments)
            brokers = self._watch.brokers(self.observed.live)
            batch.emit_all(timers.brakes(state, limits, brokers, next_bytes, batch.at_ms))
        if state.heal_left is not None and not state.absent_brokers:
            batch.emit(HealPartitionsLeft(cluster=state.name, count=0))
        due = timers.due_brokers(state, limits, self._watched, batch.now)
        if state.heal is not None:
            self._check_heal(state.heal, due, batch)
        if changes_nothing(state) or timers.is_braked(state):
            return
        if state.heal_running is not None:
            # Fresh observations when this chunk ends let the next one begin in the same record.
            self._needed = _keys_of_next(state)
        elif state.heal is not None:
            self._begin_next(state.heal, limits, batch)
        elif due:
            self._plan(due, limits, made, batch)

    def _end_watching(self, batch: BatchBuilder) -> None:
        state = self.state
        if state.heal is not None:
            self._end(state.heal, HealEnd.STOPPED, batch)
        for broker in sorted(state.absent_brokers):
            batch.emit(BrokerOutageEnded(cluster=state.name, broker=broker, why=OutageEnd.NOT_WATCHED))

    def _end(self, heal: Heal, why: HealEnd, batch: BatchBuilder, *, leaves_rest: bool = False) -> None:
        dropped = len(self.state.heal_chunks)
        batch.emit(
            HealEnded(cluster=self.state.name, heal=heal.name, why=why, dropped=dropped, leaves_rest=leaves_rest)
        )
        # Surveys and inventories from before the end are outdated.
        self._next_survey_ms, self._inventory = 0, None
        self._plan_after_ms = 0 if why in {HealEnd.REPLANNED, HealEnd.RETURNED} else batch.now.monotonic_ms + REPLAN_MS

    def _follow_chunk(self, limits: HealingLimits, batch: BatchBuilder) -> None:
        """Finish the chunk when its plan is done; withdraw moves whose destination is due itself."""
        state = self.state
        running = state.heal_running
        if running is None:
            return
        plan = state.plans.get(running.plan)
        if plan is None or plan.is_idle:
            cancelled = 0 if plan is None else plan.rolled_back + plan.stopped + plan.withdrawn - _superseded(state)
            batch.emit(
                HealChunkEnded(
                    cluster=state.name,
                    heal=running.heal,
                    chunk=running.number,
                    healed=0 if plan is None else plan.completed,
                    cancelled=cancelled,
                    failed=0 if plan is None else plan.failed,
                )
            )
            return
        returned = [broker for broker in running.brokers if broker not in state.absent_brokers]
        if returned and limits.rolls_back_on_return and not running.is_taken_back:
            names = ", ".join(map(str, returned))
            self._take_back(running.partitions, f"broker {names} is back", batch)
            return
        due = frozenset(timers.due_brokers(state, limits, self._watched, batch.now))
        lost = tuple(key for key in running.partitions if self._is_lost(key, running.plan, due))
        if lost:
            self._take_back(lost, "a broker of its new list is away for too long itself", batch)

    def _is_lost(self, key: TopicPartition, plan: str, due: frozenset[int]) -> bool:
        """Whether a reassignment cannot end because a broker in its target is due as well."""
        active = self.state.reassignments.get(key)
        if active is None or active.plan != plan or active.is_cancelled:
            return False
        away = due & set(active.target)
        return bool(away - set(active.original)) or (bool(away) and active.block is not None)

    def _take_back(self, keys: tuple[TopicPartition, ...], why: str, batch: BatchBuilder) -> None:
        state = self.state
        running = state.heal_running
        assert running is not None, "there is a chunk to take back"
        if not running.is_taken_back:
            batch.emit(HealChunkTakenBack(cluster=state.name, heal=running.heal, chunk=running.number, why=why))
        for key in keys:
            active = state.reassignments.get(key)
            # A deferred rollback is tried again by itself.
            if active is not None and active.plan == running.plan and not active.is_cancelled and active.asked is None:
                cancellation = cancel(active, CancelMode.ROLLBACK, Asking(DROVER, why), state.name)
                if not isinstance(cancellation, Refusal):
                    batch.emit_all(cancellation)

    def _check_heal(self, heal: Heal, due: tuple[int, ...], batch: BatchBuilder) -> None:
        """End a heal that is done, or that must not go on."""
        state = self.state
        running = state.heal_running
        plan = None if running is None else state.plans.get(running.plan)
        if any(broker not in state.absent_brokers for broker in heal.brokers):
            self._end(heal, HealEnd.RETURNED, batch)
        elif plan is not None and plan.status is PlanStatus.CANCELLED:
            self._end(heal, HealEnd.CANCELLED, batch, leaves_rest=True)
        elif heal.known_chunks < heal.chunks:
            self._end(heal, HealEnd.INCOMPLETE, batch)
        elif not set(heal.brokers) <= set(due):
            self._end(heal, HealEnd.STOPPED, batch)
        elif set(due) - set(heal.brokers):
            self._end(heal, HealEnd.REPLANNED, batch)
        elif running is None and not state.heal_chunks:
            self._end(heal, HealEnd.DONE, batch, leaves_rest=heal.cancelled > 0)

    # -- the next chunk, and the plan

    def _is_sure(self, brokers: tuple[int, ...], now_ms: int) -> bool:
        """Whether the cluster was observed just now, and these brokers were dead."""
        seen_ms = self.observed.live_seen_ms
        is_fresh = seen_ms is not None and now_ms - seen_ms <= FRESH_MS
        is_dead = self.observed.brokers.dead(brokers) == brokers
        return is_fresh and bool(self.observed.live) and is_dead

    def _begin_next(self, heal: Heal, limits: HealingLimits, batch: BatchBuilder) -> None:
        state, now_ms = self.state, batch.now.monotonic_ms
        chunk = next_chunk(state)
        if chunk is None:
            return
        observations = {key: self.observed.fresh(key, now_ms, FRESH_TO_START_MS) for key in keys_of(chunk)}
        is_seen = all(cached is not None or key in state.reassignments for key, cached in observations.items())
        if not is_seen or not self._is_sure(heal.brokers, now_ms):
            # All in one observation: otherwise the first are no longer fresh when the last are observed.
            self._needed = keys_of(chunk)
            return
        partitions = {key: None if cached is None else cached.facts for key, cached in observations.items()}
        moving = self.observed.moves.keys() | state.unmanaged.keys()
        seen = Seen(partitions, moving, self.observed.brokers, self.observed.directories)
        batch.emit_all(begin_chunk(state, heal, chunk, seen, limits.throttle_bytes_per_second))

    def _plan(
        self, due: tuple[int, ...], limits: HealingLimits, made: HealPlanMade | None, batch: BatchBuilder
    ) -> None:
        """Ask for a plan for all due brokers once there is a fresh inventory, and write it down when it is made."""
        state, now_ms = self.state, batch.now.monotonic_ms
        if now_ms < self._plan_after_ms:
            return
        to_heal = gather_brokers_to_heal(state, due, state.absent_brokers, self.observed.moves)
        if made is not None and _still_fits(made.to_heal, to_heal):
            self._write_down(made.plan, due, limits, batch)
            return
        self._is_planning = True
        if self._is_making_plan:
            return
        inventory = self._inventory
        if inventory is None or now_ms - self._inventory_ms > PLAN_ON_INVENTORY_MS:
            self._wants_inventory = True
            return
        self._inventory = None
        lives = inventory.standings.dead(due) != due
        if lives or inventory.kafka_cluster_id != state.kafka_cluster_id:
            self._take_again_later(batch)
            return
        self._wanted_plan = PlanHeal(state.name, inventory, to_heal, limits.disk_limit_percent)

    def _write_down(self, plan: HealPlan, due: tuple[int, ...], limits: HealingLimits, batch: BatchBuilder) -> None:
        state = self.state
        left = left_event(plan, state.name)
        if (LeftBehind(left.count, left.partitions) if left.count else None) != state.heal_left:
            batch.emit(left)
        if plan.assignments:
            batch.emit_all(heal_events(plan, state.name, state.heals_planned + 1, due, limits.chunk_partitions))
        self._plan_after_ms = batch.now.monotonic_ms + REPLAN_MS

    def _take_again_later(self, batch: BatchBuilder) -> None:
        self._plan_after_ms = max(self._plan_after_ms, batch.now.monotonic_ms + TAKE_AGAIN_MS)

    # -- out

    def effects(self, now: Timestamp, start_by_ms: int, lapsed: str | None) -> Iterator[Effect]:
        """Ask for an inventory and then for the plan; both only read, which needs no intent."""
        del now, start_by_ms
        if lapsed is not None:
            return
        if self._wants_inventory and not self._is_taking_inventory:
            self._is_taking_inventory = True
            yield TakeInventory(self.state.name)
        if self._wanted_plan is not None:
            self._is_making_plan = True
            yield self._wanted_plan
            self._wanted_plan = None

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Watch the next chunk closely, and the live brokers while one is away or a report is doubtful.

        A survey is due once in a while, and when brokers have come or gone or an absence is to be confirmed.
        """
        del moves
        now_ms, seen_ms = now.monotonic_ms, self.observed.live_seen_ms
        has_limits = self._limits is not None
        is_doubtful = self._is_watching_absences or self._has_doubtful_report
        is_near = self._is_planning or (bool(self._needed) and self.state.heal_running is None)
        waits = Urgency.WAITING if is_doubtful else Urgency.IDLE
        return Attention(
            partitions=self._needed,
            survey=has_limits and (now_ms >= self._next_survey_ms or self._watch.wants_survey(now_ms)),
            brokers=is_doubtful and (seen_ms is None or now_ms - seen_ms > FRESH_TO_START_MS),
            due_ms=self._due_ms(now),
            urgency=Urgency.BUSY if has_limits and is_near else waits,
        )

    def _due_ms(self, now: Timestamp) -> int | None:
        """Wake for the next alarm, for the next broker to heal, and when a plan may be made again."""
        limits = self._limits
        if limits is None:
            return None
        times = [self._plan_after_ms] if self.state.absent_brokers and self._plan_after_ms > now.monotonic_ms else []
        wait_ms = timers.wait_ms(self.state, limits, self._watched, now)
        if wait_ms is not None:
            times.append(now.monotonic_ms + wait_ms)
        return min(times, default=None)

    @property
    def _is_watching_absences(self) -> bool:
        return self._limits is not None and (bool(self.state.absent_brokers) or self._watch.has_unconfirmed_absence)

    @property
    def _has_doubtful_report(self) -> bool:
        """Whether a broker that is reported as failed was alive in the last observation."""
        return any(broker in self.observed.live for broker in self.state.failed_brokers)


def _keys_of_next(state: ClusterState) -> tuple[TopicPartition, ...]:
    chunk = next_chunk(state)
    return () if chunk is None else keys_of(chunk)


def _still_fits(before: BrokersToHeal, now: BrokersToHeal) -> bool:
    """Whether a plan that was made for `before` still holds for `now`.

    Partitions that have begun to move since are skipped when their chunk begins, and sparing a broker is only a
    preference. Both, and the destinations of moves, change all the time while plans run.
    """
    return replace(before, moving=now.moving, destinations=now.destinations, spared=now.spared) == now


def _superseded(state: ClusterState) -> int:
    """Count the chunk's moves that were replaced by a target without the brokers of the heal: these are not cancelled.

    A target that names one of them keeps the partition there, as a cancel does.
    """
    running = state.heal_running
    assert running is not None, "there is a chunk to follow"
    return sum(set(running.brokers).isdisjoint(asked) for asked in state.heal_superseded.values())
