"""A managed cluster of the simulation: the model, the wire to it with its faults, and what others have done to it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from drover.cluster.port import AlterRequest, ThrottleChange
from drover.cluster.throttle_lists import FOLLOWER_RATE, LEADER_RATE, waves
from drover.errors import ClusterUnavailableError, OutcomeUnknownError
from drover.events.partitions import TopicPartition
from drover.facts import CallResult
from drover.testing.controller_model import Election
from drover.testing.model import ClusterModel
from drover.testing.simulated import SimulatedDriver
from tests.simulation.coroutines import Point, reach
from tests.simulation.settings import PARTITIONS_PER_TOPIC, TOPICS, Settings

STALE_MS = 1200
RATE_KEYS = (LEADER_RATE, FOLLOWER_RATE)


class Loss(StrEnum):
    """What becomes of the next call that would change something."""

    REFUSED = "refused"  # no connection: known not to have happened
    UNSENT = "unsent"  # nobody knows, and it did not happen
    UNANSWERED = "unanswered"  # nobody knows, and it did happen


class Watch(Protocol):
    """Who judges each call: when it leaves the worker, and when it has reached the cluster."""

    def call_leaves(self, cluster: "SimulatedCluster", requests: Sequence[AlterRequest]) -> None:
        """An alter call is about to be sent."""

    def call_arrives(self, cluster: "SimulatedCluster", requests: Sequence[AlterRequest]) -> None:
        """An alter call is about to be carried out."""

    def call_done(self, cluster: "SimulatedCluster", requests: Sequence[AlterRequest]) -> None:
        """An alter call was carried out."""

    def election_leaves(self, cluster: "SimulatedCluster", partitions: Collection[TopicPartition]) -> None:
        """An election is about to be sent."""

    def election_arrives(self, cluster: "SimulatedCluster", partitions: Collection[TopicPartition]) -> None:
        """An election is about to be held."""

    def throttle_changes(self, cluster: "SimulatedCluster", change: ThrottleChange) -> None:
        """A throttle is about to be written."""


class Wire(SimulatedDriver):
    """The driver on the model, in which each call may be interrupted before it arrives and before it is answered."""

    def __init__(self, cluster: "SimulatedCluster", watch: Watch) -> None:
        super().__init__(cluster.model, cluster.name)
        self.loss: Loss | None = None
        self._cluster = cluster
        self._watch = watch

    async def alter(self, requests: Sequence[AlterRequest]) -> Mapping[TopicPartition, CallResult]:
        self._watch.call_leaves(self._cluster, requests)
        await reach(Point.REQUEST)
        loss = self._take_loss()
        self._watch.call_arrives(self._cluster, requests)
        results = self._alter(requests)
        self._watch.call_done(self._cluster, requests)
        await reach(Point.ANSWER)
        if loss is Loss.UNANSWERED:
            raise OutcomeUnknownError("the answer was lost")
        return results

    async def elect_leaders(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, CallResult]:
        self._watch.election_leaves(self._cluster, partitions)
        await reach(Point.REQUEST)
        loss = self._take_loss()
        self._watch.election_arrives(self._cluster, partitions)
        results = {
            key: CallResult(self._cluster.model.elect_leader(key, Election.PREFERRED)) for key in sorted(partitions)
        }
        await reach(Point.ANSWER)
        if loss is Loss.UNANSWERED:
            raise OutcomeUnknownError("the answer was lost")
        return results

    async def change_throttles(self, changes: Sequence[ThrottleChange]) -> Mapping[ThrottleChange, CallResult]:
        loss = self._take_loss()
        results: dict[ThrottleChange, CallResult] = {}
        for wave in waves(changes):
            results |= self._change_wave(wave, results)
            if loss is Loss.UNANSWERED:
                raise OutcomeUnknownError("the answer was lost")
        return results

    def _change_throttle(self, change: ThrottleChange) -> CallResult:
        self._watch.throttle_changes(self._cluster, change)
        return super()._change_throttle(change)

    def _take_loss(self) -> Loss | None:
        """The fault that is due; raises what its caller sees if the request does not arrive."""
        loss, self.loss = self.loss, None
        if self.unreachable or loss is Loss.REFUSED:
            raise ClusterUnavailableError("the cluster is out of reach")
        if loss is Loss.UNSENT:
            raise OutcomeUnknownError("no answer came")
        return loss


class SimulatedCluster:
    """One model cluster. Others act on it through these methods, so that the checks know what was not Drover's."""

    def __init__(self, name: str, settings: Settings, watch: Watch) -> None:
        self.name = name
        self.settings = settings
        racks = {broker: f"r{broker % 3}" for broker in range(1, settings.brokers + 1)}
        self.model = ClusterModel(
            racks,
            kafka_cluster_id=name,
            copy_bytes_per_second=settings.copy_bytes_per_second,
            session_timeout_ms=settings.session_timeout_ms,
            leader_rebalance_ms=settings.leader_rebalance_ms,
            traits=settings.traits,
        )
        self.wire = Wire(self, watch)
        # By partition: when others last changed it. By topic: when it was last made. By broker: its last death, edit.
        self.touched_ms: dict[TopicPartition, int] = {}
        # By partition: which owners, by epoch, have seen its present move; when others' last one ended, and who saw it.
        self._move_seen_by: dict[TopicPartition, set[int]] = {}
        self.moves_over: dict[TopicPartition, tuple[int, frozenset[int]]] = {}
        self.made_ms: dict[str, int] = {}
        self.died_ms: dict[int, int] = {}
        self.unregistered_ms: dict[int, int] = {}
        self.edited_ms: dict[int, int] = {}
        # What others have ever set, and what of it may be left after they have deleted it.
        self._others: dict[tuple[int, str], set[str]] = {(broker, LEADER_RATE): {"5000000"} for broker in (1, 3)}
        self._deleted: dict[tuple[int, str], set[str | None]] = {}
        self.started_ms: dict[int, int] = {}
        self._stale_since_ms: int | None = None
        for topic in TOPICS:
            self._create(topic)
        for broker in (1, 3):
            self.model.brokers[broker].configs[LEADER_RATE] = "5000000"
        self.wanted_configs = {broker: dict(state.configs) for broker, state in self.model.brokers.items()}

    @property
    def now_ms(self) -> int:
        """Virtual time."""
        return self.model.now_ms

    def advance(self, elapsed_ms: int) -> None:
        """Let time pass, in which producers write."""
        self._ingest(elapsed_ms)
        self.model.advance(elapsed_ms)
        if self._stale_since_ms is not None and self.now_ms - self._stale_since_ms > STALE_MS:
            self.show_truth()

    def _ingest(self, elapsed_ms: int) -> None:
        rate = self.settings.ingest_bytes_per_second
        added = rate * (self.now_ms + elapsed_ms) // 1000 - rate * self.now_ms // 1000
        for name, topic in self.model.topics.items() if added else ():
            for number in topic.written:
                self.model.write(TopicPartition(name, number), added)

    def _create(self, topic: str) -> None:
        brokers = self.settings.brokers
        if any(state.fenced or not state.alive for state in self.model.brokers.values()):
            return  # a partition that was never led would never be
        self.model.create_topic(
            topic,
            {number: [(number + place) % brokers + 1 for place in range(3)] for number in range(PARTITIONS_PER_TOPIC)},
            partition_bytes=self.settings.partition_bytes,
            configs={"min.insync.replicas": str(self.settings.min_isr)},
        )
        self.made_ms[topic] = self.now_ms

    # -- what happens to it

    def stop_broker(self, broker: int) -> None:
        """Kill a broker, unless half of them are dead already."""
        alive = [number for number, state in self.model.brokers.items() if state.alive]
        if broker in alive and len(alive) > self.settings.brokers - 3:
            self.model.stop_broker(broker)
            self.died_ms[broker] = self.now_ms

    def start_broker(self, broker: int) -> None:
        """Bring a broker back."""
        if not self.model.brokers[broker].alive:
            self.model.start_broker(broker)
            self.started_ms[broker] = self.now_ms

    def unregister(self, broker: int) -> None:
        """Let an operator unregister a broker that is fenced; it registers anew when it is back."""
        state = self.model.brokers[broker]
        if state.fenced and not state.alive and state.registered:
            self.model.unregister(broker)
            self.unregistered_ms[broker] = self.now_ms

    def delete(self, topic: str) -> None:
        """Let somebody delete a topic."""
        if topic in self.model.topics:
            self.model.delete_topic(topic)
            self.made_ms[topic] = self.now_ms

    def create(self, topic: str) -> None:
        """Let somebody make a topic that is not there."""
        if topic not in self.model.topics:
            self._create(topic)

    def remake(self, topic: str) -> None:
        """Let somebody delete a topic and make it anew."""
        self.delete(topic)
        self.create(topic)

    def alter(self, key: TopicPartition, replicas: Sequence[int] | None) -> None:
        """Let somebody else move a partition, or cancel a move."""
        before = self.model.partition(key)
        self.model.alter([AlterRequest(key, None if replicas is None else tuple(replicas))])
        if before is not self.model.partition(key):
            self.touched_ms[key] = self.now_ms

    def moves_seen(self, moves: Iterable[TopicPartition], epoch: int) -> None:
        """Note that an owner has seen which partitions move."""
        for key in moves:
            self._move_seen_by.setdefault(key, set()).add(epoch)

    def move_ended(self, key: TopicPartition, *, others: bool) -> None:
        """Note that a move has ended, somebody else's or Drover's."""
        seen_by = self._move_seen_by.pop(key, set())
        if others:
            self.moves_over[key] = self.now_ms, frozenset(seen_by)

    def edit_rate(self, broker: int, rate: int) -> None:
        """Let somebody else set a broker's throttle."""
        self._edit(broker, LEADER_RATE, rate)

    def edit_both_rates(self, broker: int, rate: int) -> None:
        """Let somebody else set both throttles of a broker."""
        for key in RATE_KEYS:
            self._edit(broker, key, rate)

    def _edit(self, broker: int, key: str, rate: int) -> None:
        self.model.brokers[broker].configs[key] = self.wanted_configs[broker][key] = str(rate)
        self._deleted.pop((broker, key), None)
        self._others.setdefault((broker, key), set()).add(str(rate))
        self.edited_ms[broker] = self.now_ms

    def delete_rates(self) -> None:
        """Let somebody else delete the throttles of every broker, as the stock tool's `--verify` and `--cancel` do.

        What stood on a broker before Drover may come back there, or be gone: nobody can tell what they meant.
        """
        for broker, known in self.model.brokers.items():
            for key in RATE_KEYS:
                known.configs.pop(key, None)
            self.let_go(broker)
            self.edited_ms[broker] = self.now_ms

    def let_go(self, broker: int, keys: Iterable[str] = RATE_KEYS) -> None:
        """Note that somebody wants a broker's throttles deleted, or one of them."""
        for key in keys:
            self._deleted[broker, key] = {None, *self._others.get((broker, key), ())}

    def may_be_left(self, broker: int) -> bool:
        """Whether a broker has the throttles that it would have without Drover."""
        found, wanted = self.model.brokers[broker].configs, self.wanted_configs[broker]
        return all(
            found.get(key) == wanted.get(key) or found.get(key) in self._deleted.get((broker, key), ())
            for key in RATE_KEYS
        )

    @property
    def is_short_of_replicas(self) -> bool:
        """Whether a partition is below min.insync.replicas, or without a leader for good: no other copy begins then."""
        return any(
            len(partition.isr) < min(self.model.min_isr(key.topic), len(partition.replicas))
            for key, partition in self.model.each_partition()
        )

    def show_stale(self, stale: Sequence[bool] = (True,)) -> None:
        """Let brokers lag for a while, in answering every request or some of them."""
        if self._stale_since_ms is None:
            self.wire.freeze_metadata(stale)
            self._stale_since_ms = self.now_ms

    def show_truth(self) -> None:
        """Let all brokers be up to date again."""
        self.wire.thaw_metadata()
        self._stale_since_ms = None

    def heal(self, *, brokers: bool) -> None:
        """Make everything work again; with `brokers` off those that are dead stay so for good."""
        self.wire.unreachable, self.wire.loss = False, None
        self.show_truth()
        self.model.kafka_cluster_id = self.name
        if not brokers:
            return
        for broker in self.model.brokers:
            self.start_broker(broker)
        for topic in TOPICS:
            self.create(topic)
