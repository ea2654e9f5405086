"""Looks at every partition now and then while something moves, and adapts what may begin to what it finds."""

from collections.abc import Iterator, Mapping

from drover.adaptation.judging import Health, judge, switch_off
from drover.capability.batch import BatchBuilder
from drover.capability.contract import Reconciler
from drover.capability.messages import Input, Moment
from drover.capability.observations import ObservationCache
from drover.facts import Move, Observation, PartitionFacts, Survey
from drover.state.cluster import ClusterState
from events.partitions import TopicPartition

# How often every partition is looked at, and how much longer than a look the time to the next one is.
SURVEY_EVERY_MS, SURVEY_SHARE = 10_000, 20
# Of so many topics min.insync.replicas is asked for after a survey.
MOST_ASKED = 50


class AdaptationReconciler(Reconciler):
    """Lowers what brokers may do while partitions lose replicas there; copies wait while one is below min ISR."""

    def __init__(self, state: ClusterState, observed: ObservationCache) -> None:
        super().__init__(state, observed)
        self._lacking: Mapping[TopicPartition, PartitionFacts] = {}
        # One partition of each topic whose min.insync.replicas is to be read.
        self._asked: dict[TopicPartition, None] = {}
        self._next_survey_ms = 0
        self._is_new = False

    @property
    def _is_active(self) -> bool:
        state = self.state
        if not state.limits.adapts_to_health:
            return False
        return bool(state.reassignments or state.allowances) or state.suspension is not None

    def handle(self, entry: Input, batch: BatchBuilder) -> None:
        """Take in surveys, whoever asked for them, and what was asked for."""
        del batch
        match entry:
            case Survey() if self._is_active:
                took_ms = entry.ended_ms - entry.started_ms
                self._next_survey_ms = entry.ended_ms + max(SURVEY_EVERY_MS, took_ms * SURVEY_SHARE)
                self._lacking = {
                    key: facts for key, facts in entry.partitions.items() if len(facts.isr) < len(facts.replicas)
                }
                by_topic = {key.topic: key for key in self._lacking}
                self._asked = dict.fromkeys(list(by_topic.values())[:MOST_ASKED])
                self._is_new = True
            case Observation():
                for key in [key for key in self._asked if key in entry.partitions]:
                    del self._asked[key]
                    self._is_new = True
            case _:
                return

    def reconcile(self, batch: BatchBuilder) -> None:
        """Record what the last survey changes."""
        state = self.state
        if not state.limits.adapts_to_health:
            if state.allowances or state.suspension is not None:
                batch.emit_all(tuple(switch_off(state)))
            return
        if not self._is_new or not state.is_right_cluster:
            return
        self._is_new = False
        health = Health(
            lacking=self._lacking,
            moving=self.observed.moves.keys() | state.in_flight.keys(),
            live=self.observed.live,
            busy={port.broker for port in state.loads},
            min_isr=self.observed.min_isr,
        )
        batch.emit_all(tuple(judge(state, health, batch.at_ms)))

    def wanted(self, moves: Mapping[TopicPartition, Move], now: Moment) -> Iterator[TopicPartition]:
        """Look at one partition of each topic that lacks replicas: that tells its min.insync.replicas."""
        del moves, now
        yield from self._asked

    def wants_survey(self, now: Moment) -> bool:
        """Whether it is time to look at every partition again."""
        return self._is_active and now.monotonic_ms >= self._next_survey_ms
