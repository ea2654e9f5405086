"""What must be true of healing (KIP-46), by an independent reader of the log and of the brokers."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from drover.events.healing import (
    BrakeReason,
    BrokerOutageEnded,
    BrokerOutageNoted,
    HealAssignment,
    HealChoice,
    HealChosen,
    HealChunkBegun,
    HealChunkEnded,
    HealChunkPlanned,
    HealEnded,
    HealingBraked,
    HealingReleased,
    HealPlanned,
)
from drover.events.partitions import TopicPartition
from drover.events.reassignments import ReassignmentAdopted, ReassignmentCompleted, ReassignmentCreated
from drover.events.records import AnyEvent
from drover.events.topics import shard_of

if TYPE_CHECKING:
    from tests.simulation.checker import Checker

# How old what an owner goes by may be: a look of 2 s ago, heard late, by metadata that lags.
BELIEVED_MS = 6000


@dataclass(slots=True)
class Healing:
    """What one cluster's log says about heals: the one planned last, its chunks, and the plan under way.

    `away_ms` is since when brokers are away, `wanted` who is healed because somebody asked for it. `replacing` are the
    dead replicas that are being replaced, `replaced` those that were, and when.
    """

    heal: str | None = None
    brokers: tuple[int, ...] = ()
    planned: dict[int, tuple[HealAssignment, ...]] = field(default_factory=dict)
    expected: dict[TopicPartition, HealAssignment] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)
    plan: str | None = None
    away_ms: dict[int, int] = field(default_factory=dict)
    wanted: set[int] = field(default_factory=set)
    brakes: set[BrakeReason] = field(default_factory=set)
    replacing: dict[TopicPartition, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    replaced: dict[TopicPartition, tuple[str, tuple[int, ...], int]] = field(default_factory=dict)


class HealWitness:
    """Follows the events of heals. Every method raises `AssertionError` when a rule is broken."""

    def __init__(self, checker: "Checker") -> None:
        self._checker = checker
        self._clusters: dict[str, Healing] = {}
        self.chunks = 0
        # When the record that is followed was written, which may be long before it was appended.
        self.written_ms = 0

    def follow(self, event: AnyEvent) -> None:
        """Follow one event of any kind, before the checker itself does."""
        known = self._clusters.setdefault(event.cluster, Healing())
        self._follow_absences(event, known)
        match event:
            case HealPlanned():
                assert known.plan is None, f"R46-4: {event} while {known.plan} is under way"
                self._r46_2_their_time_has_come(event, known)
                known.heal, known.brokers = event.heal, event.brokers
                known.planned, known.begun = {}, set()
            case HealChunkPlanned():
                known.planned[event.chunk] = event.assignments
            case HealChunkBegun():
                self._begun(event, known)
            case HealChunkEnded():
                self._r46_4_nothing_of_it_is_left(event, known)
                known.plan = None
            case HealEnded():
                known.heal = None
            case ReassignmentCreated() if event.key in known.expected:
                self._r46_7_each_dead_replica_is_replaced_once(event, known)
                self._r46_3_only_dead_replicas_are_replaced(event, known.expected.pop(event.key), known)
            case ReassignmentCreated() | ReassignmentAdopted():
                # Whoever else moves it may bring the broker back into its list.
                known.replacing.pop(event.key, None)
                known.replaced.pop(event.key, None)
            case ReassignmentCompleted() if event.key in known.replacing:
                known.replaced[event.key] = (*known.replacing.pop(event.key), self._checker.world.now_ms)
            case _:
                return

    def _follow_absences(self, event: AnyEvent, known: Healing) -> None:
        match event:
            case BrokerOutageNoted():
                known.away_ms.setdefault(event.broker, self.written_ms)
            case BrokerOutageEnded():
                known.away_ms.pop(event.broker, None)
                known.wanted.discard(event.broker)
            case HealChosen():
                known.wanted.discard(event.broker)
                known.wanted |= {event.broker} if event.choice is HealChoice.START else set()
            case HealingBraked(broker=None):
                known.brakes.add(event.why)
            case HealingReleased(broker=None):
                known.brakes.discard(event.why)
            case _:
                return

    def _r46_2_their_time_has_come(self, event: HealPlanned, known: Healing) -> None:
        healing = self._checker.world.settings.healing
        assert healing is not None, f"R46-8: {event}, but healing is off"
        for broker in event.brokers:
            assert broker in known.away_ms, f"R46-2: {event}, but broker {broker} is not away"
            is_due = 0 <= healing.failure_interval_ms <= self.written_ms - known.away_ms[broker]
            assert is_due or broker in known.wanted, f"R46-2: {event}: broker {broker} is away since a moment only"

    def _begun(self, event: HealChunkBegun, known: Healing) -> None:
        assert known.heal == event.heal, f"R46-5: {event}, but its heal has ended"
        assert event.chunk in known.planned, f"R46-7: {event} was never planned"
        assert event.chunk not in known.begun, f"R46-7: {event} begins twice"
        assert event.cluster not in self._checker.frozen, f"R46-4: {event} while frozen"
        assert known.plan is None, f"R46-4: {event} while {known.plan} is under way"
        assert not known.brakes, f"R46-4: {event} in spite of {known.brakes}"
        known.begun.add(event.chunk)
        known.plan = event.plan
        self.chunks += 1
        skipped = {(one.topic, one.partition) for one in event.skipped}
        keys = {TopicPartition(one.topic, one.partition): one for one in known.planned[event.chunk]}
        known.expected = {key: one for key, one in keys.items() if key not in skipped}
        cluster = self._checker.world.clusters[event.cluster]
        for broker in known.brokers:
            is_alive = cluster.model.brokers[broker].alive and not cluster.model.brokers[broker].fenced
            since_ms = self.written_ms - cluster.started_ms.get(broker, 0)
            assert not is_alive or since_ms <= BELIEVED_MS, f"R46-5: {event}: broker {broker} lives for {since_ms} ms"

    def _r46_4_nothing_of_it_is_left(self, event: HealChunkEnded, known: Healing) -> None:
        lives = ((name, life) for (name, _), life in self._checker.lives.items())
        left = [life.key for name, life in lives if (name, life.plan) == (event.cluster, known.plan)]
        assert not left, f"R46-4: {event}, but {left} are under way"

    def _r46_3_only_dead_replicas_are_replaced(
        self, event: ReassignmentCreated, planned: HealAssignment, known: Healing
    ) -> None:
        """Each list keeps its length and the places of what stays; only replicas on the heal's brokers go."""
        # Where brokers that should not lead come last, the order is the canonical one (X9).
        as_planned = event.target if event.current is None else tuple(sorted(event.target))
        wanted = planned.target if event.current is None else tuple(sorted(planned.target))
        assert (event.plan, as_planned) == (known.plan, wanted), f"R46-3: {event}, but {planned} was planned"
        assert len(event.target) == len(event.original), f"R46-3: {event} has another number of replicas"
        for before, after in zip(event.original, event.target, strict=True):
            assert before == after or before in known.brokers, f"R46-3: {event} replaces {before}"
            assert after not in known.brokers, f"R46-3: {event} keeps {after}"

    def _r46_7_each_dead_replica_is_replaced_once(self, event: ReassignmentCreated, known: Healing) -> None:
        dead = tuple(broker for broker in event.original if broker in known.brokers)
        assert dead, f"R46-7: {event} replaces nobody of {known.brokers}"
        topic_id, brokers, at_ms = known.replaced.get(event.key, ("", (), 0))
        touched_ms = self._checker.world.clusters[event.cluster].touched_ms.get(event.key, -1)
        again = set(dead) & set(brokers) if topic_id == event.topic_id and touched_ms < at_ms else set()
        assert not again, f"R46-7: {event} replaces {again} a second time"
        known.replacing[event.key] = (event.topic_id, dead)
        # A broker that was replaced may live again and take a place now, which it keeps where a rollback leaves it.
        gone = tuple(broker for broker in brokers if broker not in event.target)
        known.replaced[event.key] = (topic_id, gone, at_ms)

    def check_the_end(self) -> None:
        """No chunk is under way or waits without a reason that can be named."""
        for name in self._clusters:
            fold = self._checker.folds[shard_of(name, self._checker.world.settings.shards)]
            state = fold.state.clusters.get(name)
            if state is None or (state.heal is None and state.heal_running is None):
                continue
            is_short = self._checker.world.clusters[name].is_short_of_replicas
            waits = any(
                entry.block is not None or (is_short and state.is_suspended(key))
                for key, entry in state.reassignments.items()
            )
            assert state.healing_brakes or waits, f"L1: {state.heal} {state.heal_running} waits for no reason"
