"""What must be true of healing (KIP-46), by an independent reader of the log and of the brokers."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from events.healing import HealAssignment, HealChunkBegun, HealChunkEnded, HealChunkPlanned, HealEnded, HealPlanned
from events.partitions import TopicPartition
from events.reassignments import ReassignmentQueued
from events.records import AnyEvent
from events.topics import shard_of

if TYPE_CHECKING:
    from tests.simulation.checker import Checker

# How old what an owner goes by may be: a look of 2 s ago, heard late, by metadata that lags.
BELIEVED_MS = 6000


@dataclass(slots=True)
class Healing:
    """What one cluster's log says about heals: the one planned last, its chunks, and the plan under way."""

    heal: str | None = None
    brokers: tuple[int, ...] = ()
    planned: dict[int, tuple[HealAssignment, ...]] = field(default_factory=dict)
    expected: dict[TopicPartition, HealAssignment] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)
    plan: str | None = None


class HealWitness:
    """Follows the events of heals. Every method raises `AssertionError` when a rule is broken."""

    def __init__(self, checker: "Checker") -> None:
        self._checker = checker
        self._clusters: dict[str, Healing] = {}
        self.chunks = 0

    def follow(self, event: AnyEvent) -> None:
        """Follow one event of any kind, before the checker itself does."""
        known = self._clusters.setdefault(event.cluster, Healing())
        match event:
            case HealPlanned():
                assert known.plan is None, f"R46-4: {event} while {known.plan} is under way"
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
            case ReassignmentQueued() if event.key in known.expected:
                self._r46_3_only_dead_replicas_are_replaced(event, known.expected.pop(event.key), known)
            case _:
                return

    def _begun(self, event: HealChunkBegun, known: Healing) -> None:
        assert known.heal == event.heal, f"R46-5: {event}, but its heal has ended"
        assert event.chunk in known.planned, f"R46-7: {event} was never planned"
        assert event.chunk not in known.begun, f"R46-7: {event} begins twice"
        assert event.cluster not in self._checker.frozen, f"R46-4: {event} while frozen"
        assert known.plan is None, f"R46-4: {event} while {known.plan} is under way"
        known.begun.add(event.chunk)
        known.plan = event.plan
        self.chunks += 1
        skipped = {(one.topic, one.partition) for one in event.skipped}
        keys = {TopicPartition(one.topic, one.partition): one for one in known.planned[event.chunk]}
        known.expected = {key: one for key, one in keys.items() if key not in skipped}
        cluster = self._checker.world.clusters[event.cluster]
        for broker in known.brokers:
            is_alive = cluster.model.brokers[broker].alive and not cluster.model.brokers[broker].fenced
            since_ms = cluster.now_ms - cluster.started_ms.get(broker, 0)
            assert not is_alive or since_ms <= BELIEVED_MS, f"R46-5: {event}: broker {broker} lives for {since_ms} ms"

    def _r46_4_nothing_of_it_is_left(self, event: HealChunkEnded, known: Healing) -> None:
        lives = ((name, life) for (name, _), life in self._checker.lives.items())
        left = [life.key for name, life in lives if (name, life.plan) == (event.cluster, known.plan)]
        assert not left, f"R46-4: {event}, but {left} are under way"

    def _r46_3_only_dead_replicas_are_replaced(
        self, event: ReassignmentQueued, planned: HealAssignment, known: Healing
    ) -> None:
        """Each list keeps its length and the places of what stays; only replicas on the heal's brokers go."""
        assert (event.plan, event.target) == (known.plan, planned.target), f"R46-3: {event}, but {planned} was planned"
        assert len(event.target) == len(event.original), f"R46-3: {event} has another number of replicas"
        for before, after in zip(event.original, event.target, strict=True):
            assert before == after or before in known.brokers, f"R46-3: {event} replaces {before}"
            assert after not in known.brokers, f"R46-3: {event} keeps {after}"

    def check_the_end(self) -> None:
        """No chunk is under way or waits without a reason that can be named."""
        for name in self._clusters:
            fold = self._checker.folds[shard_of(name, self._checker.world.settings.shards)]
            state = fold.state.clusters.get(name)
            if state is None or (state.heal is None and state.heal_running is None):
                continue
            waits = any(entry.block is not None for entry in state.reassignments.values())
            assert state.healing_brakes or waits, f"L1: {state.heal} {state.heal_running} waits for no reason"
