"""Surveys every partition now and then while something moves, and restricts starts while replicas lag."""

from collections.abc import Collection, Mapping

from drover.events.partitions import TopicPartition
from drover.facts import Move, Observation, PartitionFacts, Survey
from drover.reconcile.adaptation.judgement import (
    LAGGING_FOR_MS,
    Health,
    Replica,
    causes,
    judge,
    switch_off,
    unexplained,
)
from drover.reconcile.batch import BatchBuilder
from drover.reconcile.contract import Attention, Reconciler
from drover.reconcile.gates import calls_nothing
from drover.reconcile.messages import Input, Timestamp
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState

# The least time between two surveys, and the least as a multiple of the duration of a survey. Of the last two the
# shorter duration counts: a survey that waited for a starting broker says little about the cost of the next one.
SURVEY_EVERY_MS, SURVEY_SHARE = 10_000, 20
# For so many topics min.insync.replicas is read after a survey.
MOST_ASKED = 50


class AdaptationReconciler(Reconciler):
    """Lowers the slots of brokers where replicas lag; lets no copy begin while a partition is below min ISR.

    Its observations end with the ownership. A new owner learns anew which replicas lag, and counts the time without a
    cause from its own first survey.
    """

    def __init__(self, state: ClusterState, observed: ObservationCache, now: Timestamp) -> None:
        super().__init__(state, observed, now)
        self._under_replicated: dict[TopicPartition, PartitionFacts] = {}
        # Since when (monotonic ms) each replica has been out of sync without an explanation.
        self._lagging_since_ms: dict[Replica, int] = {}
        self._lagging: frozenset[Replica] = frozenset()
        # When (ms of log time) each lowered broker last had a cause.
        self._last_cause_ms: dict[int, int] = {}
        # One partition of each topic whose min.insync.replicas is to be read; an observation of it reads that as well.
        self._asked: dict[TopicPartition, None] = {}
        # When (monotonic ms) each topic was last chosen for that.
        self._asked_ms: dict[str, int] = {}
        self._next_survey_ms = 0
        # Before its first survey an owner does not know which replicas lag, so that single observations are ignored.
        self._has_surveyed = False
        # How long the last survey took (ms); 0 before the first.
        self._took_ms = 0
        self._is_new = False

    @property
    def _is_active(self) -> bool:
        state = self.state
        if not state.limits.adapts_to_health:
            return False
        return bool(state.reassignments or state.allowances) or state.suspension is not None

    def observe(self, entry: Input, batch: BatchBuilder) -> None:
        """Take in all surveys, and observations of partitions that were asked for or are below min ISR."""
        del batch
        match entry:
            case Survey() if self._is_active:
                self._survey(entry)
            case Observation() if self._has_surveyed:
                for key in entry.partitions.keys() & (self._asked.keys() | self.state.below_min_isr):
                    self._see(key, entry.partitions[key])
            case _:
                return

    def _survey(self, survey: Survey) -> None:
        self._has_surveyed = True
        before_ms, self._took_ms = self._took_ms, survey.ended_ms - survey.started_ms
        self._next_survey_ms = survey.ended_ms + max(SURVEY_EVERY_MS, min(before_ms, self._took_ms) * SURVEY_SHARE)
        self._under_replicated = {
            key: facts for key, facts in survey.partitions.items() if len(facts.isr) < len(facts.replicas)
        }
        before = self._lagging_since_ms
        self._lagging_since_ms = {
            replica: before.get(replica, survey.ended_ms)
            for replica in unexplained(
                self._under_replicated, self._moving().keys(), self.observed.live | self.observed.unreachable
            )
        }
        self._lagging = frozenset(
            replica
            for replica, since_ms in self._lagging_since_ms.items()
            if survey.ended_ms - since_ms >= LAGGING_FOR_MS
        )
        self._asked = dict.fromkeys(self._to_ask())
        self._asked_ms.update((key.topic, survey.ended_ms) for key in self._asked)
        self._is_new = True

    def _to_ask(self) -> list[TopicPartition]:
        """Choose one partition per topic, the topics that were never asked for first, then those asked for longest ago.

        Of these, the topics with the fewest replicas of a partition in sync: they are the likeliest to lack some.
        """
        weakest: dict[str, tuple[int, TopicPartition]] = {}
        for key, facts in self._under_replicated.items():
            ranking = (len(facts.isr), key)
            weakest[key.topic] = min(ranking, weakest.get(key.topic, ranking))
        ranked = sorted(weakest.values(), key=lambda each: (self._asked_ms.get(each[1].topic, -1), each))
        return [key for _, key in ranked[:MOST_ASKED]]

    def _forget(self) -> None:
        self._asked_ms = {}
        self._under_replicated, self._lagging_since_ms, self._lagging = {}, {}, frozenset()
        self._last_cause_ms, self._asked, self._is_new = {}, {}, False

    def _see(self, key: TopicPartition, facts: PartitionFacts | None) -> None:
        """Take in an observation of one partition, which may have changed since the survey."""
        was_asked = key in self._asked
        before = self._under_replicated.get(key)
        self._asked.pop(key, None)
        if facts is None or len(facts.isr) == len(facts.replicas):
            self._under_replicated.pop(key, None)
        else:
            self._under_replicated[key] = facts
        if was_asked or before != self._under_replicated.get(key):
            self._is_new = True

    def reconcile(self, batch: BatchBuilder) -> None:
        """Record the changes that the last survey or observation calls for."""
        state = self.state
        if not state.limits.adapts_to_health:
            if state.allowances or state.suspension is not None:
                batch.emit_all(tuple(switch_off(state)))
            return
        if not self._is_active:
            if self._under_replicated or self._last_cause_ms:
                self._forget()
            return
        if not self._is_new or calls_nothing(state):
            return
        self._is_new = False
        health = Health(
            under_replicated=self._under_replicated,
            moving=self._moving(),
            listed={key: move.adding for key, move in self.observed.moves.items()},
            lagging=self._lagging,
            busy={direction.broker for direction in state.moves.loads},
            min_isr=self.observed.min_isr,
        )
        for broker in causes(health):
            self._last_cause_ms[broker] = batch.at_ms
        for broker in state.allowances:
            # A time in the future was recorded by a clock that ran ahead.
            self._last_cause_ms[broker] = min(self._last_cause_ms.get(broker, batch.at_ms), batch.at_ms)
        batch.emit_all(tuple(judge(state, health, self._last_cause_ms, batch.at_ms)))

    def _moving(self) -> Mapping[TopicPartition, Collection[int]]:
        """Return the partitions that Drover or another client moves, each with the brokers that it is getting."""
        moving: dict[TopicPartition, Collection[int]] = {}
        for key in self.state.moves.in_flight:
            step = self.state.reassignments[key].step
            moving[key] = () if step is None else step.adding
        moving.update((key, move.adding) for key, move in self.observed.moves.items())
        return moving

    def attention(self, now: Timestamp, moves: Mapping[TopicPartition, Move] | None) -> Attention:
        """Survey every partition once in a while, and observe one under-replicated partition of each topic.

        The latter reads the topic's min.insync.replicas.
        """
        return Attention(
            partitions=() if moves is None else tuple(self._asked),
            survey=self._is_active and now.monotonic_ms >= self._next_survey_ms,
        )
