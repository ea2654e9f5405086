"""Alter calls that only change the order of lists, from the durable intent to the recorded outcome.

Such a call copies nothing, and Kafka's controller writes the order before it answers. So a list whose replicas are all
in sync needs neither a reassignment nor an observation afterwards. Many partitions share one event. Only a call whose
answer was lost is resolved by observing the cluster.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from drover.events.leadership import LeaderOrdersAnswered, LeaderOrdersIntended, OrderChange, OrderOutcome
from drover.events.partitions import TopicPartition
from drover.facts import NONE, PartitionFacts
from drover.reconcile.contract import MAX_PARTITIONS_PER_CALL, TAKEOVER_WAIT_MS
from drover.reconcile.debounce import Debounce
from drover.reconcile.gates import changes_nothing
from drover.reconcile.leaders.call_groups import CallGroups
from drover.reconcile.leaders.judgement import Reorder
from drover.reconcile.messages import AlterPartitions, CallEnded, Timestamp
from drover.reconcile.moves.calls import JUDGED
from drover.reconcile.observations import CachedObservation, CallEffect, ObservationCache
from drover.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one partition's call; `code` and `detail` are Kafka's where it refused."""

    outcome: OrderOutcome
    code: int = 0
    detail: str = ""


_REORDERED, _NO_EFFECT = Answer(OrderOutcome.REORDERED), Answer(OrderOutcome.NO_EFFECT)


def may_be_sent_alone(state: ClusterState, seen: PartitionFacts) -> bool:
    """Whether the answer to a call that reorders this list completes it.

    Not if a replica is out of sync, since some versions wait for it, nor in ZooKeeper mode, where the controller
    handles one partition after the other: there a reorder is a reassignment.
    """
    is_slow = state.traits is not None and state.traits.zookeeper_mode
    return not (is_slow or changes_nothing(state)) and len(seen.isr) == len(seen.replicas)


class OrderCalls:
    """The calls of one cluster. While one is under way no other call about its partition begins."""

    def __init__(self, state: ClusterState, observed: ObservationCache) -> None:
        self._state = state
        self._observed = observed
        # By topic and its id: the changes of the batch under way.
        self._changes: dict[tuple[str, str], dict[int, OrderChange]] = defaultdict(dict)
        # How many changes these are.
        self.collected = 0
        self._gathering = CallGroups()
        self._answers: dict[TopicPartition, tuple[int, Answer]] = {}
        self._lost: set[TopicPartition] = set()
        self._debounce = Debounce()

    def begin(self, now: Timestamp) -> None:
        """Resolve a predecessor's open calls by observation, once they have certainly ended.

        Orders that it has completed are noted as made, so that old metadata does not count after a takeover, either.
        """
        for key, order in self._state.orders.items():
            if not order.left_alone and key not in self._state.moves.in_flight:
                self._observed.call_made(key, order.replicas, now.monotonic_ms)
        self._lost = set(self._state.intended_orders)
        for key in self._lost:
            self._doubt(key, now.monotonic_ms + TAKEOVER_WAIT_MS)
            self._observed.predecessor_calls(key, now.monotonic_ms + TAKEOVER_WAIT_MS)

    # -- intents

    def add(self, key: TopicPartition, seen: PartitionFacts, wanted: Reorder) -> None:
        """Collect one change for `take_intents`, which intends it."""
        change = OrderChange(wanted.canonical, seen.replicas, wanted.replicas, wanted.elects, seen.leader)
        self._changes[key.topic, seen.topic_id][key.partition] = change
        self.collected += 1

    def take_intents(self) -> Iterator[LeaderOrdersIntended]:
        """Make one event per topic of the changes collected."""
        collected, self._changes, self.collected = self._changes, defaultdict(dict), 0
        for (topic, topic_id), changes in collected.items():
            yield LeaderOrdersIntended(
                cluster=self._state.name,
                topic=topic,
                partitions=tuple(changes),
                topic_id=topic_id,
                changes=tuple(changes.values()),
            )

    def intended(self, event: LeaderOrdersIntended) -> None:
        """Note intents; from now on no observation of their partitions counts."""
        keys = event.keys
        self._gathering.put(keys)
        for key in keys:
            self._observed.call_starts(key)

    # -- calls

    def due_ms(self, now_ms: int) -> int | None:
        """Tell when a call is to begin or an answer is to be recorded."""
        return now_ms if self._answers else self._gathering.due_ms(now_ms)

    def calls(self, now_ms: int, start_by_ms: int) -> Iterator[AlterPartitions]:
        """Make the calls that are due."""
        keys, start_by_ms = self._gathering.take(now_ms, start_by_ms)
        orders = self._state.intended_orders
        for first in range(0, len(keys), MAX_PARTITIONS_PER_CALL):
            part = keys[first : first + MAX_PARTITIONS_PER_CALL]
            yield AlterPartitions(self._state.name, {key: orders[key].replicas for key in part}, start_by_ms)

    def withhold(self, why: str) -> None:
        """Let the intended calls lapse."""
        keys = self._gathering.withdraw()
        answer = Answer(OrderOutcome.NOT_SENT, detail=why)
        self._answers.update(dict.fromkeys(keys, (0, answer)))

    def ended(self, ended: CallEnded) -> None:
        """Take in the end of a call; `take_answers` takes its outcome, once observed if the answer was lost."""
        self._gathering.ended(ended.partitions)
        orders = self._state.intended_orders
        for key in ended.partitions:
            if key not in orders or key in self._lost:
                continue
            answer = self._meaning(key, ended)
            if answer is None:
                self._lost.add(key)
                self._observed.call_ends(key, ended.ended_ms, CallEffect.UNKNOWN)
                self._doubt(key, ended.ended_ms)
            else:
                self._answers[key] = ended.ended_ms, answer

    def _doubt(self, key: TopicPartition, ended_ms: int) -> None:
        """Ignore observations of the list from before a lost call while metadata may be old, for commands as well."""
        expected = self._state.intended_orders[key].expected
        self._observed.call_replaced(key, expected, ended_ms, is_accepted=False)

    def _meaning(self, key: TopicPartition, ended: CallEnded) -> Answer | None:
        if ended.results is None:
            return None if ended.lost else Answer(OrderOutcome.NOT_SENT, detail=ended.detail)
        result = ended.results.get(key)
        if result is None:
            return None
        if result.code == NONE:
            return _REORDERED
        # With other codes the controller may have acted.
        return Answer(OrderOutcome.REFUSED, result.code, result.message or "") if result.code in JUDGED else None

    # -- lost answers

    def is_lost(self, key: TopicPartition) -> bool:
        """Whether the answer to a partition's call was lost, so that an observation tells its outcome."""
        return key in self._lost

    def lost(self) -> Sequence[TopicPartition]:
        """List the partitions to observe because of that."""
        return tuple(self._lost)

    def resolve(self, key: TopicPartition, seen: CachedObservation) -> None:
        """Resolve a lost call by an observation that began after its end; the old list must be observed twice."""
        intended, facts = self._state.intended_orders[key], seen.facts
        is_same = facts is not None and facts.topic_id == intended.topic_id
        if facts is not None and is_same and facts.replicas == intended.replicas and facts.move is None:
            self._settle(key, seen, _REORDERED)
        elif self._debounce.has_persisted(key, seen):
            self._settle(key, seen, _NO_EFFECT)
        else:
            self._debounce.note(key, seen.ended_ms, unconfirmed=True)

    def _settle(self, key: TopicPartition, seen: CachedObservation, answer: Answer) -> None:
        self._debounce.forget(key)
        self._lost.discard(key)
        self._answers[key] = seen.ended_ms, answer

    # -- answers

    def take_answers(self, at_most: int) -> Iterator[tuple[TopicPartition, Answer]]:
        """Take outcomes to record now; from then on observations count again."""
        for key in list(self._answers)[:at_most]:
            ended_ms, answer = self._answers.pop(key)
            is_done = answer.outcome is OrderOutcome.REORDERED
            self._observed.call_ends(key, ended_ms, CallEffect.DONE if is_done else CallEffect.NONE)
            if is_done:
                self._observed.call_made(key, self._state.intended_orders[key].replicas, ended_ms)
            yield key, answer


def answered(
    cluster: str, answers: Sequence[tuple[TopicPartition, Answer]], restored: frozenset[TopicPartition]
) -> Iterator[LeaderOrdersAnswered]:
    """Make one event of all answers with the same topic and outcome."""
    groups: dict[tuple[str, Answer], list[int]] = defaultdict(list)
    for key, answer in answers:
        groups[key.topic, answer].append(key.partition)
    for (topic, answer), numbers in groups.items():
        yield LeaderOrdersAnswered(
            cluster=cluster,
            topic=topic,
            partitions=tuple(numbers),
            outcome=answer.outcome,
            restored=tuple(number for number in numbers if TopicPartition(topic, number) in restored),
            code=answer.code,
            detail=answer.detail,
        )
