"""Healing: notices absent brokers, waits, plans, and begins one chunk after another (KIP-46)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from drover.decide.cancellation import Asking, cancel
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
from drover.reconcile.healing.chunks import BY, Seen, begin_chunk, keys_of, next_chunk
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

# How often every partition is looked at: while a broker is away, and while none is.
SURVEY_AWAY_MS, SURVEY_IDLE_MS = 60_000, 600_000
# A plan is made of an inventory that began so lately; one that failed, or shows a broker that is back, is taken again.
PLAN_ON_INVENTORY_MS, TAKE_AGAIN_MS = 10_000, 1000
# After a plan, whether it healed anything or not, the next one waits so long.
REPLAN_MS = 60_000


class HealingReconciler(Reconciler):
    """Heals the brokers that stay away, if the settings ask for that; reports that are over end in any case."""

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp) -> None:
        super().__init__(state, observed, now)
        self._watch = OutageWatch()
        # Since when brokers are away that a predecessor has missed, only the log knows.
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
        # What is asked for with the next effects; whether it is being made; what was made, until the next turn.
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
        """Note who is away and who is back; keep the inventory and the plan."""
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

    # -- what follows

    def reconcile(self, batch: BatchBuilder) -> None:
        """Alarm, brake, follow the chunk under way, begin the next, or plan; while frozen nothing begins (X12)."""
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
            next_bytes = 0 if chunk is None else sum(one.copied_bytes for one in chunk.assignments)
            known = self._watch.brokers(self.observed.live)
            batch.emit_all(timers.brakes(state, limits, known, next_bytes, batch.at_ms))
        if state.heal_left is not None and not state.absent_brokers:
            batch.emit(HealPartitionsLeft(cluster=state.name, count=0))
        due = timers.due_brokers(state, limits, self._watched, batch.now)
        if state.heal is not None:
            self._check_heal(state.heal, due, batch)
        if changes_nothing(state) or timers.is_braked(state):
            return
        if state.heal_running is not None:
            # What is known when this chunk ends lets the next one begin in the same record.
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
        # What a survey showed before is not so any more.
        self._next_survey_ms, self._inventory = 0, None
        self._plan_after_ms = 0 if why in {HealEnd.REPLANNED, HealEnd.RETURNED} else batch.now.monotonic_ms + REPLAN_MS

    def _follow_chunk(self, limits: HealingLimits, batch: BatchBuilder) -> None:
        """End the chunk when all of its plan has ended; take back what waits for a broker that is due itself."""
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
        """Whether a reassignment cannot end, because a broker in its target is to be healed as well."""
        known = self.state.reassignments.get(key)
        if known is None or known.plan != plan or known.is_cancelled:
            return False
        away = due & set(known.target)
        return bool(away - set(known.original)) or (bool(away) and known.block is not None)

    def _take_back(self, keys: tuple[TopicPartition, ...], why: str, batch: BatchBuilder) -> None:
        state = self.state
        running = state.heal_running
        assert running is not None, "there is a chunk to take back"
        if not running.is_taken_back:
            batch.emit(HealChunkTakenBack(cluster=state.name, heal=running.heal, chunk=running.number, why=why))
        for key in keys:
            known = state.reassignments.get(key)
            # One that is deferred was asked for, and is tried again by itself.
            if known is not None and known.plan == running.plan and not known.is_cancelled and known.asked is None:
                found = cancel(known, CancelMode.ROLLBACK, Asking(BY, why), state.name)
                if not isinstance(found, Refusal):
                    batch.emit_all(found)

    def _check_heal(self, heal: Heal, due: tuple[int, ...], batch: BatchBuilder) -> None:
        """End a heal that is over, or should go no further."""
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
        """Whether the cluster was seen just now, without these brokers."""
        seen_ms = self.observed.live_seen_ms
        is_fresh = seen_ms is not None and now_ms - seen_ms <= FRESH_MS
        is_dead = self.observed.brokers.dead(brokers) == brokers
        return is_fresh and bool(self.observed.live) and is_dead

    def _begin_next(self, heal: Heal, limits: HealingLimits, batch: BatchBuilder) -> None:
        state, now_ms = self.state, batch.now.monotonic_ms
        chunk = next_chunk(state)
        if chunk is None:
            return
        looks = {key: self.observed.fresh(key, now_ms, FRESH_TO_START_MS) for key in keys_of(chunk)}
        is_seen = all(seen is not None or key in state.reassignments for key, seen in looks.items())
        if not is_seen or not self._is_sure(heal.brokers, now_ms):
            # All at once: what was seen a look before is not fresh any more when the rest is.
            self._needed = keys_of(chunk)
            return
        found = {key: None if seen is None else seen.facts for key, seen in looks.items()}
        moving = self.observed.moves.keys() | state.unmanaged.keys()
        what = Seen(found, moving, self.observed.brokers, self.observed.directories)
        batch.emit_all(begin_chunk(state, heal, chunk, what, limits.throttle_bytes_per_second))

    def _plan(
        self, due: tuple[int, ...], limits: HealingLimits, made: HealPlanMade | None, batch: BatchBuilder
    ) -> None:
        """Have a plan made for all brokers that are due, once everything is known that it is made of; write it down."""
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
        """Watch closely what is about to begin, and everything while a broker is away or a report is doubtful.

        Every partition is looked at once in a while, and when something has changed or is to be planned.
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
        """Whether a broker that is reported as failed was alive at the last look."""
        return any(broker in self.observed.live for broker in self.state.failed_brokers)


def _keys_of_next(state: ClusterState) -> tuple[TopicPartition, ...]:
    chunk = next_chunk(state)
    return () if chunk is None else keys_of(chunk)


def _still_fits(before: BrokersToHeal, now: BrokersToHeal) -> bool:
    """Whether a plan for brokers as they were before may be carried out now.

    What has begun to move since is left out when its chunk begins, and which brokers are spared is only a preference.
    Both, and where moves lead, change all the time while plans run.
    """
    return replace(before, moving=now.moving, destinations=now.destinations, spared=now.spared) == now


def _superseded(state: ClusterState) -> int:
    """Count what gave way to a target without the brokers of the heal: that was moved, not cancelled.

    A target that names one of them wants the partition to stay there, as a cancel does.
    """
    running = state.heal_running
    assert running is not None, "there is a chunk to follow"
    return sum(set(running.brokers).isdisjoint(asked) for asked in state.heal_superseded.values())
